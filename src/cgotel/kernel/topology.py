"""What the machine is made of, from sysfs and procfs: block devices, huge pages, CPUs, memory."""

from __future__ import annotations

import os
import re

from cgotel.kernel.files import read_once
from cgotel.kernel.formats import count_list, number
from cgotel.kernel.procfs import meminfo

_KIB = 1024
_DEVICE = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
_HUGE_PAGES = re.compile(r"hugepages-([0-9]{1,18})kB")


def block_device_name(sys: str, device: str) -> str:
    """``8:16`` as ``sdb`` by /sys/dev/block/8:16; the number itself where sysfs does not know it."""
    if _DEVICE.fullmatch(device) is None:
        return device
    try:
        target = os.readlink(f"{sys}/dev/block/{device}")
    except OSError:
        return device
    return os.path.basename(target).replace("!", "/")


def huge_page_sizes(sys: str) -> list[tuple[str, int]]:
    """Huge page sizes in bytes, labelled as hugetlb cgroup files are (``2MB``), smallest first.

    Source: /sys/kernel/mm/hugepages/hugepages-2048kB; labels as mm/hugetlb_cgroup.c makes them.
    """
    try:
        names = os.listdir(f"{sys}/kernel/mm/hugepages")
    except OSError:
        return []
    kib = sorted(int(size[1]) for name in names if (size := _HUGE_PAGES.fullmatch(name)))
    return [(_label(size), size * _KIB) for size in kib]


def _label(kib: int) -> str:
    if kib >= _KIB * _KIB:
        return f"{kib // (_KIB * _KIB)}GB"
    return f"{kib // _KIB}MB" if kib >= _KIB else f"{kib}KB"


def online_cpus(sys: str) -> int | None:
    """How many CPUs are online (/sys/devices/system/cpu/online); None if it cannot be read."""
    try:
        return count_list(read_once(f"{sys}/devices/system/cpu/online"))
    except OSError:
        return None


def numa_nodes(sys: str) -> list[int]:
    """The NUMA nodes there are (/sys/devices/system/node/node0), in order; none without NUMA support."""
    try:
        names = os.listdir(f"{sys}/devices/system/node")
    except OSError:
        return []
    return sorted(int(name[4:]) for name in names if name.startswith("node") and name[4:].isdecimal())


def memory(proc: str) -> dict[str, int]:
    """/proc/meminfo in bytes (``MemTotal``, ``MemAvailable``, ...); huge page counts stay counts."""
    try:
        return meminfo(read_once(f"{proc}/meminfo"))
    except OSError:
        return {}


def boot_time_ns(proc: str) -> int | None:
    """When the kernel booted (Unix time in nanoseconds), from ``btime`` in /proc/stat."""
    try:
        lines = read_once(f"{proc}/stat").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(b"btime "):
            seconds = number(line[6:])
            return seconds * 1_000_000_000 if isinstance(seconds, int) else None
    return None


def boot_id(proc: str) -> str:
    """A new one for each boot of the kernel (/proc/sys/kernel/random/boot_id); empty where nobody looks."""
    try:
        return read_once(f"{proc}/sys/kernel/random/boot_id").decode("ascii", "replace").strip()
    except OSError:
        return ""
