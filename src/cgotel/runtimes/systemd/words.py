"""The last words of a run: the end of what its invocation wrote to the journal, matched, not kept."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import deque
from collections.abc import Iterator

from cgotel.clock import Timeline
from cgotel.contract import Report
from cgotel.evidence import LastWords, Workload
from cgotel.runtimes import last_words
from cgotel.runtimes.systemd.units import SOURCE

_WRITTEN_S = 0.3  # journald takes the last lines from the unit's pipe after PID 1 reaped the process
_READ_S = 10.0
_CHUNK = 65536
_MOST_WAITING = 256


class LastWordsReader:
    """Reads one log after another. Where ends come faster than that, the latest are left out."""

    def __init__(self, timeline: Timeline, keep_text: bool) -> None:
        self._timeline = timeline
        self._keep_text = keep_text
        self._wanted: deque[tuple[str, Workload, int]] = deque()
        self._more = asyncio.Event()

    def want(self, invocation: str, workload: Workload, ended_ns: int) -> None:
        """Read the words of a run that has ended; not if too many wait already."""
        if len(self._wanted) < _MOST_WAITING:
            self._wanted.append((invocation, workload, ended_ns))
            self._more.set()

    async def work(self, report: Report) -> None:
        """Read what is wanted, until cancelled."""
        while True:
            await self._more.wait()
            self._more.clear()
            await asyncio.sleep(_WRITTEN_S)
            while self._wanted:
                invocation, workload, ended_ns = self._wanted.popleft()
                for words in self._told(await _tail(invocation), workload, ended_ns):
                    report(words)

    def _told(self, log: bytes, workload: Workload, ended_ns: int) -> Iterator[LastWords]:
        for words in last_words.find(log):
            yield LastWords(
                source=SOURCE,
                time_ns=ended_ns,
                cgroup=workload.cgroup,
                workload=workload,
                pattern=words.name,
                meaning=words.meaning,
                text=words.line if self._keep_text else "",
            )


async def _tail(invocation: str) -> bytes:
    """The end of an invocation's own output; empty where it cannot be read (`Journal` says why)."""
    command = (
        *("journalctl", "--system", "--quiet", "--no-pager", "--output=cat", "--all"),
        *(f"--lines={last_words.MOST_LINES}", f"_SYSTEMD_INVOCATION_ID={invocation}"),
    )
    try:
        child = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError:
        return b""
    assert child.stdout is not None
    try:
        async with asyncio.timeout(_READ_S):
            return await _end_of(child.stdout.fileno(), last_words.MOST_BYTES)
    except TimeoutError:
        return b""
    finally:
        child.kill()
        child.stdout.close()
        child.wait()


async def _end_of(pipe: int, most: int) -> bytes:
    """The last bytes that come through a pipe until it is closed."""
    loop = asyncio.get_running_loop()
    closed: asyncio.Future[None] = loop.create_future()
    tail = b""

    def read() -> None:
        nonlocal tail
        chunk = os.read(pipe, _CHUNK)
        tail = (tail + chunk)[-most:]
        if not chunk and not closed.done():
            closed.set_result(None)

    loop.add_reader(pipe, read)
    try:
        await closed
    finally:
        loop.remove_reader(pipe)
    return tail
