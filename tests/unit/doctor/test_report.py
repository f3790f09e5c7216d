"""The findings as people read them."""

import json

import pytest

from cgotel.doctor import Finding, Level, report
from cgotel.outputs.screen import paint, plain

LOST = Finding(
    "controllers",
    Level.LOST,
    "io is not enabled for what lies below 20 cgroups",
    "write +io to cgroup.subtree_control",
    tuple(f"/system.slice/a{n}\n.service" for n in range(20)),
)
GOOD = Finding("pressure", Level.OK, "PSI is on")


def test_a_finding_is_a_paragraph_with_what_to_do():
    assert report.text([GOOD, LOST], 60, plain).splitlines() == [
        "ok    pressure     PSI is on",
        "lost  controllers  io is not enabled for what lies below 20",
        "                   cgroups",
        *(rf"                   - /system.slice/a{n}\n.service" for n in range(8)),
        "                   - and 12 more (--format json names them)",
        "                   to do: write +io to",
        "                          cgroup.subtree_control",
        "",
        "1 thing is lost",
    ]


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([GOOD], "nothing that matters is lost"),
        ([LOST], "1 thing is lost"),
        ([LOST, LOST], "2 things are lost"),
    ],
)
def test_it_ends_with_a_verdict(findings, verdict):
    assert report.text(findings, 100, plain).splitlines()[-1] == verdict


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(len, report.text([LOST, GOOD], width, plain).splitlines())) <= width


def test_only_the_level_is_coloured():
    assert report.text([LOST], 100, paint).startswith("\x1b[1;31mlost\x1b[0m  controllers")


def test_json_names_everything():
    document = json.loads(report.json([LOST], {"name": "vm"}))
    assert document["host"] == {"name": "vm"}
    [finding] = document["findings"]
    assert len(finding["affected"]) == 20
    assert (finding["check"], finding["level"]) == ("controllers", "lost")


@pytest.mark.parametrize(
    ("level", "lost"), [(Level.LOST, True), (Level.RISK, False), (Level.NOTE, False), (Level.OK, False)]
)
def test_what_is_lost(level, lost):
    assert report.is_lost([Finding("x", level, "y")]) is lost
