"""systemd's units: slices, services, scopes, sessions, user managers.

A unit's cgroup is named after it, with one ``_`` before a name that the kernel could mistake for a
file of its own (cg_escape() in systemd's src/basic/cgroup-util.c).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cgotel.identity.facts import NOTHING, SESSION_ID, UNIT_NAME, USER_ID, Found, Kind

_NAME = re.compile(r"[A-Za-z0-9:_.\\@-]+\.[a-z]+")
_SLICE = re.compile(r"[A-Za-z0-9:_.\\]+(?:-[A-Za-z0-9:_.\\]+)*\.slice")
_USER_SLICE = re.compile(r"user-([0-9]+)\.slice")
_USER_MANAGER = re.compile(r"user@([0-9]+)\.service")
_SESSION = re.compile(r"session-([A-Za-z0-9]+)\.scope")


def slice_(name: str, above: Sequence[str]) -> Found | None:
    """A slice; ``user-UID.slice`` tells whose everything below it is."""
    if _SLICE.fullmatch(name) is None:
        return None
    user = _USER_SLICE.fullmatch(name)
    return slice_with(name, NOTHING if user is None else {USER_ID: user[1]})


def slice_with(name: str, attributes: Mapping[str, str]) -> Found:
    """A slice that tells something about all that lies in it."""
    return Found("slice", attributes, {UNIT_NAME: _plain(name)})


def service(name: str, above: Sequence[str]) -> Found | None:
    """A service; ``user@UID.service`` is that user's manager."""
    manager = _USER_MANAGER.fullmatch(name)
    if manager is not None:
        return Found("user_manager", {UNIT_NAME: name, USER_ID: manager[1]})
    return _unit("service", name)


def scope(name: str, above: Sequence[str]) -> Found | None:
    """A scope; ``session-ID.scope`` is a login session."""
    session = _SESSION.fullmatch(name)
    if session is not None:
        return Found("session", {UNIT_NAME: name, SESSION_ID: session[1]})
    return _unit("scope", name)


def mount(name: str, above: Sequence[str]) -> Found | None:
    """A mount unit."""
    return _unit("mount", name)


def socket(name: str, above: Sequence[str]) -> Found | None:
    """A socket unit."""
    return _unit("socket", name)


def swap(name: str, above: Sequence[str]) -> Found | None:
    """A swap unit."""
    return _unit("swap", name)


def _unit(kind: Kind, name: str) -> Found | None:
    return Found(kind, {UNIT_NAME: _plain(name)}) if _NAME.fullmatch(name) else None


def _plain(name: str) -> str:
    return name.removeprefix("_")
