"""The conversation with PID 1 (org.freedesktop.systemd1(5)): what it signals of units, jobs and itself."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from cgotel.clock import Timeline
from cgotel.contract import Report
from cgotel.evidence import Evidence, HostState, RunEnded
from cgotel.runtimes.systemd.bus import Bus, is_error
from cgotel.runtimes.systemd.states import (
    KEPT,
    UNITS,
    UnitState,
    is_watched,
    read_details,
    read_state,
    unit_of,
)
from cgotel.runtimes.systemd.units import SOURCE, Unit

if TYPE_CHECKING:
    from dbus_fast import Message

NAME = "org.freedesktop.systemd1"

_MANAGER_PATH = "/org/freedesktop/systemd1"
_MANAGER = f"{NAME}.Manager"
_UNIT = f"{NAME}.Unit"
_JOB = f"{NAME}.Job"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_TYPES = {"service": f"{NAME}.Service", "scope": f"{NAME}.Scope"}
_PATTERNS = ["*.service", "*.scope"]
_DETAILS = ("ControlGroup", "Slice", "OOMPolicy")
_ORDERS = {
    "stop": "stop",
    "restart": "restart",
    "try-restart": "restart",
    "start": "restart",  # a restart's second half; a start of what runs is done before it can be asked
}

_HELD_S = 3.0
_MOST_HELD = 256
_MOST_TOLD = 8192
_ASKED_AT_ONCE = 16


@dataclass(slots=True)
class _Watched:
    """A unit, its latest properties, and the states that wait for answers about it."""

    unit: Unit
    values: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    detailed: bool = False
    asked: int = 0
    held: deque[UnitState] = field(default_factory=deque)
    removed: bool = False


class Units:
    """All units at once. Outlives a connection, so that the next one can tell what happened between.

    ``on_end`` is given each end that was seen live, with its invocation.
    """

    def __init__(self, timeline: Timeline, on_end: Callable[[str, RunEnded], None]) -> None:
        self._timeline = timeline
        self._on_end = on_end
        self._watched: dict[str, _Watched] = {}
        self._told: OrderedDict[str, None] = OrderedDict()
        self._reloading = False
        self._bus: Bus | None = None
        self._report: Report | None = None
        self._shutting_down = False

    def was_told(self, invocation: str) -> bool:
        """Whether the end of this invocation was reported, or is none of our business."""
        return invocation in self._told

    def cgroup_of(self, name: str) -> str | None:
        """The cgroup of a unit, where it is known."""
        watched = self._watched.get(name)
        return None if watched is None else watched.unit.details.cgroup

    async def begin(self, bus: Bus, report: Report, since_ns: int | None) -> None:
        """Ask for signals, then for the state of every unit.

        ``since_ns``: what ended since then is reported though nobody watched; None: nothing is.
        """
        self._bus, self._report, self._reloading = bus, report, False
        for watched in self._watched.values():
            watched.asked, watched.detailed = 0, False
            watched.held.clear()
        for interface in (_UNIT, *_TYPES.values()):
            await bus.match(
                sender=NAME, interface=_PROPERTIES, member="PropertiesChanged",
                path_namespace=UNITS.rstrip("/"), arg0=interface,
            )  # fmt: skip
        await bus.match(sender=NAME, interface=_MANAGER, path=_MANAGER_PATH)
        await bus.ask(NAME, _MANAGER_PATH, _MANAGER, "Subscribe")
        await self._look_at_all(since_ns)

    def take(self, message: Message) -> None:
        """One signal of PID 1's."""
        member, body = message.member, message.body
        if member == "PropertiesChanged":
            self._changed(message.path or "", body[0], body[1])
        elif member == "JobNew":
            self._job_queued(body[1], body[2])
        elif member == "UnitNew":
            self._announced(body[0])
        elif member == "UnitRemoved":
            self._removed(body[0])
        elif member == "Reloading":
            self._reload(bool(body[0]))

    # What is signalled

    def _changed(self, path: str, interface: str, values: Mapping[str, Any]) -> None:
        """PID 1 signals a unit's own type first and the generic unit second: then it is whole."""
        name = unit_of(path)
        if name is None or not is_watched(name):
            return
        watched = self._watch(name)
        watched.removed = False
        watched.values.update((key, value.value) for key, value in values.items() if key in KEPT)
        if interface == _UNIT:
            self._arrived(watched)

    def _arrived(self, watched: _Watched) -> None:
        state = read_state(watched.unit.name, watched.values)
        # To ask for a unit that is gone makes PID 1 load it, and say so: only what is active is asked for.
        if not watched.detailed and (state.last_pid or state.active not in ("", "inactive")):
            self._ask_details(watched)
        watched.held.append(state)
        if not watched.asked or len(watched.held) > _MOST_HELD:
            self._release(watched)

    def _announced(self, name: str) -> None:
        """A unit is new; or the daemon was reloaded, and the unit's latest change came without values."""
        watched = self._watched.get(name)
        if watched is not None and watched.unit.alive:
            self._look_at(watched, None)

    def _removed(self, name: str) -> None:
        watched = self._watched.get(name)
        if watched is None or self._reloading:
            return
        watched.removed = True
        if not watched.asked:
            self._release(watched)

    def _reload(self, active: bool) -> None:
        """While PID 1 reads its units again it tells that all of them are removed; none of them ends."""
        self._reloading = active
        if not active:
            for watched in self._watched.values():
                watched.detailed = False

    def _job_queued(self, path: str, name: str) -> None:
        if name == "shutdown.target" and not self._shutting_down:
            self._shutting_down = True
            self._say([HostState(source=SOURCE, time_ns=self._timeline.now(), state="shutdown")])
        if not is_watched(name):
            return
        watched = self._watch(name)
        if not watched.detailed:
            self._ask_details(watched)  # it is loaded now, and may be gone again soon
        if not watched.unit.alive:
            return
        assert self._bus is not None
        self._hold(watched)
        self._bus.call(
            NAME, path, _PROPERTIES, "Get", "ss", _JOB, "JobType", then=partial(self._job_known, watched)
        )

    def _job_known(self, watched: _Watched, answer: Message) -> None:
        if is_error(answer):
            watched.unit.order("")
        elif (kind := str(answer.body[0].value)) in _ORDERS:
            watched.unit.order(_ORDERS[kind])
        self._answered(watched)

    def _watch(self, name: str) -> _Watched:
        watched = self._watched.get(name)
        if watched is None:
            watched = self._watched[name] = _Watched(Unit(name, self._timeline))
        return watched

    # What is asked

    def _ask_details(self, watched: _Watched) -> None:
        assert self._bus is not None
        watched.detailed = True
        name = watched.unit.name
        interface = _TYPES[name.rpartition(".")[2]]
        for key in _DETAILS:
            self._hold(watched)
            self._bus.call(
                NAME, _path(name), _PROPERTIES, "Get", "ss", interface, key,
                then=partial(self._detail_known, watched, key),
            )  # fmt: skip

    def _detail_known(self, watched: _Watched, key: str, answer: Message) -> None:
        if not is_error(answer):
            watched.details[key] = answer.body[0].value
        watched.unit.details = read_details(watched.unit.name, watched.details)
        self._answered(watched)

    async def _look_at_all(self, since_ns: int | None) -> None:
        assert self._bus is not None
        [rows] = await self._bus.ask(
            NAME, _MANAGER_PATH, _MANAGER, "ListUnitsByPatterns", "asas", [], _PATTERNS
        )
        names = [row[0] for row in rows if is_watched(row[0])]
        for name in self._watched.keys() - set(names):
            self._removed(name)
        for start in range(0, len(names), _ASKED_AT_ONCE):
            batch = names[start : start + _ASKED_AT_ONCE]
            waits = [self._look_at(self._watch(name), since_ns, first=True) for name in batch]
            await asyncio.wait(waits, timeout=_HELD_S)

    def _look_at(self, watched: _Watched, since_ns: int | None, first: bool = False) -> asyncio.Future[None]:
        """Ask for all properties of a unit. ``first``: what was over before ``since_ns`` is no news."""
        assert self._bus is not None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        name = watched.unit.name
        own = _TYPES[name.rpartition(".")[2]]
        self._hold(watched, 2)

        def own_known(answer: Message) -> None:
            if not is_error(answer):
                values = {key: value.value for key, value in answer.body[0].items()}
                watched.values.update((key, values[key]) for key in KEPT & values.keys())
                watched.details.update((key, values[key]) for key in _DETAILS if key in values)
                watched.unit.details = read_details(name, watched.details)
                watched.detailed = True
            self._answered(watched)

        def all_known(answer: Message) -> None:
            if not is_error(answer):
                values = answer.body[0]
                watched.values.update((key, values[key].value) for key in KEPT & values.keys())
                state = read_state(name, watched.values)
                if first:
                    self._catch_up(watched, state, since_ns)
                else:
                    watched.held.append(state)
            self._answered(watched)
            if not done.done():
                done.set_result(None)

        self._bus.call(NAME, _path(name), _PROPERTIES, "GetAll", "s", own, then=own_known)
        self._bus.call(NAME, _path(name), _PROPERTIES, "GetAll", "s", _UNIT, then=all_known)
        return done

    def _catch_up(self, watched: _Watched, state: UnitState, since_ns: int | None) -> None:
        pieces = self._pieces(watched, state)
        ends = [piece.time_ns for piece in pieces if isinstance(piece, RunEnded)]
        if watched.unit.alive or (since_ns is not None and any(end >= since_ns for end in ends)):
            self._say(pieces)

    # What is reported

    def _hold(self, watched: _Watched, answers: int = 1) -> None:
        watched.asked += answers
        asyncio.get_running_loop().call_later(_HELD_S, self._waited_enough, watched)

    def _answered(self, watched: _Watched) -> None:
        watched.asked = max(0, watched.asked - 1)
        if not watched.asked:
            self._release(watched)

    def _waited_enough(self, watched: _Watched) -> None:
        if watched.held or watched.removed:
            watched.asked = 0
            self._release(watched)

    def _release(self, watched: _Watched) -> None:
        while watched.held:
            state = watched.held.popleft()
            pieces = self._pieces(watched, state)
            self._say(pieces)
            for piece in pieces:
                if isinstance(piece, RunEnded):
                    self._on_end(state.invocation, piece)
        if watched.removed and self._watched.get(watched.unit.name) is watched:
            del self._watched[watched.unit.name]
            self._say(list(watched.unit.lost(f"{watched.unit.name} is gone, and its end was not told")))

    def _pieces(self, watched: _Watched, state: UnitState) -> list[Evidence]:
        pieces = list(watched.unit.take(state))
        if watched.unit.told:
            self._told[watched.unit.told] = None
            while len(self._told) > _MOST_TOLD:
                self._told.popitem(last=False)
        return pieces

    def _say(self, pieces: list[Evidence]) -> None:
        assert self._report is not None
        for piece in pieces:
            self._report(piece)


def _path(name: str) -> str:
    """A unit's object path (bus_label_escape() in systemd's src/shared/bus-util.c)."""
    label = "".join(
        char if char.isascii() and char.isalnum() and not (at == 0 and char.isdigit())
        else "".join(f"_{byte:02x}" for byte in char.encode())
        for at, char in enumerate(name)
    )  # fmt: skip
    return UNITS + label
