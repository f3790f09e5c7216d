"""`cgotel incidents`, `explain` and `classify`: what was kept, in words and as JSON."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.unit.restarts.test_cases import CASES, load

from cgotel.cli import main
from cgotel.restarts.case import Case
from cgotel.restarts.classify import classify
from cgotel.restarts.facts import Facts
from cgotel.restarts.rule import Rule
from cgotel.restarts.rules import RULES
from cgotel.restarts.verdict import Finding
from cgotel.store import Database, Incident, Incidents

HOSTILE = "evil\x1b[2J\nname\u202e"


def run(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def now_ish(case: Case, name: str = "model", ago_s: float = 60.0) -> Case:
    """The same case, as if it had ended so long ago."""
    shift = time.time_ns() - int(ago_s * 1e9) - case.exit.ended_ns
    evidence = tuple(msgspec.structs.replace(e, time_ns=e.time_ns + shift) for e in case.evidence)
    workload = msgspec.structs.replace(case.exit.workload, name=name)
    exit_ = msgspec.structs.replace(case.exit, ended_ns=case.exit.ended_ns + shift, workload=workload)
    return msgspec.structs.replace(case, exit=exit_, evidence=evidence)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    database = Database(tmp_path / "agent.db")
    incidents = Incidents(database)
    for case in (
        now_ish(load("sibling-ate-the-parent"), "inference", 60),
        now_ish(load("137-nothing-known"), HOSTILE, 120),
        now_ish(load("podman-flag-false"), "trainer", 3600),
    ):
        incidents.add(Incident(case, classify(case)))
    database.close()
    return tmp_path


@pytest.mark.usefixtures("state")
def test_incidents_are_listed_the_newest_first_and_hostile_names_are_tame() -> None:
    result = run("incidents")
    lines = result.stdout.splitlines()
    assert [line.split()[3] for line in lines[1:2]] == ["inference"]
    assert [("cgroup_oom" in line, "unknown" in line) for line in lines[1:]] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ((), 3),
        (("trainer",), 1),
        (("--since", "30m"), 2),
        (("--cause", "unknown"), 1),
        (("-n", "1"), 1),
        (("c0ffee",), 3),
        (("/ai.slice/none",), 0),
        (("container",), 1),
        (("ontainer",), 0),
    ],
)
def test_incidents_can_be_chosen(arguments: tuple[str, ...], count: int) -> None:
    result = run("incidents", "--json", *arguments)
    assert len(result.stdout.splitlines()) == count
    assert result.stdout.isascii()


@pytest.mark.usefixtures("state")
def test_explain_tells_the_last_end_of_one() -> None:
    result = run("explain", "inference")
    assert result.exit_code == 0
    assert result.stdout.startswith("inference (containerd) ended ")
    assert (
        "  cgroup_oom, confirmed: the kernel's OOM killer ended it at the limit of /ai.slice" in result.stdout
    )
    assert "kernel_log    OOM kill of python3 (4242) at the limit of /ai.slice" in result.stdout


@pytest.mark.usefixtures("state")
def test_what_was_listed_can_be_judged_again() -> None:
    listed = run("incidents", "--json").stdout.encode()
    again = run("classify", "-", "--json", stdin=listed)
    verdicts = [json.loads(line)["verdict"] for line in listed.decode().splitlines()]
    assert [json.loads(line)["verdict"] for line in again.stdout.splitlines()] == verdicts


@pytest.mark.usefixtures("state")
def test_what_nobody_saw_end_is_said_with_status_1() -> None:
    result = run("explain", HOSTILE + "none")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "no end of evil\\x1b[2J\\n" in result.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "<stdin>: Input data was truncated"),
        (b'{"exit": 3}', "<stdin>: Expected `object`, got `int` - at `$.exit`"),
        (b"nonsense", "<stdin>: JSON is malformed"),
        (
            b'{"exit":{"workload":{"runtime":"docker","id":"a"},"ended_ns":1},"evidence":[{"kind":"rumour"}]}',
            "rumour",
        ),
    ],
)
def test_a_bad_case_is_one_line_and_status_2(content: bytes, said: str) -> None:
    result = run("classify", "-", stdin=content)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_bad_line_among_good_ones_is_named() -> None:
    good = msgspec.json.encode(load("podman-flag-false"))
    result = run("classify", "-", stdin=good + b"\n" + b'{"exit": 3}\n')
    assert result.exit_code == 2
    assert "<stdin>:2: " in result.stderr


def test_a_case_file_is_judged_in_words() -> None:
    result = run("classify", str(CASES / "userspace-oom-by-pressure.json"))
    assert result.exit_code == 0
    assert "userspace_oom, confirmed: systemd-oomd ended it" in result.stdout


def test_without_a_store_it_says_where_one_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "none"))
    result = run("incidents")
    assert result.exit_code == 1
    assert f"{tmp_path}/none: No such file or directory" in result.stderr


def test_a_store_that_cannot_be_read_is_left_out(state: Path) -> None:
    (state / "collectd.db").write_bytes(b"garbage")
    result = run("incidents", "--json")
    assert len(result.stdout.splitlines()) == 3
    assert "collectd.db: file is not a database: left out" in result.stderr


def test_a_length_of_time_that_is_none_is_told(state: Path) -> None:
    result = run("incidents", "--since", "soon")
    assert result.exit_code == 2
    assert "90s, 30m, 2h or 7d" in result.stderr


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("command", ["incidents", "explain"])
def test_a_name_that_is_no_utf8_and_a_span_of_ages_are_taken(command: str) -> None:
    result = run(command, "\udcff", "--since", "999999999d")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_an_incident_that_cannot_be_read_hides_no_other(state: Path) -> None:
    with closing(sqlite3.connect(state / "agent.db")) as connection, connection:
        connection.execute(
            "UPDATE incidents SET verdict = ? WHERE name = 'inference'", (b'{"cause": "new"}',)
        )
    result = run("incidents", "-n", "1")
    assert len(result.stdout.splitlines()) == 2
    assert "left out" in result.stderr
    assert run("explain", "trainer").exit_code == 0


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"case":' * 100_000])
def test_a_case_that_is_nested_without_end_is_one_clear_line(content: bytes) -> None:
    result = run("classify", "-", stdin=content)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_a_case_of_no_calendars_time_is_judged() -> None:
    case = load("137-nothing-known")
    exit_ = msgspec.structs.replace(case.exit, ended_ns=10**30)
    result = run("classify", "-", stdin=msgspec.json.encode(msgspec.structs.replace(case, exit=exit_)))
    assert result.exit_code == 0
    assert f"{10**30} ns" in result.stdout


def test_a_plugins_rule_that_raises_is_passed_over_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Facts) -> list[Finding]:
        raise ValueError("no")

    bad = [Rule("crash", "bad", -1, (broken,)), *RULES]
    monkeypatch.setattr("cgotel.plugins.Registry.rules", property(lambda _: bad, lambda *_: None))
    result = run("classify", "-", stdin=msgspec.json.encode(load("137-nothing-known")))
    assert result.exit_code == 0
    assert "rule bad: ValueError: no" in result.stderr
    assert "unknown" in result.stdout


def test_a_cause_that_does_not_exist_is_no_silence(state: Path) -> None:
    result = run("incidents", "--cause", "oom")
    assert result.exit_code == 2
    assert "cgroup_oom" in result.stderr
