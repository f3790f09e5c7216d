"""Which cgroups are reported: by path, depth and kind."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PARTS = re.compile(r"\[(?P<negated>!?)(?P<members>[^\]]+)\]|.", re.DOTALL)
_MEMBERS = re.compile(r"(.)-(.)|(.)", re.DOTALL)


class BadGlobError(ValueError):
    """A path pattern that cannot be meant."""


def compile_globs(globs: Iterable[str]) -> re.Pattern[str] | None:
    """One pattern for all of them; None without any. Raises `BadGlobError`.

    ``*``, ``?`` and ``[...]`` stay within one path segment, ``**`` spans any number of segments.
    Paths start at the cgroup root: ``/system.slice/*.service``.
    """
    expressions = [_expression(glob) for glob in globs]
    return re.compile("|".join(expressions)) if expressions else None


def _expression(glob: str) -> str:
    if not glob.startswith(("/", "**")):
        raise BadGlobError(f"{glob!r} must begin with '/' (a path from the cgroup root) or '**'")
    segments = glob.removeprefix("/").rstrip("/").split("/")
    try:
        expression = "".join(map(_segment, segments))
        spans_all = re.compile(expression).fullmatch("")
    except re.error as error:
        raise BadGlobError(f"{glob!r} cannot be read: {error.msg}") from error
    return f"{expression}|/" if spans_all else expression


def _segment(segment: str) -> str:
    if segment == "**":
        return "(?:/[^/]+)*"
    return "/" + _PARTS.sub(_part, segment)


def _part(part: re.Match[str]) -> str:
    text, members = part.group(), part.group("members")
    if members is not None:
        negated = "^/" if part.group("negated") else ""
        return f"[{negated}{_MEMBERS.sub(_escaped, members)}]"
    if text == "[":
        raise re.error("'[' without ']'")
    return {"*": "[^/]*", "?": "[^/]"}.get(text) or re.escape(text)


def _escaped(member: re.Match[str]) -> str:
    """One member of a ``[...]``, or a range of them: nothing else has a meaning there."""
    return "-".join(map(re.escape, filter(None, member.groups())))


class Selection:
    """Decides which cgroups are walked into and which are reported."""

    def __init__(
        self,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        kinds: Iterable[str] = (),
        max_depth: int | None = None,
    ) -> None:
        self._include = compile_globs(include)
        self._exclude = compile_globs(exclude)
        self._kinds = frozenset(kinds)
        self._max_depth = max_depth

    def enters(self, path: str, depth: int) -> bool:
        """Whether to look into a cgroup at all: an excluded one hides everything below it."""
        if self._max_depth is not None and depth > self._max_depth:
            return False
        return self._exclude is None or self._exclude.fullmatch(path) is None

    def reports(self, path: str, kind: str) -> bool:
        """Whether a cgroup that was entered is reported, and not only read for its limits."""
        if self._kinds and kind not in self._kinds:
            return False
        return self._include is None or self._include.fullmatch(path) is not None
