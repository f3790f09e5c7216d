"""memory.stat, every key that kernels up to 6.18 print (mm/memcontrol.c, admin-guide/cgroup-v2.rst).

Amounts are in bytes, activity is in pages or events since the cgroup was made. Which keys there are
depends on the kernel and on how it was built (zswap, huge pages, NUMA balancing). A metric's rows
never overlap, so that their sum means something: what overlaps has a metric of its own.
"""

from __future__ import annotations

from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import FileTable, keys, rows
from cgotel.model import Series

_FILE = "memory.stat"
_RECLAIMERS = ("kswapd", "direct", "khugepaged", "proactive")

_AMOUNTS = {
    "shmem": ("memory.shmem", "Swap-backed file memory: tmpfs, shared memory"),
    "file_mapped": ("memory.mapped", "File memory mapped with mmap"),
    "file_dirty": ("memory.dirty", "File memory changed and not yet written back"),
    "file_writeback": ("memory.writeback", "File memory being written back"),
    "swapcached": ("memory.swap_cached", "Swapped memory that is cached as well"),
    "kernel_stack": ("memory.kernel_stack", "Kernel stacks"),
    "pagetables": ("memory.page_table", "Page tables"),
    "sec_pagetables": ("memory.secondary_page_table", "Page tables of KVM and of IOMMUs"),
    "percpu": ("memory.percpu", "Per-CPU kernel data"),
    "vmalloc": ("memory.vmalloc", "Kernel memory mapped by vmalloc"),
    "zswap": ("memory.zswap", "Memory that the zswap backend consumes"),
    "zswapped": ("memory.zswapped", "Memory that was swapped out to zswap, before compression"),
    "hugetlb": ("memory.hugetlb", "Pages of hugetlb, where the kernel charges them as memory"),
    "slab": ("memory.slab.size", "Kernel slab memory, reclaimable or not"),
}

_PAGES = {
    "pgscan": ("memory.reclaim.all_scanned_pages", "Pages that reclaim looked at, whoever reclaimed"),
    "pgsteal": ("memory.reclaim.all_reclaimed_pages", "Pages that reclaim freed, whoever reclaimed"),
    "pgrefill": ("memory.reclaim.refilled_pages", "Active pages that reclaim looked at"),
    "pgactivate": ("memory.reclaim.activated_pages", "Pages put on an active list"),
    "pgdeactivate": ("memory.reclaim.deactivated_pages", "Pages taken off an active list"),
    "pglazyfree": ("memory.lazy_free.marked_pages", "Pages given up with MADV_FREE"),
    "pglazyfreed": ("memory.lazy_free.freed_pages", "Pages given up with MADV_FREE that reclaim freed"),
    "pgpromote_success": ("memory.numa.promoted_pages", "Pages moved to a faster memory tier"),
    "numa_pages_migrated": ("memory.numa.migrated_pages", "Pages moved by NUMA balancing"),
    "zswpwb": ("zswap.written_back_pages", "Pages written from zswap to the swap device"),
}

_EVENTS = {
    "pgfault": ("memory.faults", "{fault}", "Page faults, minor and major together"),
    "workingset_nodereclaim": (
        "memory.reclaim.shadow_nodes",
        "{node}",
        "Nodes that kept evicted pages in mind, reclaimed themselves",
    ),
    "numa_pte_updates": (
        "memory.numa.pte_updates",
        "{update}",
        "Page table entries marked to see who uses them",
    ),
    "numa_hint_faults": (
        "memory.numa.hint_faults",
        "{fault}",
        "Faults on entries that NUMA balancing marked",
    ),
    "numa_task_migrated": ("memory.numa.migrated_tasks", "{task}", "Tasks moved by NUMA balancing"),
    "numa_task_swapped": ("memory.numa.swapped_tasks", "{task}", "Tasks exchanged by NUMA balancing"),
}


def table(family: Family) -> FileTable:
    """The file, for a cgroup of this family."""
    found = _amounts(family) | _refaults(family) | _reclaim(family) | _swapping(family) | _huge_pages(family)
    for key, (name, description) in _AMOUNTS.items():
        found[key] = family.updown(name, "By", description).series(f"{_FILE}.{key}")
    for key, (name, description) in _PAGES.items():
        found[key] = family.counter(name, "{page}", description).series(f"{_FILE}.{key}")
    for key, (name, unit, description) in _EVENTS.items():
        found[key] = family.counter(name, unit, description).series(f"{_FILE}.{key}")
    return keys(_FILE, found)


def _amounts(family: Family) -> dict[str, Series]:
    by_type = family.updown("memory.type.usage", "By", "Memory by what it holds; the types do not overlap")
    lru = family.updown("memory.lru.usage", "By", "Memory by reclaim list")
    slab = family.updown("memory.slab.usage", "By", "Kernel slab memory")
    lists = "inactive_anon active_anon inactive_file active_file unevictable"
    states = "slab_reclaimable=reclaimable slab_unreclaimable=unreclaimable"
    return (
        rows(_FILE, by_type, "cgroup.memory.type", "anon file kernel sock")
        | rows(_FILE, lru, "cgroup.memory.lru", lists)
        | rows(_FILE, slab, "system.memory.linux.slab.state", states)
    )


def _refaults(family: Family) -> dict[str, Series]:
    """What comes back after it was evicted (mm/workingset.c)."""
    refaults = family.counter("memory.refaults", "{page}", "Pages faulted in soon after they were evicted")
    activated = family.counter("memory.activated_refaults", "{page}", "Refaulted pages made active at once")
    restored = family.counter("memory.restored_refaults", "{page}", "Refaulted pages evicted while in use")
    kinds = {"refault": refaults, "activate": activated, "restore": restored}
    found: dict[str, Series] = {}
    for kind, instrument in kinds.items():
        by_type = f"workingset_{kind}_anon=anon workingset_{kind}_file=file"
        found |= rows(_FILE, instrument, "cgroup.memory.type", by_type)
    return found


def _reclaim(family: Family) -> dict[str, Series]:
    scanned = family.counter("memory.reclaim.scanned_pages", "{page}", "Pages that reclaim looked at")
    reclaimed = family.counter("memory.reclaim.reclaimed_pages", "{page}", "Pages that reclaim freed")
    demoted = family.counter("memory.numa.demoted_pages", "{page}", "Pages moved to a slower memory tier")
    found: dict[str, Series] = {}
    for kind, instrument in {"pgscan": scanned, "pgsteal": reclaimed, "pgdemote": demoted}.items():
        by_reclaimer = " ".join(f"{kind}_{who}={who}" for who in _RECLAIMERS)
        found |= rows(_FILE, instrument, "cgroup.memory.reclaimer", by_reclaimer)
    return found


def _swapping(family: Family) -> dict[str, Series]:
    faults = family.counter("paging.faults", "{fault}", "Page faults")
    swapped = family.counter("paging.operations", "{operation}", "Pages read from and written to swap")
    zeros = family.counter("paging.zero_pages", "{page}", "Pages of zeros swapped without any I/O")
    zswapped = family.counter("zswap.operations", "{operation}", "Pages taken out of and put into zswap")
    found = rows(_FILE, faults, "system.paging.fault.type", "pgmajfault=major")
    found |= rows(_FILE, swapped, "system.paging.direction", "pswpin=in pswpout=out")
    found |= rows(_FILE, zeros, "system.paging.direction", "swpin_zero=in swpout_zero=out")
    return found | rows(_FILE, zswapped, "system.paging.direction", "zswpin=in zswpout=out")


def _huge_pages(family: Family) -> dict[str, Series]:
    usage = family.updown("memory.thp.usage", "By", "Memory in transparent huge pages")
    made = family.counter("memory.thp.allocations", "{huge_page}", "Transparent huge pages allocated")
    swapped = family.counter("memory.thp.swap_outs", "{huge_page}", "Transparent huge pages swapped out")
    types = "anon_thp=anon file_thp=file shmem_thp=shmem"
    return (
        rows(_FILE, usage, "cgroup.memory.type", types)
        | rows(_FILE, made, "cgroup.memory.thp.cause", "thp_fault_alloc=fault thp_collapse_alloc=collapse")
        | rows(_FILE, swapped, "cgroup.memory.thp.outcome", "thp_swpout=whole thp_swpout_fallback=split")
    )
