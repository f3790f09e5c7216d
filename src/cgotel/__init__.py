"""cgotel: what holds a Linux workload back, from the kernel's own files.

>>> import cgotel
>>> web = cgotel.read("nginx.service")
>>> web.metric("cgroup.memory.effective_limit"), web.attribute(
...     "cgroup.memory.effective_limit", "cgroup.limit.owner"
... )
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cgotel.contract import (
        Collector,
        CollectorSettings,
        Output,
        Roots,
        Settings,
        SourceStatus,
        State,
        Tick,
        Unavailable,
    )
    from cgotel.hookspecs import hookimpl
    from cgotel.library import read, snapshot
    from cgotel.model import Entity, Event, Instrument, Reading, Series, Sweep

_HOMES = {
    "cgotel.contract": (
        "Collector",
        "CollectorSettings",
        "Output",
        "Roots",
        "Settings",
        "SourceStatus",
        "State",
        "Tick",
        "Unavailable",
    ),
    "cgotel.hookspecs": ("hookimpl",),
    "cgotel.library": ("read", "snapshot"),
    "cgotel.model": ("Entity", "Event", "Instrument", "Reading", "Series", "Sweep"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Collector",
    "CollectorSettings",
    "Entity",
    "Event",
    "Instrument",
    "Output",
    "Reading",
    "Roots",
    "Series",
    "Settings",
    "SourceStatus",
    "State",
    "Sweep",
    "Tick",
    "Unavailable",
    "__version__",
    "hookimpl",
    "read",
    "snapshot",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use: `cgotel snapshot` must not pay for what it leaves."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value
