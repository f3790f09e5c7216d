"""What the Engine API sends, made plain (api.md of Docker, versions 1.41 to 1.52; Podman 4 and 5).

Times are Unix times in nanoseconds as the daemon's wall clock showed them; `Event` and `Container`
keep only what is used. A daemon that sends something else gives `ValueError`, never half a truth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

_ID = re.compile(r"[0-9a-f]{64}")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_POD, _NAMESPACE = "io.kubernetes.pod.name", "io.kubernetes.pod.namespace"
_LONGEST_TEXT = 1024
_RETRIES = 3  # what both engines take where a check names none

Text = str | None


class Event(NamedTuple):
    """One event about a container. ``topic`` is ``container`` or ``network``.

    ``detail`` is what follows the action's colon, or what it is about: the health, the old name.
    """

    container: str
    topic: str
    action: str
    wall_ns: int
    detail: str = ""
    name: str = ""
    image: str = ""
    code: int | None = None
    signal: str = ""
    pod: str = ""
    namespace: str = ""

    @property
    def key(self) -> str:
        """Tells it from all other events."""
        return f"{self.wall_ns} {self.action} {self.container[:12]}"


class _Actor(msgspec.Struct):
    id: str = msgspec.field(name="ID", default="")
    attributes: dict[str, Any] | None = msgspec.field(name="Attributes", default=None)


class _Event(msgspec.Struct):
    topic: str = msgspec.field(name="Type", default="")
    action: str = msgspec.field(name="Action", default="")
    actor: _Actor = msgspec.field(name="Actor", default_factory=_Actor)
    time: int = 0
    nanos: int = msgspec.field(name="timeNano", default=0)


_decode_event = msgspec.json.Decoder(_Event).decode


def event(line: bytes) -> Event | None:
    """One line of ``/events``; None if it is about no container. Raises `ValueError`."""
    raw = _decode_event(line)
    told: Mapping[str, Any] = raw.actor.attributes or {}
    container = _text(told, "container") if raw.topic == "network" else raw.actor.id
    if raw.topic not in ("container", "network") or not _ID.fullmatch(container):
        return None
    action, _, detail = raw.action.partition(": ")
    if action.startswith("exec_") or raw.topic == "network":
        detail = ""  # a command line, and it may hold a password
    network = raw.topic == "network"
    return Event(
        container,
        raw.topic,
        action[:64],
        raw.nanos or raw.time * 10**9,
        (detail or _text(told, "oldName").lstrip("/") or _text(told, "health_status"))[:_LONGEST_TEXT],
        "" if network else _text(told, "name"),
        "" if network else _text(told, "image"),
        _code(told),
        _text(told, "signal"),
        _text(told, _POD),
        _text(told, _NAMESPACE),
    )


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def _code(told: Mapping[str, Any]) -> int | None:
    """Docker says ``exitCode``; Podman ``containerExitCode`` too, which is 0 where it means nothing."""
    for key in ("exitCode", "containerExitCode"):
        value = _text(told, key)
        if re.fullmatch(r"-?\d{1,10}", value):
            return int(value)
    return None


class Probe(NamedTuple):
    """One run of a health check."""

    began: int
    ended: int
    code: int
    text: str


class Health(NamedTuple):
    """What a runtime knows of a container's health: its word, failures in a row, the last probes.

    After ``retries`` failures in a row it calls a container unhealthy.
    """

    status: str
    failures: int
    probes: tuple[Probe, ...]
    retries: int | None = None


class Container(NamedTuple):
    """A container as ``/containers/ID/json`` shows it. ``began`` and ``ended`` are of its last run,
    or ``ended`` of the one before where it runs again."""

    id: str
    name: str
    image: str
    image_id: str
    status: str
    running: bool
    pid: int | None
    code: int
    error: str
    oom_killed: bool | None
    began: int | None
    ended: int | None
    restart_count: int | None
    restart_policy: str
    cgroup_parent: str
    tty: bool
    pod: str
    namespace: str
    health: Health | None


class _Probe(msgspec.Struct):
    began: str = msgspec.field(name="Start", default="")
    ended: str = msgspec.field(name="End", default="")
    code: int = msgspec.field(name="ExitCode", default=0)
    output: Text = msgspec.field(name="Output", default="")


class _Health(msgspec.Struct):
    status: str = msgspec.field(name="Status", default="")
    failures: int = msgspec.field(name="FailingStreak", default=0)
    log: list[_Probe] | None = msgspec.field(name="Log", default=None)


class _State(msgspec.Struct):
    status: str = msgspec.field(name="Status", default="")
    running: bool = msgspec.field(name="Running", default=False)
    restarting: bool = msgspec.field(name="Restarting", default=False)
    pid: int = msgspec.field(name="Pid", default=0)
    oom_killed: bool | None = msgspec.field(name="OOMKilled", default=None)
    code: int = msgspec.field(name="ExitCode", default=0)
    error: Text = msgspec.field(name="Error", default="")
    began: str = msgspec.field(name="StartedAt", default="")
    ended: str = msgspec.field(name="FinishedAt", default="")
    health: _Health | None = msgspec.field(name="Health", default=None)


class _Check(msgspec.Struct):
    retries: int = msgspec.field(name="Retries", default=0)


class _Config(msgspec.Struct):
    image: Text = msgspec.field(name="Image", default="")
    check: _Check | None = msgspec.field(name="Healthcheck", default=None)
    tty: bool = msgspec.field(name="Tty", default=False)
    labels: dict[str, Any] | None = msgspec.field(name="Labels", default=None)


class _Policy(msgspec.Struct):
    name: Text = msgspec.field(name="Name", default="")


class _HostConfig(msgspec.Struct):
    policy: _Policy | None = msgspec.field(name="RestartPolicy", default=None)
    cgroup_parent: Text = msgspec.field(name="CgroupParent", default="")


class _Container(msgspec.Struct):
    id: str = msgspec.field(name="Id")
    state: _State = msgspec.field(name="State")
    name: Text = msgspec.field(name="Name", default="")
    image_id: Text = msgspec.field(name="Image", default="")
    restarts: int | None = msgspec.field(name="RestartCount", default=None)
    config: _Config | None = msgspec.field(name="Config", default=None)
    host: _HostConfig | None = msgspec.field(name="HostConfig", default=None)


_decode_container = msgspec.json.Decoder(_Container).decode


def container(body: bytes) -> Container:
    """One answer of ``/containers/ID/json``. Raises `ValueError`."""
    raw = _decode_container(body)
    state, config, host = raw.state, raw.config or _Config(), raw.host or _HostConfig()
    labels = config.labels or {}
    return Container(
        raw.id,
        (raw.name or "").lstrip("/"),
        config.image or "",
        raw.image_id or "",
        state.status,
        state.running and not state.restarting,  # Docker says both while it waits to restart
        state.pid or None,
        state.code,
        (state.error or "")[:_LONGEST_TEXT],
        state.oom_killed,
        stamp(state.began),
        stamp(state.ended),
        raw.restarts,
        (host.policy.name if host.policy else None) or "",
        host.cgroup_parent or "",
        config.tty,
        _text(labels, _POD),
        _text(labels, _NAMESPACE),
        _health(state.health, config.check),
    )


def _health(raw: _Health | None, check: _Check | None) -> Health | None:
    if raw is None or raw.status in ("", "none"):  # Podman 4 shows an empty one where there is no check
        return None
    probes = []
    for probe in raw.log or ():
        began, ended = stamp(probe.began), stamp(probe.ended)
        if began is not None and ended is not None:
            probes.append(Probe(began, ended, probe.code, (probe.output or "")[:_LONGEST_TEXT]))
    retries = None if check is None else check.retries or _RETRIES
    return Health(raw.status, raw.failures, tuple(probes), retries)


class Listed(NamedTuple):
    """One of ``/containers/json``."""

    id: str
    running: bool


class _Listed(msgspec.Struct):
    id: str = msgspec.field(name="Id")
    state: str = msgspec.field(name="State", default="")


_decode_list = msgspec.json.Decoder(list[_Listed]).decode


def listed(body: bytes) -> list[Listed]:
    """Every container there is. Raises `ValueError`."""
    alive = ("running", "paused", "stopping")
    return [Listed(one.id, one.state in alive) for one in _decode_list(body) if _ID.fullmatch(one.id)]


class About(NamedTuple):
    """A daemon: which engine it is, and where it puts containers' cgroups."""

    podman: bool
    systemd: bool
    rootless: bool


class _Component(msgspec.Struct):
    name: str = msgspec.field(name="Name", default="")


class _Version(msgspec.Struct):
    components: list[_Component] | None = msgspec.field(name="Components", default=None)


class _Info(msgspec.Struct):
    driver: Text = msgspec.field(name="CgroupDriver", default="")
    security: list[Any] | None = msgspec.field(name="SecurityOptions", default=None)


def about(version: bytes, info: bytes) -> About:
    """The answers of ``/version`` and ``/info``. Raises `ValueError`."""
    components = msgspec.json.decode(version, type=_Version).components or []
    told = msgspec.json.decode(info, type=_Info)
    rootless = any("rootless" in str(option) for option in told.security or [])
    podman = any("podman" in component.name.lower() for component in components)
    return About(podman, told.driver == "systemd", rootless)


def stamp(text: str) -> int | None:
    """``2026-12-01T15:47:12.612178372Z`` in nanoseconds; None for what is none, or the year 1."""
    match = _STAMP.fullmatch(text)
    if match is None or text.startswith("0001-"):
        return None
    zone = "+00:00" if match[3] == "Z" else match[3]
    try:
        seconds = int(datetime.fromisoformat(match[1] + zone).timestamp())
    except (ValueError, OverflowError):
        return None
    return seconds * 10**9 + int((match[2] or "0").ljust(9, "0"))
