"""Lines of trace_pipe as Linux 6.1, 6.12 and 6.18 print them, with names that try to break them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.kernel.trace_text import Lost, Record, Shape, Unread, records

# events/*/format: the same for signals from 6.1 to 6.18; a victim was only a pid before it was described
SIGNAL = Shape(
    "name: signal_generate\nID: 261\nformat:\n\tfield:int sig;\toffset:8;\tsize:4;\tsigned:1;\n\n"
    'print fmt: "sig=%d errno=%d code=%d comm=%s pid=%d grp=%d res=%d", REC->sig, REC->errno, REC->code, '
    "REC->comm, REC->pid, REC->group, REC->result\n"
)
VICTIM_OLD = Shape('name: mark_victim\n\nprint fmt: "pid=%d", REC->pid\n')
VICTIM = Shape(
    'name: mark_victim\n\nprint fmt: "pid=%d comm=%s total-vm=%lukB anon-rss=%lukB file-rss:%lukB '
    'shmem-rss:%lukB uid=%u pgtables=%lukB oom_score_adj=%hd", REC->pid, __get_str(comm), REC->total_vm, '
    "REC->anon_rss, REC->file_rss, REC->shmem_rss, REC->uid, REC->pgtables, REC->oom_score_adj\n"
)
SHAPES = {"signal_generate": SIGNAL, "mark_victim": VICTIM}

KILL = (
    b"            bash-23941   [001] d..1.  1904.671977: signal_generate: "
    b"sig=9 errno=0 code=0 comm=sleep pid=23947 grp=1 res=0\n"
)
# recorded: both names are set by prctl(PR_SET_NAME)
HOSTILE = (
    b"  s [000] \nzz-12-23948   [001] d..1.  1905.404124: signal_generate: "
    b"sig=9 errno=0 code=0 comm=a b\n] x-1 [0 pid=23989 grp=1 res=0\n"
)


def test_a_kill_names_sender_and_target() -> None:
    [record] = records(KILL, SHAPES)
    assert record == Record(
        "signal_generate",
        23941,
        "bash",
        1,
        1904671977000,
        {"sig": 9, "errno": 0, "code": 0, "comm": "sleep", "pid": 23947, "group": 1, "result": 0},
    )


def test_names_with_newlines_and_brackets_do_not_break_the_text() -> None:
    first, second, third = records(KILL + HOSTILE + KILL, SHAPES)
    assert first == third
    assert isinstance(second, Record)
    assert (second.pid, second.comm) == (23948, "s [000] \nzz-12")
    assert (second.fields["comm"], second.fields["pid"]) == ("a b\n] x-1 [0", 23989)


@pytest.mark.parametrize("name", [b" pid=1 grp=1 re", b" res=0\n", b"1 res=0\n x-1 [", b"", b"\xff\xfe"])
def test_no_name_feigns_the_end_of_its_line(name: bytes) -> None:
    line = KILL.replace(b"comm=sleep", b"comm=" + name)
    [record] = records(line, SHAPES)
    assert isinstance(record, Record)
    assert record.fields["comm"] == name.decode("utf-8", "backslashreplace")
    assert record.fields["pid"] == 23947


def test_a_victim_is_read_in_both_shapes() -> None:
    head = b"          python-81      [000] d.... 12345.000001: mark_victim: "
    [old] = records(head + b"pid=81\n", {"mark_victim": VICTIM_OLD})
    text = (
        b"pid=81 comm=a total-vm=1kB total-vm=9kB anon-rss=1kB file-rss:0kB shmem-rss:0kB uid=0 pgtables=6kB "
    )
    [new] = records(head + text + b"oom_score_adj=-5\n", {"mark_victim": VICTIM})
    assert isinstance(old, Record)
    assert isinstance(new, Record)
    assert old.fields == {"pid": 81}
    assert (new.fields["comm"], new.fields["total_vm"]) == ("a total-vm=1kB", 9)
    assert new.fields["oom_score_adj"] == -5


def test_lost_events_are_told_with_their_cpu() -> None:
    assert next(records(b"CPU:1 [LOST 4711 EVENTS]\n" + KILL, SHAPES)) == Lost(1, 4711)
    assert list(records(b"CPU:12 [LOST EVENTS]\n", SHAPES)) == [Lost(12, None)]


def test_what_is_no_record_costs_only_itself() -> None:
    odd = b"              sh-7       [000] ..... 1.000001: other_event: x=1\n"
    assert [type(item) for item in records(odd + KILL + KILL[:-9], SHAPES)] == [Unread, Record, Unread]


@pytest.mark.parametrize(
    "described", ["", 'print fmt: "x=%s", (REC->a ? "b" : "c")\n', 'print fmt: "%d", 1\n']
)
def test_a_format_of_another_kind_is_refused(described: str) -> None:
    with pytest.raises(ValueError, match="print fmt"):
        Shape(described)


@given(st.lists(st.sampled_from([KILL, HOSTILE, KILL[:40], b"CPU:1 [LOST", b"\n"]) | st.binary(max_size=40)))
def test_any_bytes_are_taken_to_their_end(parts: list[bytes]) -> None:
    list(records(b"".join(parts), SHAPES))
