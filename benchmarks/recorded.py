"""What Linux 6.12 prints for a busy container, file by file, and how it moves from round to round.

Twenty files of metrics and cgroup.procs. Limits stay as they are, as they do in life; every counter
and every amount that is not zero moves, by a different step in every cgroup.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LIMITS = {
    "cgroup.events": "populated 1\nfrozen 0\n",
    "cgroup.procs": "48113\n48190\n48191\n",
    "cpu.max": "150000 100000\n",
    "memory.high": "max\n",
    "memory.max": "536870912\n",
    "memory.swap.max": "268435456\n",
    "pids.max": "4096\n",
}

_MOVING = {
    "cpu.stat": (
        "usage_usec 8123456789\nuser_usec 6023456120\nsystem_usec 2100000669\n"
        "core_sched.force_idle_usec 0\nnr_periods 812345\nnr_throttled 10234\n"
        "throttled_usec 512345678\nnr_bursts 0\nburst_usec 0\n"
    ),
    "cpu.stat.local": "throttled_usec 612345678\n",
    "cpu.pressure": (
        "some avg10=1.02 avg60=0.81 avg300=0.46 total=191249341\n"
        "full avg10=0.71 avg60=0.52 avg300=0.31 total=101249341\n"
    ),
    "memory.pressure": (
        "some avg10=0.11 avg60=0.04 avg300=0.01 total=8812493\n"
        "full avg10=0.09 avg60=0.02 avg300=0.01 total=7312493\n"
    ),
    "io.pressure": (
        "some avg10=2.20 avg60=1.43 avg300=0.98 total=291249341\n"
        "full avg10=1.71 avg60=1.12 avg300=0.71 total=231249341\n"
    ),
    "io.stat": (
        "254:0 rbytes=1459200512 wbytes=3147735040 rios=19212 wios=35311 dbytes=0 dios=0\n"
        "259:1 rbytes=459200512 wbytes=147735040 rios=9212 wios=5311 dbytes=0 dios=0\n"
    ),
    "memory.current": "312475648\n",
    "memory.peak": "498475008\n",
    "memory.swap.current": "8454144\n",
    "memory.events": ("low 0\nhigh 1280\nmax 312\noom 2\noom_kill 1\noom_group_kill 0\nsock_throttled 0\n"),
    "memory.events.local": (
        "low 0\nhigh 1280\nmax 312\noom 2\noom_kill 1\noom_group_kill 0\nsock_throttled 0\n"
    ),
    "memory.swap.events": "high 0\nmax 12\nfail 3\n",
    "pids.current": "57\n",
    "memory.stat": (
        "anon 181231616\nfile 103129088\nkernel 22806528\nkernel_stack 933888\npagetables 2805760\n"
        "sec_pagetables 0\npercpu 36288\nsock 122880\nvmalloc 8192\nshmem 4325376\nzswap 1294336\n"
        "zswapped 8454144\nfile_mapped 53116928\nfile_dirty 1032192\nfile_writeback 135168\n"
        "swapcached 1310720\nanon_thp 62914560\nfile_thp 0\nshmem_thp 0\ninactive_anon 32505856\n"
        "active_anon 153051136\ninactive_file 63700992\nactive_file 35102720\nunevictable 0\n"
        "slab_reclaimable 14295040\nslab_unreclaimable 4312064\nslab 18607104\n"
        "workingset_refault_anon 1204\nworkingset_refault_file 88123\n"
        "workingset_activate_anon 320\nworkingset_activate_file 40211\n"
        "workingset_restore_anon 12\nworkingset_restore_file 20133\nworkingset_nodereclaim 640\n"
        "pgdemote_kswapd 0\npgdemote_direct 0\npgdemote_khugepaged 0\n"
        "pgscan 512345\npgsteal 412345\npgscan_kswapd 402345\npgscan_direct 110000\n"
        "pgscan_khugepaged 0\npgsteal_kswapd 322345\npgsteal_direct 90000\npgsteal_khugepaged 0\n"
        "pgfault 9123456\npgmajfault 8123\npgrefill 212345\npgactivate 182345\npgdeactivate 172345\n"
        "pglazyfree 1204\npglazyfreed 302\nswpin_zero 120\nswpout_zero 4210\nzswpin 2064\nzswpout 4128\n"
        "zswpwb 0\nthp_fault_alloc 120\nthp_collapse_alloc 31\nthp_swpout 0\nthp_swpout_fallback 2\n"
    ),
}

_NUMBER = re.compile(r"(?<=[ =])\d{2,}(?![.:\d])|^\d{2,}$", re.MULTILINE)

FILES = tuple(sorted(_LIMITS | _MOVING))
MOVING = tuple(sorted(_MOVING))
SLICE = {"memory.max": "68719476736\n", "pids.max": "16384\n", "cpu.max": "max 100000\n"}
"""What the parent of such containers says otherwise."""


def contents(cgroup: int, over: Mapping[str, str]) -> dict[str, str]:
    """Every file of one cgroup before the first round, some of them ``over``ridden."""
    return {**_LIMITS, **moved(cgroup, -1), **over}


def moved(cgroup: int, round_number: int) -> dict[str, str]:
    """The moving files of one cgroup in one round: no two rounds print the same."""
    step = 1 + cgroup % 97 + (round_number + 2) * (3 + cgroup % 13)

    def grown(match: re.Match[str]) -> str:
        return str(int(match[0]) * (1000 + cgroup % 17) // 1000 + step)

    return {file: _NUMBER.sub(grown, text) for file, text in _MOVING.items()}
