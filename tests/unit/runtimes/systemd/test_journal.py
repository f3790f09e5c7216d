"""Entries of the journal, worded as the sources of systemd 252 and earlyoom 1.0 to 1.8 do."""

import json

import pytest

from cgotel.clock import Clocks, Timeline
from cgotel.evidence import RunEnded, UnitResult, UserspaceOom
from cgotel.runtimes.systemd.ends import WrittenEnds
from cgotel.runtimes.systemd.entries import read_entry
from cgotel.runtimes.systemd.journal import command
from cgotel.runtimes.systemd.oom_daemons import read_kill

WALL_US = 1_796_140_000_000_000
TIMELINE = Timeline(lambda: Clocks(WALL_US * 1000 + 10**9, 0, 0))


def entry(**fields):
    line = {"__CURSOR": "s=1;i=2", "__REALTIME_TIMESTAMP": str(WALL_US), **fields}
    return read_entry(json.dumps(line).encode())


def earlyoom(message, **others):
    return entry(**{"_SYSTEMD_UNIT": "earlyoom.service", "_COMM": "earlyoom", "MESSAGE": message, **others})


@pytest.mark.parametrize(
    ("message", "signal"),
    [
        ('sending SIGTERM to process 812 uid 0 "python3": badness 1011, VmRSS 212 MiB', "SIGTERM"),
        (
            'sending SIGKILL to process 812 uid 33 "a b": oom_score 1100, VmRSS 1 MiB, cmdline "x"',
            "SIGKILL",
        ),
        ('killing process 812 "x" with signal 15', ""),
    ],
)
def test_earlyoom_says_whom_it_ends(message, signal):
    kill = read_kill(earlyoom(message), TIMELINE)
    assert (kill.by, kill.pid, kill.reason, kill.time_ns) == ("earlyoom", 812, signal, WALL_US * 1000)


@pytest.mark.parametrize(
    "message",
    [
        "process 812 exited after 0.1 seconds",  # said whoever ended it
        "sending 0 (no-op signal) to process 812 uid 0",
        'x: sending SIGTERM to process 812 uid 0 "y"',
        "mem avail:  2400 of 32000 MiB ( 7.50%), swap free: 1400 of 16000 MiB ( 8.75%)",
        "",
    ],
)
def test_other_lines_of_earlyoom_are_no_kills(message):
    assert read_kill(earlyoom(message), TIMELINE) is None


@pytest.mark.parametrize(
    "others",
    [
        {"_SYSTEMD_UNIT": "web.service"},
        {"_SYSTEMD_UNIT": f"docker-{'ab' * 32}.scope"},
        {"_COMM": "python3"},
        {"_SYSTEMD_UNIT": None},
    ],
)
def test_a_text_alone_is_not_believed(others):
    fields = {"SYSLOG_IDENTIFIER": "earlyoom", **others}
    assert (
        read_kill(earlyoom('sending SIGTERM to process 1 uid 0 "init": badness 1', **fields), TIMELINE)
        is None
    )


@pytest.mark.parametrize(
    "reason",
    [
        "memory used (3.8G) / total (4.0G) and swap used (1.9G) / total (2.0G) being more than 90.00%",
        "memory pressure for /system.slice being 57.20% > 50.00% for > 20s with reclaim activity",
    ],
)
def test_oomd_says_which_cgroup_it_ended_and_why(reason):
    message = f"Killed /system.slice/web.service due to {reason}"
    kill = read_kill(
        entry(_SYSTEMD_UNIT="systemd-oomd.service", _COMM="systemd-oomd", MESSAGE=message), TIMELINE
    )
    assert isinstance(kill, UserspaceOom)
    assert (kill.by, kill.cgroup, kill.pid, kill.reason) == (
        "systemd-oomd",
        "/system.slice/web.service",
        None,
        reason,
    )


def test_a_line_that_is_no_entry_is_left_out():
    for line in (
        b"",
        b"{",
        b"[]",
        b"-- No entries --",
        b'{"MESSAGE":"x"}',
        b'{"__REALTIME_TIMESTAMP":"x"}',
        b"\xff",
    ):
        assert read_entry(line) is None


def test_fields_may_be_bytes_lists_or_null():
    read = entry(MESSAGE=[115, 255, 10], UNIT=["a.service", "b.service"], EXIT_CODE=None, _COMM={"a": 1})
    assert (read.get("MESSAGE"), read.get("UNIT"), read.get("EXIT_CODE"), read.get("_COMM")) == (
        "s\\xff\n",
        "a.service",
        "",
        "",
    )
    assert len(entry(MESSAGE="x" * 10**6).get("MESSAGE")) == 4096


def written(**fields):
    return entry(**{"_PID": "1", "UNIT": "web.service", "INVOCATION_ID": "1f", **fields})


EXIT = {"MESSAGE_ID": "98e322203f7a4ed290d09fe03c09fe15"}
MAIN = {**EXIT, "MESSAGE": "web.service: Main process exited, code=killed, status=9/KILL"}
FAILED = {"MESSAGE_ID": "d9b373ed55a64feb8242e02dbe79a49c", "UNIT_RESULT": "oom-kill"}
WELL = {"MESSAGE_ID": "7ad2d189f7e94e70a38c781354912448"}


@pytest.fixture
def ends():
    return WrittenEnds(TIMELINE, lambda unit: f"/system.slice/{unit}")


def test_an_end_is_put_together_from_its_lines(ends):
    assert ends.take(written(**MAIN, EXIT_CODE="killed", EXIT_STATUS="9")) is None
    invocation, (ended, result) = ends.take(written(**FAILED))
    assert invocation == "1f"
    assert (type(ended), ended.signal, ended.code, ended.time_ns) == (RunEnded, 9, None, WALL_US * 1000)
    assert (type(result), result.result, result.signal, result.cgroup) == (
        UnitResult,
        "oom-kill",
        9,
        "/system.slice/web.service",
    )


def test_a_control_process_is_not_the_main_one(ends):
    ends.take(
        written(
            **EXIT,
            MESSAGE="web.service: Control process exited, code=exited, status=1/FAILURE",
            EXIT_CODE="exited",
            EXIT_STATUS="1",
        )
    )
    _, (ended, _) = ends.take(written(**FAILED))
    assert (ended.code, ended.signal) == (None, None)


def test_an_end_taken_for_success_has_no_known_code(ends):
    _, (ended, result) = ends.take(written(**WELL))
    assert (ended.code, ended.signal, result.result) == (None, None, "success")


def test_only_pid_1_is_believed(ends):
    assert ends.take(written(**FAILED, _PID="4711")) is None


def test_where_the_journal_is_read_from():
    assert "--lines=0" in command([["A=1"]], "", None)
    assert command([["A=1", "B=2"], ["C=3"]], "s=1", 5)[-6:] == [
        "--no-tail",
        "--after-cursor=s=1",
        "A=1",
        "B=2",
        "+",
        "C=3",
    ]
    assert "--since=@1796140000.000001" in command([["A=1"]], "", WALL_US * 1000 + 1000)
