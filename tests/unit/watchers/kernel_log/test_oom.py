"""OOM kills from whole logs: the victim, the trigger, the limit's owner, and nothing that was not said."""

import pytest
from tests.unit.watchers.kernel_log import reports
from tests.unit.watchers.kernel_log.told import BOOTED_NS, record, records, stamps, told

from cgotel.evidence import Gap, OomKill
from cgotel.watchers.kernel_log.line import Line
from cgotel.watchers.kernel_log.oom import OomReports
from cgotel.watchers.kernel_log.reader import Reader

SIZES = "total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0"


def kills(text: str) -> list[OomKill]:
    found = told(text)
    assert all(isinstance(evidence, OomKill) for evidence in found)
    return found


def header(pid: int, comm: str = "hog", cgroup: str = "/a/b", limit: str = "/a") -> str:
    return (
        "asker invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=b,mems_allowed=0,"
        f"oom_memcg={limit},task_memcg={cgroup},task={comm},pid={pid},uid=0\n"
    )


def killed(pid: int, comm: str = "hog", message: str = "Memory cgroup out of memory: ") -> str:
    return f"{message}Killed process {pid} ({comm}) {SIZES}\n"


def test_a_kill_at_the_limit_of_an_ancestor() -> None:
    [kill] = kills(reports.MEMCG)
    assert kill == OomKill(
        source="kernel_log", time_ns=BOOTED_NS + 5_013_000_000, uncertainty_ns=kill.uncertainty_ns,
        cgroup="/ai.slice/docker-77.scope", limit_cgroup="/ai.slice", constraint="memcg",
        pid=813, comm="worker", trigger_pid=812, trigger_comm="stress",
        usage=64 << 20, limit=64 << 20,
        anon_rss=61000 << 10, file_rss=2728 << 10, shmem_rss=4 << 10, oom_score_adj=-5,
    )  # fmt: skip


def test_a_kill_because_the_host_ran_out() -> None:
    [kill] = kills(reports.GLOBAL)
    assert (kill.constraint, kill.cgroup, kill.limit_cgroup) == ("none", "/system.slice/db.service", None)
    assert (kill.trigger_pid, kill.trigger_comm) == (901, "python3")
    assert (kill.usage, kill.limit, kill.group, kill.requested) == (None, None, False, False)


@pytest.mark.parametrize(
    ("printed", "constraint"),
    [("CONSTRAINT_CPUSET", "cpuset"), ("CONSTRAINT_MEMORY_POLICY", "memory_policy")],
)
def test_full_nodes_are_not_a_full_host(printed: str, constraint: str) -> None:
    [kill] = kills(reports.GLOBAL.replace("CONSTRAINT_NONE", printed))
    assert (kill.constraint, kill.cgroup) == (constraint, "/system.slice/db.service")


def test_what_sysrq_asked_for_is_marked() -> None:
    text = "sysrq: Manual OOM execution\n" + reports.GLOBAL.replace("order=0", "order=-1")
    [kill] = kills(text)
    assert kill.requested


def test_the_trigger_without_a_stack_has_no_id_and_anothers_stack_gives_none() -> None:
    [kill] = kills(header(5) + killed(5))
    assert (kill.trigger_comm, kill.trigger_pid) == ("asker", None)
    other = reports.MEMCG.replace("Comm: stress Not", "Comm: kworker/1:2 Not")
    assert kills(other)[0].trigger_pid is None


def test_a_whole_group_is_killed_and_the_first_is_told_once() -> None:
    found = kills(reports.GROUP)
    assert [(k.pid, k.cgroup, k.group) for k in found] == [
        (20, "/pod/c/inner", False),
        (19, "/pod/c", True),
        (21, "/pod/c", True),
    ]
    assert {k.limit_cgroup for k in found} == {"/pod"}
    assert {k.limit for k in found} == {32 << 20}
    assert [k.time_ns for k in found] == sorted(k.time_ns for k in found)


def test_a_group_of_4_19() -> None:
    text = reports.OLD + (
        "Tasks in /docker/abc are going to be killed due to memory.oom.group set\n"
        "Killed process 4241 (sh) total-vm:2kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB\n"
    )
    _, member = kills(text)
    assert (member.pid, member.cgroup, member.group, member.limit_cgroup) == (
        4241,
        "/docker/abc",
        True,
        "/docker",
    )
    assert member.constraint == "memcg"


def test_a_kill_that_was_left_without_its_summary_has_no_cgroup() -> None:
    first, second = kills(header(5) + killed(5) + killed(6))
    assert first.cgroup == "/a/b"
    assert (second.pid, second.cgroup, second.limit_cgroup, second.constraint) == (6, None, None, "memcg")
    assert (second.trigger_comm, second.usage) == ("", None)


def test_without_a_summary_the_group_tells_where_its_first_victim_lived() -> None:
    text = (
        killed(6) + "Tasks in /g are going to be killed due to memory.oom.group set\n" + killed(6) + killed(7)
    )
    assert [(k.pid, k.cgroup, k.group) for k in kills(text)] == [(6, "/g", False), (7, "/g", True)]


def test_after_ten_reports_in_a_row_a_bare_kill_may_be_of_another_group() -> None:
    burst = "".join(header(100 + n) + killed(100 + n) for n in range(9))
    group = header(1) + killed(1) + "Tasks in /g are going to be killed due to memory.oom.group set\n"
    *_, lead, bare = kills(burst + group + killed(1) + killed(2))
    assert (lead.pid, lead.cgroup) == (1, "/a/b")
    assert (bare.pid, bare.cgroup, bare.group, bare.limit_cgroup) == (2, None, False, None)


def test_a_group_is_over_when_the_next_report_begins_or_time_has_passed() -> None:
    group = header(1) + killed(1) + "Tasks in /g are going to be killed due to memory.oom.group set\n"
    *_, kill = kills(group + "x invoked oom-killer: gfp_mask=0x0(), order=0, oom_score_adj=0\n" + killed(2))
    assert (kill.cgroup, kill.group) == (None, False)
    late = records(group + killed(2))
    late[-1] = late[-1]._replace(stamp_us=late[-1].stamp_us + 11_000_000)
    *_, kill = told(late)
    assert (kill.cgroup, kill.group) == (None, False)


def test_the_victim_is_the_one_of_the_summary_in_every_respect() -> None:
    for changed in (killed(6), killed(5, "other"), killed(5, message="Out of memory: ")):
        [kill] = kills(header(5) + changed)
        assert (kill.cgroup, kill.limit_cgroup) == (None, None)
    [kill] = kills(header(5) + killed(5).replace("UID:0", "UID:7"))
    assert kill.cgroup is None


def test_one_who_was_ending_already_is_no_victim_and_lends_nothing() -> None:
    skip = "Memory cgroup out of memory: OOM victim 5 (hog) is already exiting. Skip killing the task\n"
    assert kills(header(5) + skip) == []
    [kill] = kills(header(5) + skip + killed(5))
    assert kill.cgroup is None


def test_summaries_that_are_apart_from_their_kills_are_told_apart_by_process() -> None:
    text = header(5, cgroup="/a/x") + header(6, cgroup="/a/y") + killed(6) + killed(5)
    assert [(k.pid, k.cgroup) for k in kills(text)] == [(6, "/a/y"), (5, "/a/x")]


def test_unlimited_is_no_limit() -> None:
    [kill] = kills(reports.MEMCG.replace("limit 65536kB", "limit 9007199254740988kB"))
    assert (kill.usage, kill.limit) == (64 << 20, None)


def test_before_5_0_the_place_comes_first_and_the_kill_in_two_lines() -> None:
    [kill] = kills(reports.OLD)
    assert (kill.pid, kill.cgroup, kill.limit_cgroup) == (4240, "/docker/abc", "/docker")
    assert (kill.trigger_pid, kill.limit, kill.constraint) == (4242, 128 << 20, "memcg")


def test_before_5_0_a_child_may_be_sacrificed_whose_place_is_not_told() -> None:
    [kill] = kills(reports.OLD.replace("Killed process 4240", "Killed process 4250"))
    assert (kill.pid, kill.cgroup, kill.limit_cgroup) == (4250, None, "/docker")


def test_before_5_0_a_second_kill_without_a_report_inherits_nothing() -> None:
    text = reports.OLD + (
        "Memory cgroup out of memory: Kill process 9 (x) score 1 or sacrifice child\n"
        "Killed process 9 (x) total-vm:2kB, anon-rss:1kB, file-rss:1kB\n"
    )
    _, kill = kills(text)
    assert (kill.cgroup, kill.limit_cgroup, kill.trigger_comm, kill.usage) == (None, None, "", None)
    assert (kill.constraint, kill.shmem_rss) == ("memcg", None)


def test_the_form_of_red_hat_7() -> None:
    [kill] = kills(
        "Killed process 9 (ora_dbw0), UID 54321, total-vm:2kB, anon-rss:1kB, file-rss:1kB, shmem-rss:3kB\n"
    )
    assert (kill.pid, kill.comm, kill.shmem_rss, kill.constraint) == (9, "ora_dbw0", 3 << 10, "unknown")


@pytest.mark.parametrize(
    "comm",
    ["a b", "a,b", "(sd-pam)", ") total-vm:1kB", ",pid=1,uid=0", ",task=x", "x,task=y", "runc:[2:INIT]",
     "a\nb", "\u00e4\u00f6", "", "\\x41", ",task_memcg=/x"],
)  # fmt: skip
def test_any_name_of_a_task(comm: str) -> None:
    [kill] = kills_of(header(5, comm), killed(5, comm))
    assert (kill.pid, kill.comm, kill.cgroup, kill.limit_cgroup) == (5, comm, "/a/b", "/a")


def kills_of(*texts: str) -> list[OomKill]:
    """Lines whose names hold newlines."""
    lines = []
    for text in texts:
        head, newline, tail = text.removesuffix("\n").partition("0\noom-kill:")
        lines += [head + "0", "oom-kill:" + tail] if newline else [text.removesuffix("\n")]
    return told([record(line, number) for number, line in enumerate(lines)])


@pytest.mark.parametrize(
    "name",
    ["x,task=hog,pid=5,uid=0", "x,task_memcg=", "a,oom_memcg=", "x y", "x killed as a result of limit of ",
     "\u00e4", "x,global_oom", "a\\b"],
)  # fmt: skip
def test_any_name_of_a_cgroup(name: str) -> None:
    cgroup = f"/{name}/c"
    assert kills(header(5, cgroup=cgroup, limit=f"/{name}") + killed(5))[0].cgroup == cgroup
    named_so = header(5).replace("cpuset=b", f"cpuset={name}")
    assert kills(named_so + killed(5))[0].cgroup == "/a/b"
    old = reports.OLD.replace("/docker/abc", cgroup).replace("of /docker", f"of /{name}")
    assert kills(old)[0].cgroup in (cgroup, None)


def test_a_path_that_may_have_been_cut_is_not_told() -> None:
    long = "/a/" + "x" * 950
    [kill] = kills(header(5, cgroup=long) + killed(5))
    assert (kill.cgroup, kill.limit_cgroup, kill.constraint) == (None, "/a", "memcg")


def test_a_summary_in_pieces_is_joined_over_the_lines_of_others() -> None:
    text = (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)\n"
        "eth0: link is up\n"
        "+,cpuset=b\n"
        "+,mems_allowed=0,oom_memcg=/a\n"
        "usb 1-1: new device\n"
        "+,task_memcg=/a/b\n"
        "+,task=hog,pid=5,uid=0\n" + killed(5)
    )
    [kill] = kills(text)
    assert (kill.cgroup, kill.limit_cgroup) == ("/a/b", "/a")


def test_a_summary_that_lost_a_piece_is_not_believed() -> None:
    text = (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=b,mems_allowed=0,oom_memcg=/a\n"
        "+,task=hog,pid=5,uid=0\n" + killed(5)
    )
    [kill] = kills(text)
    assert (kill.cgroup, kill.limit_cgroup) == (None, None)


def test_a_piece_is_never_a_line() -> None:
    assert told("+" + killed(1, "systemd")) == []
    assert told("hello\n+" + killed(1, "systemd") + "+oom_kill\n") == []


def test_pieces_of_another_task_are_left_out_where_the_kernel_tells() -> None:
    start = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=b,mems_allowed=0,oom_memcg=/a"
    given = [
        record(start, 0, caller=b"T5"),
        record(",task_memcg=/evil", 1, caller=b"T6", continued=True),
        record(",task_memcg=/a/b,task=hog,pid=5,uid=0", 2, caller=b"T5", continued=True),
        record(killed(5).strip(), 3, caller=b"T5"),
    ]
    assert told(given)[0].cgroup == "/a/b"


def test_only_the_kernel_is_believed() -> None:
    given = [one._replace(facility=1) for one in records(reports.MEMCG + reports.GROUP)]
    assert told(given) == []
    mixed = records(header(5) + header(5, cgroup="/a/evil") + killed(5))
    mixed[2], mixed[3] = mixed[2]._replace(facility=3), mixed[3]._replace(facility=3)
    assert [kill.cgroup for kill in told(mixed)] == ["/a/b"]


def test_a_gap_is_told_and_breaks_every_report() -> None:
    given = records(header(5) + killed(5))
    given[-1] = given[-1]._replace(sequence=40)
    gap, kill = told(given)
    assert isinstance(gap, Gap)
    assert "38 records" in gap.reason
    assert gap.since_ns < gap.time_ns
    assert (kill.pid, kill.cgroup) == (5, None)


def test_a_group_right_after_a_gap_is_not_believed_of_bare_kills() -> None:
    group = "Tasks in /g are going to be killed due to memory.oom.group set\n" + killed(2)
    given = [one._replace(sequence=one.sequence + 7) for one in records(group)]
    assert [(kill.pid, kill.cgroup) for kill in told(given)] == [(2, None)]


def test_a_kill_that_is_held_comes_out_when_nothing_follows() -> None:
    reader = Reader(stamps())
    [one] = records(killed(6))
    assert list(reader.feed(one)) == []
    assert reader
    [(sequence, kill)] = reader.flush()
    assert (sequence, kill.pid) == (0, 6)
    assert not reader


def test_summaries_without_end_are_not_all_kept() -> None:
    reports_ = OomReports()
    for pid in range(1000):
        for number, line in enumerate(header(pid).splitlines()):
            assert list(reports_.feed(Line(2 * pid + number, pid, 0, line))) == []
    assert len(reports_._reports) <= 64
    [told_] = reports_.feed(Line(2000, 1000, 0, killed(999).strip()))
    assert told_.evidence.cgroup == "/a/b"
