"""Listens to the system bus and the journal, in an event loop of the caller's thread."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from cgotel.contract import Bookmark, Report, Roots, SourceStatus, State, Stop, Timeline, Unavailable
from cgotel.evidence import Evidence, Gap, HostState, RunEnded, UserspaceOom
from cgotel.kernel import topology
from cgotel.runtimes.systemd import manager, oom_daemons
from cgotel.runtimes.systemd.bus import BUS, Bus, address
from cgotel.runtimes.systemd.units import SOURCE
from cgotel.runtimes.systemd.words import LastWordsReader
from cgotel.runtimes.systemd.written import Written

if TYPE_CHECKING:
    from dbus_fast import Message

_OOMD = "org.freedesktop.oom1"
_LOGIND = "org.freedesktop.login1"

_TICK_S = 1.0
_SAME_KILL_NS = 10 * 10**9
_MOST_KILLS = 256


class _Mark(msgspec.Struct, frozen=True):
    """How far it was seen: the boot, CLOCK_BOOTTIME and wall clock then, the journal's cursor."""

    boot: str
    seen_ns: int
    wall_ns: int
    cursor: str = ""


class Listener:
    """Opened, it listens until it is stopped or loses the bus; opened again, it tells what it missed."""

    def __init__(self, roots: Roots, timeline: Timeline, bookmark: Bookmark, keep_text: bool = False) -> None:
        self._roots = roots
        self._timeline = timeline
        self._bookmark = bookmark
        self._units = manager.Units(timeline, self._listen_to)
        self._keep_text = keep_text
        self._words: LastWordsReader | None = None
        self._written = Written(timeline, self._units, self._tell_kill)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bus: Bus | None = None
        self._owners: dict[str, str] = {}
        self._kills: OrderedDict[str, int] = OrderedDict()
        self._report: Report | None = None
        self._ended: asyncio.Future[str] | None = None
        self._boot = ""
        self._caught_up = False

    def open(self) -> None:
        """Connect to the bus and see that systemd is there. Raises `Unavailable` where it is not."""
        self._boot = topology.boot_id(self._roots.proc)
        self._loop = asyncio.new_event_loop()
        self._bus = Bus(self._take)
        self._loop.run_until_complete(self._connect(self._bus))

    def listen(self, report: Report, stop: Stop) -> None:
        """Report until stopped. Raises `Unavailable` where the bus is gone, or systemd from it."""
        assert self._loop is not None
        self._report = report
        self._loop.run_until_complete(self._listen(report, stop))

    def sources(self) -> Iterator[SourceStatus]:
        """The journal, which may be closed to us while the bus is open."""
        yield self._written.status

    def close(self) -> None:
        """End the connection and the journal's reader."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.run_until_complete(self._close())
            loop.close()

    # One life

    async def _connect(self, bus: Bus) -> None:
        await bus.connect(address(self._roots))
        self._owners.clear()
        for name in (manager.NAME, _OOMD, _LOGIND):
            await bus.match(sender=BUS, interface=BUS, member="NameOwnerChanged", arg0=name)
            await bus.match(sender=name, interface=f"{name}.Manager")
            try:
                [owner] = await bus.ask(BUS, "/org/freedesktop/DBus", BUS, "GetNameOwner", "s", name)
            except Unavailable as missing:
                if name != manager.NAME:
                    continue  # it may come later, or never
                why = "systemd is not on the system bus"
                raise Unavailable(SourceStatus(SOURCE, State.ABSENT, why)) from missing
            self._owners[name] = owner

    async def _listen(self, report: Report, stop: Stop) -> None:
        assert self._bus is not None
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        loop.add_reader(stop.fileno(), self._end, "")
        lost = asyncio.ensure_future(self._bus.lost())
        lost.add_done_callback(self._bus_lost)
        self._words = LastWordsReader(self._timeline, self._keep_text)
        work = (self._catch_up(self._bus, report), self._tick(report), self._words.work(report))
        tasks: set[asyncio.Future[None]] = {asyncio.ensure_future(each) for each in work}
        try:
            while not self._ended.done():
                either: set[asyncio.Future[Any]] = {self._ended, *tasks}
                done, _ = await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks & done:
                    task.result()
                tasks -= done
            if reason := self._ended.result():
                raise Unavailable(SourceStatus(SOURCE, State.GONE, reason))
        finally:
            loop.remove_reader(stop.fileno())
            lost.cancel()
            for task in tasks:
                task.cancel()
            self._write_mark()

    async def _catch_up(self, bus: Bus, report: Report) -> None:
        mark = self._read_mark()
        self._caught_up = mark is None  # nothing older is to be told
        self._write_mark()
        since_ns = self._tell_gap(report, mark)
        self._written.start("" if mark is None else mark.cursor, None if mark is None else mark.wall_ns)
        await self._units.begin(bus, report, since_ns)
        self._caught_up = True

    async def _tick(self, report: Report) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self._written.tick(report)
            self._write_mark()

    async def _close(self) -> None:
        self._written.close()
        if self._bus is not None:
            await self._bus.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _bus_lost(self, lost: asyncio.Future[Exception | None]) -> None:
        if not lost.cancelled():
            self._end(f"the system bus is gone: {lost.result() or 'it closed the connection'}")

    def _end(self, reason: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)

    # Signals

    def _take(self, message: Message) -> None:
        """One signal. Any peer may send us one in another's name, so the sender must be the name's owner."""
        if message.sender == BUS:
            if message.member == "NameOwnerChanged":
                self._owner_changed(*message.body)
            return
        owned = next((name for name, owner in self._owners.items() if owner == message.sender), None)
        if owned == manager.NAME and self._report is not None:
            self._units.take(message)
        elif owned == _OOMD and message.member == "Killed":
            cgroup, reason = message.body
            self._tell_kill(
                UserspaceOom(
                    source=SOURCE,
                    time_ns=self._timeline.now(),
                    by=oom_daemons.OOMD,
                    cgroup=cgroup,
                    reason=reason,
                )
            )
        elif owned == _LOGIND:
            self._tell_host(message.member or "", message.body)

    def _owner_changed(self, name: str, _old: str, new: str) -> None:
        if name == manager.NAME:
            self._end("systemd left the system bus")
        elif new:
            self._owners[name] = new
        else:
            self._owners.pop(name, None)

    def _tell_host(self, member: str, body: list[object]) -> None:
        now = self._timeline.now()
        if member == "PrepareForSleep":
            self._tell(HostState(source=SOURCE, time_ns=now, state="suspend" if body[0] else "resume"))
        elif member == "PrepareForShutdown" and body[0]:
            self._tell(HostState(source=SOURCE, time_ns=now, state="shutdown"))

    # What is reported

    def _tell_kill(self, kill: UserspaceOom) -> None:
        """systemd-oomd tells of a kill twice, on the bus and in the journal."""
        if kill.cgroup is not None:
            before = self._kills.get(kill.cgroup)
            if before is not None and abs(kill.time_ns - before) < _SAME_KILL_NS:
                return
            self._kills[kill.cgroup] = kill.time_ns
            while len(self._kills) > _MOST_KILLS:
                self._kills.popitem(last=False)
        self._tell(kill)

    def _listen_to(self, invocation: str, end: RunEnded) -> None:
        """Read the last words of a run, unless it ended well."""
        if self._words is not None and end.started and (end.code or end.signal):
            self._words.want(invocation, end.workload, end.time_ns)

    def _tell(self, piece: Evidence) -> None:
        if self._report is not None:
            self._report(piece)

    # How far it came

    def _tell_gap(self, report: Report, mark: _Mark | None) -> int | None:
        """Say since when nobody watched, and return it; None where nobody ever did."""
        if mark is None:
            return None
        since_ns = self._timeline.from_boottime(mark.seen_ns if mark.boot == self._boot else 0)
        why = (
            "nobody listened to systemd; of each unit only the last run, and what the journal holds, is known"
        )
        report(Gap(source=SOURCE, time_ns=self._timeline.now(), since_ns=since_ns, reason=why))
        return since_ns

    def _read_mark(self) -> _Mark | None:
        try:
            return msgspec.json.decode(self._bookmark.read() or b"", type=_Mark)
        except msgspec.DecodeError:
            return None

    def _write_mark(self) -> None:
        if not self._caught_up:
            return  # what was missed before is still to be told
        seen_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        mark = _Mark(self._boot, seen_ns, time.time_ns(), self._written.cursor)
        self._bookmark.write(msgspec.json.encode(mark))
