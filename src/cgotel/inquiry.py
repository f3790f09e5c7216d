"""From what watchers report to verdicts: one thread that listens, waits for exits to settle, and tells.

It runs beside the sweeps. What it tells goes to whoever takes events; what it judged is kept with the
evidence.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import msgspec

from cgotel.clock import Timeline as Clock
from cgotel.contract import SourceStatus, State, Watcher
from cgotel.evidence import GpuXid, OomKill, Workload
from cgotel.faults import Faults
from cgotel.model import Entity, Event, Instrument, Point, Reading, Series, Sweep
from cgotel.restarts.case import Case
from cgotel.restarts.classify import classify
from cgotel.restarts.events import (
    OOM_KILL,
    entity_of,
    exit_event,
    loop_event,
    oom_kill_event,
    restart_event,
    xid_event,
)
from cgotel.restarts.intake import taken_in
from cgotel.restarts.loops import Loop, Loops
from cgotel.restarts.rule import Rule
from cgotel.restarts.surroundings import Surroundings
from cgotel.restarts.timeline import Restart, Timeline
from cgotel.restarts.verdict import Verdict
from cgotel.store import Incident, Incidents
from cgotel.watching import Watching

log = logging.getLogger(__name__)

WORKLOAD = "workload"
"""The kind of entity whose ends are counted: it outlives the cgroups that it has one after another."""
INSTRUMENTS = {
    instrument.name: instrument
    for instrument in (
        Instrument(
            "cgotel.container.exits", "counter", "{exit}", "Runs of the workload that ended, by cause."
        ),
        Instrument(
            "cgotel.container.restarts",
            "counter",
            "{restart}",
            "Runs of the workload that took the place of one that had ended, by the cause of that end.",
        ),
    )
}
_MOST_WAITING = 100_000
_IDLE_S = 1.0
_THE_END_NS = 1 << 63
_MOST_COUNTED = 10_000
_NO_LOOK_BACK = ("signals", "processes", "cgroup_events")
WITNESSES = ("kernel_log", "signals", "processes", "cgroup_events")
"""Witnesses that a verdict may miss: where one is not even configured, that is the reason."""


class Inquiry:
    """Listens to watchers, judges exits, tells events, keeps incidents.

    ``tell`` takes an event from this thread. Evidence that comes faster than it can be taken in is
    dropped and counted; nobody is ever made to wait.
    """

    def __init__(
        self,
        watchers: Sequence[Watcher],
        rules: Iterable[Rule],
        clock: Clock,
        incidents: Incidents,
        tell: Callable[[Event], object],
        settle_s: float,
    ) -> None:
        self._clock = clock
        self._rules = sorted(rules, key=lambda rule: rule.rank)
        self._incidents = incidents
        self._tell = tell
        self._heard: queue.Queue[object] = queue.Queue(_MOST_WAITING)
        self._ending = threading.Event()
        self._watching = Watching(watchers, self._report)
        self._timeline = Timeline(settle_s)
        self._surroundings = Surroundings()
        self._loops = Loops()
        self._faults = Faults("the inquiry into exits")
        self._rule_faults: dict[str, Faults] = {}
        self._watchers = {watcher.name for watcher in watchers}
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._entities: OrderedDict[str, Entity] = OrderedDict()
        self._began_ns = clock.now()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="cgotel-inquiry", daemon=True)
        self.dropped = 0

    def start(self) -> None:
        """Start the watchers, and listen."""
        self._thread.start()
        self._watching.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """Stop the watchers, and judge what can be judged of what was heard."""
        self._watching.close()
        self._ending.set()
        self._report(None)
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def sources(self) -> Iterator[SourceStatus]:
        """The state of every watcher."""
        return self._watching.sources()

    @property
    def faults(self) -> dict[str, int]:
        """How often each watcher failed in a way that nobody foresaw."""
        return self._watching.faults

    def hears(self, source: str) -> bool:
        """Whether a watcher is at work."""
        return any(s.name == source and s.state is State.OK for s in self._watching.sources())

    def tells_better(self, event: Event) -> bool:
        """Whether the kernel log tells the same as a counter, with the victim and the limit by name."""
        return event.name == OOM_KILL and self.hears("kernel_log")

    def see(self, sweep: Sweep) -> None:
        """Take the amounts of a sweep: what an exit was surrounded by."""
        with self._lock:
            self._surroundings.see(sweep, self._clock.to_wall(0))

    def readings(self, time_ns: int) -> list[Reading]:
        """How often each workload ended, and was started again, by cause."""
        with self._lock:
            points: dict[str, list[Point]] = {}
            for (key, name, cause), count in self._counts.items():
                points.setdefault(key, []).append((_series(name, cause), count))
            return [Reading.of(self._entities[key], time_ns, found) for key, found in points.items()]

    def _silent_at(self, ended_ns: int) -> dict[str, str]:
        if ended_ns >= self._began_ns:
            return {}
        return dict.fromkeys(_NO_LOOK_BACK, "cgotel was not running then")

    def silent(self) -> Mapping[str, str]:
        """The sources that cannot see now, each with the reason."""
        reasons = {name: "not enabled" for name in WITNESSES if name not in self._watchers}
        for status in self._watching.sources():
            if status.state is not State.OK:
                reasons[status.name] = status.reason or status.state.value
        return reasons

    def _report(self, piece: object) -> None:
        try:
            self._heard.put_nowait(piece)
        except queue.Full:
            self.dropped += 1

    def _run(self) -> None:
        self._attempt(self._take_up)
        while True:
            try:
                if not self._turn():
                    return
            except (Exception, SystemExit) as error:  # noqa: BLE001 - its end would be that of all verdicts
                self._faults.note(error)

    def _turn(self) -> bool:
        """Take what was heard, judge what is due; False at the end, when all is due."""
        pieces = self._batch()
        going = not (self._ending.is_set() and self._heard.empty())
        for piece in pieces:
            if piece is not None or not self._ending.is_set():
                self._attempt(partial(self._hear, piece))
        silent = self.silent()
        for case in self._timeline.opened(silent):
            self._attempt(partial(self._incidents.open, case))
        now_ns = self._clock.now() if going else _THE_END_NS
        for settled in self._timeline.due(now_ns, silent):
            self._attempt(partial(self._judge, settled))
        return going

    def _take_up(self) -> None:
        """The exits that an earlier life had heard of and could not judge any more."""
        for case in self._incidents.opened():
            for piece in case.evidence:
                self._timeline.hear(piece, self._clock.now())
            self._timeline.reopen(case.exit, self._clock.now())

    def _attempt(self, act: Callable[[], None]) -> None:
        """What one piece of evidence, or one exit, brings about costs no other."""
        try:
            act()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - hostile evidence
            self._faults.note(error)

    def _batch(self) -> list[object]:
        """What was heard since; waits for something, or until an exit has settled."""
        due_ns = self._timeline.next_due_ns()
        wait_s = _IDLE_S if due_ns is None else min(_IDLE_S, max(0.0, (due_ns - self._clock.now()) / 1e9))
        try:
            pieces = [self._heard.get(timeout=wait_s)]
        except queue.Empty:
            return []
        while len(pieces) < 1000:
            try:
                pieces.append(self._heard.get_nowait())
            except queue.Empty:
                break
        return pieces

    def _hear(self, reported: object) -> None:
        piece = taken_in(reported)
        self._timeline.hear(piece, self._clock.now())
        if isinstance(piece, OomKill):
            past = piece.time_ns + piece.uncertainty_ns < self._began_ns
            self._tell(oom_kill_event(piece, self._wall(), self._clock.to_wall, past))
        elif isinstance(piece, GpuXid) and not self._is_told_by_the_log(piece):
            self._tell(xid_event(piece, self._wall(), self._clock.to_wall))

    def _is_told_by_the_log(self, xid: GpuXid) -> bool:
        """The kernel log has every Xid that the driver's own events bring, with the process."""
        return xid.source == "nvml" and "kernel_log" not in self.silent()

    def _judge(self, settled: Case | Restart) -> None:
        if isinstance(settled, Restart):
            self._restarted(settled)
        else:
            self._ended(settled)

    def _ended(self, case: Case) -> None:
        case = self._surrounded(case)
        verdict = classify(case, self._rules, self._failed)
        loop = self._loops.note(case, verdict)
        self._count("cgotel.container.exits", case.exit.workload, verdict.cause)
        self._attempt(partial(self._tell_end, case, verdict, loop))
        self._incidents.add(Incident(case, verdict))  # told first: a case left open is judged again

    def _tell_end(self, case: Case, verdict: Verdict, loop: Loop | None) -> None:
        if loop is None:
            self._tell(exit_event(case, verdict, self._wall(), self._clock.to_wall))
        elif self._loops.is_news(case):
            self._tell(loop_event(case, verdict, loop, self._wall(), self._clock.to_wall))

    def _restarted(self, restart: Restart) -> None:
        case = self._surrounded(restart.case)
        verdict = classify(case, self._rules, self._failed)
        self._incidents.add(Incident(case, verdict))
        self._count("cgotel.container.restarts", restart.started.workload, verdict.cause)
        if not self._loops.holds(case):
            again = Restart(case, restart.started)
            self._tell(restart_event(again, verdict, self._wall(), self._clock.to_wall))

    def _failed(self, rule: Rule, error: BaseException) -> None:
        faults = self._rule_faults.get(rule.name)
        if faults is None:
            faults = self._rule_faults[rule.name] = Faults(f"rule {rule.name}")
        faults.note(error)

    def _surrounded(self, case: Case) -> Case:
        with self._lock:
            around = self._surroundings.around(case.exit.workload.cgroup, case.exit.ended_ns)
        silent = self._silent_at(case.exit.ended_ns) | case.silent
        return msgspec.structs.replace(case, evidence=(*case.evidence, *around), silent=silent)

    def _count(self, name: str, workload: Workload, cause: str) -> None:
        entity = replace(entity_of(workload), kind=WORKLOAD)
        with self._lock:
            self._entities.setdefault(entity.key, entity)
            self._counts[entity.key, name, cause] += 1
            if len(self._entities) > _MOST_COUNTED:
                gone, _ = self._entities.popitem(last=False)
                for key in [key for key in self._counts if key[0] == gone]:
                    del self._counts[key]

    def _wall(self) -> int:
        return self._clock.to_wall(self._clock.now())


@cache
def _series(name: str, cause: str) -> Series:
    source = f"{name.rpartition('.')[2]}.{cause}"
    return INSTRUMENTS[name].series(source, attributes={"cgotel.restart.reason": cause})
