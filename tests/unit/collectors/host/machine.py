"""A machine as a tree of files: two NUMA nodes, swap on zram and on a disk, memory in pieces.

The contents are a Linux 6.18's, as recorded, with a second node and other numbers put in.
"""

from pathlib import Path

from cgotel.kernel.roots import Roots

MEMINFO = """\
MemTotal:       24684084 kB
MemFree:        21253336 kB
MemAvailable:   23790728 kB
Buffers:          158192 kB
Cached:          2367776 kB
SwapCached:            0 kB
Active(anon):       1596 kB
SwapTotal:       1114104 kB
SwapFree:        1113976 kB
Shmem:              8872 kB
KReclaimable:     331068 kB
Slab:             367504 kB
SReclaimable:     331068 kB
SUnreclaim:        36436 kB
VmallocTotal:   34359738367 kB
HugePages_Total:      16
HugePages_Free:       10
HugePages_Rsvd:        2
HugePages_Surp:        1
Hugepagesize:       2048 kB
Hugetlb:           32768 kB
DirectMap4k:       28672 kB
"""

SWAPS = """\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/zram1                              partition\t65532\t\t128\t\t5
/swapfile                               file\t\t1048572\t\t0\t\t-2
"""

VMSTAT = """\
nr_free_pages 1524713
nr_dirty 64371
numa_hit 14553383
nr_dirtied 3469460
pswpin 41
pswpout 97
allocstall_dma 0
allocstall_dma32 0
allocstall_normal 7
allocstall_movable 3
pgfault 13772708
pgmajfault 2610
pgscan_direct 512
oom_kill 2
compact_stall 9
compact_fail 4
compact_success 5
thp_fault_fallback 17
workingset_nodes 39347
"""

STAT = """\
cpu  30848 5358 16712 360610 2002 0 766 94 0 0
cpu0 15424 2679 8356 180305 1001 0 383 47 0 0
cpu1 15424 2679 8356 180305 1001 0 383 47 0 0
intr 1333478 0 0 0 26 417 258 0 46 1 429544 0
ctxt 3145145
btime 1796097889
processes 51670
procs_running 9
procs_blocked 2
softirq 774408 0 53331 10 40533 429534 0 1711 103392 0 145897
"""

LOADAVG = "3.14 1.04 0.48 8/133 19202\n"

BUDDYINFO = (
    "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n"
    "Node 0, zone   Normal   5559  13099   8996  10106   7925   3837   1330    468    203     16    338 \n"
    "Node 1, zone   Normal      2      2   1278    265    101     60     32     19     14      6    709 \n"
)

NODE_MEMINFO = """\

Node {node} MemTotal:       12342042 kB
Node {node} MemFree:        {free} kB
Node {node} MemUsed:        {used} kB
Node {node} SwapCached:            0 kB
Node {node} FilePages:       1262984 kB
Node {node} HugePages_Total:     8
"""

NUMASTAT = """\
numa_hit 14554469
numa_miss {miss}
numa_foreign {foreign}
interleave_hit 1128
local_node 14554400
other_node 69
"""

MM_STAT = " ".join(9 * ["{:8}"]) + "\n"

FILES = {
    "proc/meminfo": MEMINFO,
    "proc/swaps": SWAPS,
    "proc/vmstat": VMSTAT,
    "proc/stat": STAT,
    "proc/loadavg": LOADAVG,
    "proc/buddyinfo": BUDDYINFO,
    "proc/sys/kernel/hostname": "two-nodes\n",
    "proc/sys/kernel/random/boot_id": "5db14c8c-f155-4ba8-a098-ee5fa6011d06\n",
    "sys/devices/system/node/online": "0-1\n",
    "sys/devices/system/node/node0/meminfo": NODE_MEMINFO.format(node=0, free=6098852, used=6243190),
    "sys/devices/system/node/node0/numastat": NUMASTAT.format(miss=0, foreign=12),
    "sys/devices/system/node/node1/meminfo": NODE_MEMINFO.format(node=1, free=1024, used=12341018),
    "sys/devices/system/node/node1/numastat": NUMASTAT.format(miss=12, foreign=0),
    "sys/block/zram0/initstate": "0\n",
    "sys/block/zram0/mm_stat": MM_STAT.format(*9 * [0]),
    "sys/block/zram1/initstate": "1\n",
    "sys/block/zram1/mm_stat": MM_STAT.format(5074944, 2382963, 3129344, 0, 3133440, 512, 4, 273, 290),
    "sys/block/zram1/io_stat": "       1        2 3        4\n",
    "sys/block/zram1/bd_stat": "      12      345       67\n",
    "sys/block/vda/size": "41943040\n",
}


def write(root: Path, files: dict[str, str]) -> None:
    """Write files below ``root``, with the directories they need."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def roots(root: Path) -> Roots:
    """Where the tree's /proc and /sys are."""
    return Roots(proc=str(root / "proc"), sys=str(root / "sys"), cgroup=None)
