"""Reads the end of a container's log when it ended: in a thread of its own, for no log is worth a wait."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress

from cgotel.contract import Report
from cgotel.evidence import LastWords
from cgotel.runtimes import last_words
from cgotel.runtimes.engine.client import FAULTS, Client, Stopped
from cgotel.runtimes.engine.follower import Ended
from cgotel.runtimes.engine.log import LogTail

_WAITING = 256  # more ends than this at once: the rest goes without
_MOST_READ = 8 * 1024 * 1024
_PATIENCE_S = 3.0


class Words:
    """Takes runs that ended, reports the last words of each."""

    def __init__(self, client: Client, report: Report, keep_text: bool) -> None:
        self._client = client
        self._report = report
        self._keep_text = keep_text
        self._ended: queue.Queue[Ended | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._work, name="cgotel-last-words", daemon=True)
        self.left_out = 0

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def ask(self, ended: Ended) -> None:
        """Read this one's log soon."""
        try:
            self._ended.put_nowait(ended)
        except queue.Full:
            self.left_out += 1

    def close(self) -> None:
        """End with the log that is being read."""
        with suppress(queue.Empty):
            while True:
                self._ended.get_nowait()
        self._ended.put(None)
        self._thread.join(2 * _PATIENCE_S)

    def _work(self) -> None:
        while (ended := self._ended.get()) is not None:
            try:
                self._look(ended)
            except Stopped:
                return
            except FAULTS:  # the container is gone, or its log driver lets nobody read
                continue

    def _look(self, ended: Ended) -> None:
        workload = ended.workload
        for words in last_words.find(self._read(ended)):
            self._report(
                LastWords(
                    source=workload.runtime,
                    time_ns=ended.time_ns,
                    cgroup=workload.cgroup,
                    workload=workload,
                    pattern=words.name,
                    meaning=words.meaning,
                    text=words.line if self._keep_text else "",
                )
            )

    def _read(self, ended: Ended) -> bytes:
        """The end of what this run wrote: the log holds those before it too, and perhaps the next one."""
        target = f"/containers/{ended.workload.id}/logs?stdout=1&stderr=1&tail={last_words.MOST_LINES}"
        if ended.began is not None:
            target += f"&since={seconds(ended.began)}"
        if ended.next_began is not None:
            target += f"&until={seconds(ended.next_began)}"
        log = LogTail(framed=not ended.tty)
        read = 0
        try:
            for piece in self._client.stream(target, _PATIENCE_S, _PATIENCE_S):
                log.feed(piece)
                read += len(piece)
                if read > _MOST_READ:
                    break
        except TimeoutError:  # what came by then may do
            pass
        return log.text()


def seconds(wall_ns: int) -> str:
    """Nanoseconds as the API wants them: ``1796140032.612178372``."""
    return f"{wall_ns // 10**9}.{wall_ns % 10**9:09}"
