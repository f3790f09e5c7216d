"""What PID 1 wrote to the journal about ends of runs, for those that nobody heard of over D-Bus."""

from __future__ import annotations

import signal
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cgotel.clock import Timeline
from cgotel.evidence import Evidence, RunEnded, UnitResult, Workload
from cgotel.runtimes.systemd.entries import Entry
from cgotel.runtimes.systemd.states import is_container, is_watched
from cgotel.runtimes.systemd.units import SOURCE

# sd-messages.h: a process of a unit ended; a unit failed; a unit ended well.
_PROCESS_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
_FAILURE = "d9b373ed55a64feb8242e02dbe79a49c"
_SUCCESS = "7ad2d189f7e94e70a38c781354912448"
MESSAGE_IDS = (_PROCESS_EXIT, _FAILURE, _SUCCESS)

_MOST_RUNS = 1024
_SUCCESSFUL = "success"


@dataclass(slots=True)
class _Written:
    unit: str
    code: int | None = None
    signal: int | None = None
    ended_ns: int = 0


class WrittenEnds:
    """Collects what was written of each invocation; `take` gives it once its result is there.

    An exit that systemd takes for a success is not written: code and signal are then unknown.
    """

    def __init__(self, timeline: Timeline, cgroup_of: Callable[[str], str | None]) -> None:
        self._timeline = timeline
        self._cgroup_of = cgroup_of
        self._runs: OrderedDict[str, _Written] = OrderedDict()

    def take(self, entry: Entry) -> tuple[str, list[Evidence]] | None:
        """An invocation and what the journal says of its end; None until its result was written."""
        unit, invocation = entry.get("UNIT"), entry.get("INVOCATION_ID")
        if entry.get("_PID") != "1" or not invocation or not is_watched(unit):
            return None
        run = self._runs.setdefault(invocation, _Written(unit))
        kind = entry.get("MESSAGE_ID")
        if kind == _PROCESS_EXIT:
            if "Main process" in entry.get("MESSAGE"):
                _note_exit(run, entry)
                run.ended_ns = self._timeline.from_wall(entry.wall_ns)
            while len(self._runs) > _MOST_RUNS:
                self._runs.popitem(last=False)
            return None
        del self._runs[invocation]
        result = entry.get("UNIT_RESULT") if kind == _FAILURE else _SUCCESSFUL
        return invocation, list(self._told(run, result or _SUCCESSFUL, entry))

    def _told(self, run: _Written, result: str, entry: Entry) -> Iterator[Evidence]:
        cgroup = self._cgroup_of(run.unit)
        workload = Workload(runtime=SOURCE, id=run.unit, name=run.unit, cgroup=cgroup)
        time_ns = self._timeline.from_wall(entry.wall_ns)
        if not is_container(run.unit):
            yield RunEnded(
                source=SOURCE,
                time_ns=run.ended_ns or time_ns,
                cgroup=cgroup,
                workload=workload,
                code=run.code,
                signal=run.signal,
            )
        yield UnitResult(
            source=SOURCE,
            time_ns=time_ns,
            cgroup=cgroup,
            workload=workload,
            result=result,
            code=run.code,
            signal=run.signal,
        )


def _note_exit(run: _Written, entry: Entry) -> None:
    try:
        status = int(entry.get("EXIT_STATUS"))
    except ValueError:
        return
    if entry.get("EXIT_CODE") == "exited":
        run.code = status
    elif 0 < status < signal.NSIG:
        run.signal = status
