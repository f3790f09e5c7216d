"""What killers in user space write to the journal: earlyoom and systemd-oomd.

A text alone proves nothing, anybody may log it: the unit that journald saw the writer in must be the
daemon's own, and so must its command. nohang writes the victim's pid into no line of its kill, so only
the tracepoint of the signal tells of it.
"""

from __future__ import annotations

import re

from cgotel.clock import Timeline
from cgotel.evidence import UserspaceOom
from cgotel.runtimes.systemd.entries import Entry
from cgotel.runtimes.systemd.units import SOURCE

EARLYOOM, OOMD = "earlyoom", "systemd-oomd"

UNITS = {"earlyoom.service": EARLYOOM, "systemd-oomd.service": OOMD}
"""The daemons' units, each with its command as the kernel has it."""

# earlyoom's kill.c; before 1.0: ``killing process 12 "T" with signal 15``. The victim's name comes later.
_PROCESS = re.compile(r"(?:sending (?P<signal>SIGTERM|SIGKILL) to|killing) process (?P<pid>[0-9]{1,9})\b")
# oomd-manager.c. A path may hold spaces, the reason does not repeat these words.
_CGROUP = re.compile(r"Killed (?P<cgroup>/.+?) due to (?P<reason>memory (?:used|pressure) .*)", re.DOTALL)
_REASON_LENGTH = 300


def read_kill(entry: Entry, timeline: Timeline) -> UserspaceOom | None:
    """The kill that an entry tells of, if it is one and comes from the daemon itself."""
    by = UNITS.get(entry.get("_SYSTEMD_UNIT"))
    if by is None or entry.get("_COMM") != by:
        return None
    message = entry.get("MESSAGE")
    time_ns = timeline.from_wall(entry.wall_ns)
    if by == OOMD:
        killed = _CGROUP.match(message)
        return killed and UserspaceOom(
            source=SOURCE,
            time_ns=time_ns,
            by=by,
            cgroup=killed["cgroup"],
            reason=killed["reason"][:_REASON_LENGTH],
        )
    process = _PROCESS.match(message)
    return process and UserspaceOom(
        source=SOURCE, time_ns=time_ns, by=by, pid=int(process["pid"]), reason=process["signal"] or ""
    )
