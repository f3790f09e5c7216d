"""A cgroup as Linux 6.12 shows it, with every controller: what each file says, key by key."""

ROOT = {
    "cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc dmem\n",
    "cgroup.procs": "1\n2\n",
    "cgroup.stat": "nr_descendants 4\nnr_dying_descendants 0\n",
    "cpu.stat": "usage_usec 90000000\nuser_usec 60000000\nsystem_usec 30000000\nnice_usec 0\n",
}

LEAF = {
    "cgroup.events": "populated 1\nfrozen 0\n",
    "cgroup.procs": "412\n413\n999\n",
    "cgroup.stat": """\
nr_descendants 2
nr_subsys_cpuset 1
nr_subsys_memory 1
nr_dying_descendants 1
nr_dying_subsys_cpuset 0
nr_dying_subsys_memory 3
""",
    "cgroup.stat.local": "frozen_usec 1500000\n",
    "cpu.stat": """\
usage_usec 27381000
user_usec 11000000
system_usec 16381000
nice_usec 250000
core_sched.force_idle_usec 125000
nr_periods 12
nr_throttled 5
throttled_usec 380113
nr_bursts 2
burst_usec 7000
""",
    "cpu.stat.local": "throttled_usec 400000\n",
    "cpu.max": "150000 100000\n",
    "cpu.weight": "100\n",
    "cpu.pressure": """\
some avg10=1.50 avg60=1.02 avg300=0.46 total=1912493
full avg10=0.25 avg60=0.10 avg300=0.00 total=912493
""",
    "cpuset.cpus.effective": "0-2,7\n",
    "cpuset.mems.effective": "0-1\n",
    "io.stat": """\
8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=4096 dios=1 cost.usage=9
8:0 \n\
""",
    "io.max": "8:16 rbps=2097152 wbps=max riops=max wiops=120\n",
    "io.weight": "default 100\n8:16 200\n",
    "io.latency": "8:16 target=75000\n",
    "io.pressure": """\
some avg10=0.00 avg60=0.00 avg300=0.00 total=11
full avg10=0.00 avg60=0.00 avg300=0.00 total=7
""",
    "irq.pressure": "full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
    "memory.current": "104857600\n",
    "memory.max": "268435456\n",
    "memory.high": "209715200\n",
    "memory.low": "1048576\n",
    "memory.min": "0\n",
    "memory.peak": "157286400\n",
    "memory.swap.current": "4096\n",
    "memory.swap.max": "8192\n",
    "memory.swap.high": "6144\n",
    "memory.swap.peak": "5120\n",
    "memory.swap.events": "high 1\nmax 2\nfail 3\n",
    "memory.zswap.current": "2048\n",
    "memory.zswap.max": "1024\n",
    "memory.events": "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\nsock_throttled 7\n",
    "memory.events.local": """\
low 11
high 12
max 13
oom 14
oom_kill 15
oom_group_kill 16
sock_throttled 17
""",
    "memory.pressure": """\
some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000
full avg10=0.00 avg60=0.00 avg300=0.00 total=500000
""",
    "memory.stat": """\
anon 33554432
file 67108864
kernel 3145728
kernel_stack 32768
pagetables 65536
sec_pagetables 1000
percpu 1001
sock 4096
vmalloc 1002
shmem 1003
zswap 1004
zswapped 1005
file_mapped 1006
file_dirty 1007
file_writeback 1008
swapcached 1009
anon_thp 2097152
file_thp 1010
shmem_thp 1011
inactive_anon 1012
active_anon 1013
inactive_file 4857600
active_file 1014
unevictable 1015
hugetlb 4194304
slab_reclaimable 1016
slab_unreclaimable 1017
slab 2033
workingset_refault_anon 1018
workingset_refault_file 1019
workingset_activate_anon 2001
workingset_activate_file 2002
workingset_restore_anon 2003
workingset_restore_file 2004
workingset_nodereclaim 2005
pgdemote_kswapd 2006
pgdemote_direct 2007
pgdemote_khugepaged 2008
pgdemote_proactive 2032
pgpromote_success 2009
pgscan 6
pgsteal 60
pgscan_kswapd 1
pgscan_direct 2
pgscan_khugepaged 3
pgscan_proactive 4
pgsteal_kswapd 10
pgsteal_direct 20
pgsteal_khugepaged 30
pgsteal_proactive 40
pgfault 1100
pgmajfault 100
pgrefill 2010
pgactivate 2011
pgdeactivate 2012
pglazyfree 2013
pglazyfreed 2014
pswpin 2033
pswpout 2034
swpin_zero 2015
swpout_zero 2016
zswpin 2017
zswpout 2018
zswpwb 2019
thp_fault_alloc 2020
thp_collapse_alloc 2021
thp_swpout 2022
thp_swpout_fallback 2023
numa_pages_migrated 2024
numa_pte_updates 2025
numa_hint_faults 2026
numa_task_migrated 2030
numa_task_swapped 2031
""",
    "memory.numa_stat": """\
anon N0=33550000 N1=4432
file N0=67108864 N1=0
kernel_stack N0=32768 N1=0
""",
    "pids.current": "7\n",
    "pids.max": "64\n",
    "pids.peak": "9\n",
    "pids.events": "max 2\n",
    "pids.events.local": "max 1\n",
    "hugetlb.2MB.current": "4194304\n",
    "hugetlb.2MB.max": "8388608\n",
    "hugetlb.2MB.rsvd.current": "2097152\n",
    "hugetlb.2MB.events": "max 4\n",
    "rdma.current": "mlx4_0 hca_handle=2 hca_object=2000 \n",
    "rdma.max": "mlx4_0 hca_handle=3 hca_object=max \n",
    "misc.current": "res_a 3\n",
    "misc.max": "res_a 4\nres_b max\n",
    "misc.peak": "res_a 5\n",
    "misc.capacity": "res_a 50\n",
    "misc.events": "res_a.max 6\n",
    "dmem.current": "drm/0000:03:00.0/vram0 8650752\n",
    "dmem.max": "drm/0000:03:00.0/vram0 8650753\ndrm/0000:03:00.0/stolen max\n",
    "dmem.capacity": "drm/0000:03:00.0/vram0 8514437120\n",
}

SYS = {
    "devices": {"system": {"cpu": {"online": "0-7\n"}}},
    "kernel": {"mm": {"hugepages": {"hugepages-2048kB": {}}}},
}

PROC = {
    "meminfo": "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n",
    "stat": "cpu  1 2 3 4\nbtime 1764561600\n",
}
