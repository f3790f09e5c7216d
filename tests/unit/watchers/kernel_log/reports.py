"""Reports of the OOM killer: their layout is that of real ones, ids and paths are made up."""

# Linux 6.1.170 in the lab, shortened
MEMCG = """\
stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
CPU: 1 PID: 812 Comm: stress Not tainted 6.1.0-41-cloud-amd64 #1  Debian 6.1.170-1
Hardware name: QEMU Standard PC (i440FX + PIIX, 1996), BIOS 1.16.2-debian-1.16.2-1 04/01/2014
Call Trace:
 <TASK>
 dump_stack_lvl+0x44/0x5c
memory: usage 65536kB, limit 65536kB, failcnt 41
swap: usage 0kB, limit 9007199254740988kB, failcnt 0
Memory cgroup stats for /ai.slice:
Tasks state (memory values in pages):
[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[    813]     0   813    18421    15932   180224        0             0 worker
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-77.scope,mems_allowed=0-1,\
oom_memcg=/ai.slice,task_memcg=/ai.slice/docker-77.scope,task=worker,pid=813,uid=1000
Memory cgroup out of memory: Killed process 813 (worker) total-vm:73684kB, anon-rss:61000kB, \
file-rss:2728kB, shmem-rss:4kB, UID:1000 pgtables:176kB oom_score_adj:-5
oom_reaper: reaped process 813 (worker), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
"""

# Linux 6.12
GLOBAL = """\
python3 invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0
CPU: 0 UID: 0 PID: 901 Comm: python3 Not tainted 6.12.117+deb12-cloud-amd64 #1
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,\
task_memcg=/system.slice/db.service,task=postgres,pid=77,uid=26
Out of memory: Killed process 77 (postgres) total-vm:1024kB, anon-rss:512kB, file-rss:0kB, \
shmem-rss:256kB, UID:26 pgtables:8kB oom_score_adj:0
"""

GROUP = """\
main invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
memory: usage 32768kB, limit 32768kB, failcnt 7
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/pod,\
task_memcg=/pod/c/inner,task=hog,pid=20,uid=0
Memory cgroup out of memory: Killed process 20 (hog) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB
Tasks in /pod/c are going to be killed due to memory.oom.group set
Memory cgroup out of memory: Killed process 19 (main) total-vm:9kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB
Memory cgroup out of memory: Killed process 20 (hog) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB
Memory cgroup out of memory: Killed process 21 (side) total-vm:9kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB
"""

# Linux 4.19, as in docker/for-linux#1001
OLD = """\
java invoked oom-killer: gfp_mask=0x6000c0(GFP_KERNEL), nodemask=(null), order=0, oom_score_adj=0
java cpuset=abc mems_allowed=0
CPU: 3 PID: 4242 Comm: java Tainted: G           OE     4.19.0-6-amd64 #1 Debian 4.19.67-2
Task in /docker/abc killed as a result of limit of /docker
memory: usage 131072kB, limit 131072kB, failcnt 12000
memory+swap: usage 131072kB, limit 9007199254740988kB, failcnt 0
kmem: usage 1000kB, limit 9007199254740988kB, failcnt 0
Memory cgroup out of memory: Kill process 4240 (java) score 985 or sacrifice child
Killed process 4240 (java) total-vm:200000kB, anon-rss:120000kB, file-rss:10kB, shmem-rss:0kB
"""
