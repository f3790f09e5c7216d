"""A NUMA node's memory: numastat and meminfo of /sys/devices/system/node/node0.

    numa_hit 14554469                   Node 0 MemTotal:        9529548 kB
    numa_miss 0                         Node 0 MemFree:         6098852 kB

numastat counts pages since boot (admin-guide/numastat.rst). What a node gave is a hit if it was
wanted from this node, a miss if it was wanted from another one; that other one counts it as foreign.
Seen from the CPU that asked, the same pages are local or other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cgotel.collectors.files import Silence
from cgotel.collectors.host.repeated import Metric, Repeated
from cgotel.collectors.instruments import Instruments, linux
from cgotel.collectors.tables import FileTable, keys, named
from cgotel.kernel import procfs
from cgotel.model import NO_ATTRIBUTES, AttributeValue

NO_NODES = Silence("this kernel knows no NUMA nodes", "a kernel with CONFIG_NUMA")

NODE = linux("memory", "node")
_RESULT = linux("memory", "result")
_LOCALITY = linux("memory", "locality")
_STATE = "system.memory.state"


class NodeTables:
    """The tables of the nodes."""

    def __init__(self, make: Instruments) -> None:
        self._files = (
            Repeated(make, "numastat", _numastat(), keys),
            Repeated(make, "meminfo", _meminfo(), partial(named, parse=procfs.meminfo)),
        )

    def of(self, node: int) -> list[FileTable]:
        """What is read of one node."""
        return [file.of(f"node{node}", {NODE: node}) for file in self._files]


def _numastat() -> dict[str, Metric]:
    given = "Pages that the node gave"
    return {
        "numa_hit": _pages("allocations", given, {_RESULT: "hit"}),
        "numa_miss": _pages("allocations", given, {_RESULT: "miss"}),
        "local_node": _pages("local_allocations", given, {_LOCALITY: "local"}),
        "other_node": _pages("local_allocations", given, {_LOCALITY: "other"}),
        "numa_foreign": _pages("foreign_allocations", "Pages wanted here, given by another node"),
        "interleave_hit": _pages("interleaved_allocations", "Pages given here in turn with other nodes"),
    }


def _meminfo() -> dict[str, Metric]:
    by_state = "Memory by state; used includes the page cache"
    return {
        "MemUsed": _bytes("usage", by_state, {_STATE: "used"}),
        "MemFree": _bytes("usage", by_state, {_STATE: "free"}),
        "FilePages": _bytes("cached", "Page cache and shared memory, a part of what is used"),
    }


def _pages(name: str, description: str, attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES) -> Metric:
    return Metric("counter", linux("memory", f"numa.{name}"), "{page}", description, attributes)


def _bytes(name: str, description: str, attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES) -> Metric:
    return Metric("updowncounter", linux("memory", f"numa.{name}"), "By", description, attributes)
