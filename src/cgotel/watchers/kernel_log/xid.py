"""What the NVIDIA driver says of its GPUs: Xid lines, and the one loss that comes without a number.

Forms of drivers 3xx to 5xx. ``pid`` and ``name`` are those of the process that made the channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgotel.evidence import Evidence, GpuState, GpuXid
from cgotel.watchers.kernel_log.line import NAME, Line

_LONGEST_TEXT = 300

_DEVICE = r"(?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2})?(?:\.[0-9a-fA-F])?)"
_XID = re.compile(rf"NVRM: Xid \({_DEVICE}(?: GPU-[^)]*)?\): (\d+)(?:, (.*))?", re.DOTALL)
_PROCESS = re.compile(r"pid=(?:(\d+)|'?<unknown>'?)(?:, |$)", re.DOTALL)
_NAME = re.compile(r"name=(?:'?<unknown>'?|(.{0,15}?))(?:, |$)", re.DOTALL)
_LOST = re.compile(rf"NVRM: GPU (?:at )?{_DEVICE}: GPU has fallen off the bus\.?", re.DOTALL)


def read(line: Line) -> Iterator[Evidence]:
    """``NVRM: Xid (PCI:0000:65:00): 31, pid=1234, name=python3, Ch 00000008, MMU Fault: …``."""
    if found := _XID.fullmatch(line.text):
        pid, comm, text = _process(found[3] or "")
        yield GpuXid(
            source=NAME, time_ns=line.time_ns, uncertainty_ns=line.uncertainty_ns,
            xid=int(found[2]), device=found[1].lower(), pid=pid, comm=comm, text=text[:_LONGEST_TEXT],
        )  # fmt: skip
    elif found := _LOST.match(line.text):
        yield GpuState(
            source=NAME, time_ns=line.time_ns, uncertainty_ns=line.uncertainty_ns,
            device=found[1].lower(), state="lost", text=line.text[:_LONGEST_TEXT],
        )  # fmt: skip


def _process(rest: str) -> tuple[int | None, str, str]:
    """The process in front of a message, and the message; 0 stands for none."""
    comm = ""
    found = _PROCESS.match(rest)
    if found is None:
        return None, comm, rest
    pid = int(found[1]) if found[1] else None
    rest = rest[found.end() :]
    if named := _NAME.match(rest):
        comm = named[1] or ""
        rest = rest[named.end() :]
    return pid or None, comm, rest
