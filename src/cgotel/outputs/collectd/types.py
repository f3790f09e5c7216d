"""The types of values that cgotel gives to collectd, in the words of types.db(5).

A value beyond its type's range becomes NaN in collectd's cache, where thresholds and most writers
look. So a stock type is used only where what it measures stays within it, and cgotel brings a type
of its own for what does not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

_STOCK = """\
count                 value:GAUGE:0:U
derive                value:DERIVE:0:U
disk_octets           read:DERIVE:0:U, write:DERIVE:0:U
disk_ops              read:DERIVE:0:U, write:DERIVE:0:U
errors                value:DERIVE:0:U
fork_rate             value:DERIVE:0:U
freepages             value:GAUGE:0:U
frequency             value:GAUGE:0:U
gauge                 value:GAUGE:U:U
load                  shortterm:GAUGE:0:5000, midterm:GAUGE:0:5000, longterm:GAUGE:0:5000
memory                value:GAUGE:0:281474976710656
percent               value:GAUGE:0:100.1
power                 value:GAUGE:U:U
ps_cputime            user:DERIVE:0:U, syst:DERIVE:0:U
ps_state              value:GAUGE:0:65535
swap_io               value:DERIVE:0:U
temperature           value:GAUGE:U:U
threads               value:GAUGE:0:U
total_bytes           value:DERIVE:0:U
total_events          value:DERIVE:0:U
total_operations      value:DERIVE:0:U
total_time_in_ms      value:DERIVE:0:U
vmpage_action         value:DERIVE:0:U
vmpage_faults         minflt:DERIVE:0:U, majflt:DERIVE:0:U
vmpage_number         value:GAUGE:0:4294967295
"""

_OWN = """\
# What a limit leaves, in its own unit. Below 0 where use stands above memory.high, or above a limit
# that was lowered: `memory` would make that NaN.
cgotel_headroom       value:GAUGE:U:U
# Use as a percentage of a limit. Above 100 in a burst: `percent` would make that NaN.
cgotel_utilization    value:GAUGE:0:U
"""

TYPES_DB = f"""\
# Types of cgotel's values that collectd's own types.db does not hold.
# Made by `cgotel collectd-config --types-db`; do not edit.
{_OWN}"""
"""The content of cgotel.types.db."""

_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class DataSource:
    """One of a type's numbers: a double as it is, or a 64-bit count of which collectd makes a rate."""

    name: str
    kind: Literal["GAUGE", "DERIVE", "COUNTER", "ABSOLUTE"]
    minimum: float
    maximum: float


def parse(text: str) -> dict[str, tuple[DataSource, ...]]:
    """The types of a types.db: name -> data sources."""
    types = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, sources = line.split(None, 1)
            types[name] = tuple(map(_data_source, sources.replace(",", " ").split()))
    return types


def _data_source(text: str) -> DataSource:
    name, kind, low, high = text.split(":")
    assert kind in ("GAUGE", "DERIVE", "COUNTER", "ABSOLUTE"), kind
    minimum = -sys.float_info.max if low == "U" else float(low)
    maximum = sys.float_info.max if high == "U" else float(high)
    if kind == "DERIVE":
        minimum, maximum = max(minimum, -_INT64_MAX), min(maximum, _INT64_MAX)
    return DataSource(name, kind, minimum, maximum)  # type: ignore[arg-type]


STOCK: Mapping[str, tuple[DataSource, ...]] = parse(_STOCK)
"""The types that every collectd has, as far as they are used."""

OWN: Mapping[str, tuple[DataSource, ...]] = parse(_OWN)
"""The types of cgotel.types.db."""

TYPES: Mapping[str, tuple[DataSource, ...]] = {**STOCK, **OWN}

EVENT_TYPE = "total_events"
"""The type that a notification carries: it must have one that types.db knows."""
