"""One exit with everything that was seen of it: all that a verdict is drawn from."""

from __future__ import annotations

import msgspec

from cgotel.evidence import AnyEvidence, Workload

_GRAIN_NS = 10_000_000  # a stamp that is told again may be some microseconds off, and no run is that short


class Exit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The end of one run of a workload, as its supervisor told it (times: Unix nanoseconds).

    ``code`` is the reported exit code (128+N may mean signal N, or a shell's word for it); ``signal``
    is set where the supervisor itself waited for the process. ``started`` False: it could not begin.
    ``past``: it happened while nobody watched, and was told afterwards.
    """

    workload: Workload
    ended_ns: int
    uncertainty_ns: int = 0
    began_ns: int | None = None
    code: int | None = None
    signal: int | None = None
    started: bool = True
    error: str = ""
    past: bool = False
    source: str = ""

    @property
    def uid(self) -> str:
        """The same for the same end, however often it is told."""
        return f"{self.workload.key}@{(self.began_ns or self.ended_ns) // _GRAIN_NS}"


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An exit, the evidence around it, and the sources that could not see, each with the reason."""

    exit: Exit
    evidence: tuple[AnyEvidence, ...] = ()
    silent: dict[str, str] = {}


def decode(line: bytes) -> Case:
    """A case from JSON. Raises `msgspec.DecodeError` or `msgspec.ValidationError`, which say where."""
    return msgspec.json.decode(line, type=Case)


def encode(case: Case) -> bytes:
    """A case as one line of JSON, without the line's end."""
    return msgspec.json.encode(case)
