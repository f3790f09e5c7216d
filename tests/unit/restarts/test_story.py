"""An incident on one screen, and every kind of evidence in words."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.unit.restarts.test_cases import RIGHT, load

from cgotel import evidence
from cgotel.restarts.classify import classify
from cgotel.restarts.story import duration, relative, story
from cgotel.restarts.words import describe


@pytest.mark.parametrize("name", RIGHT)
def test_a_story_names_cause_sureness_and_what_is_missing(name: str) -> None:
    case = load(name)
    verdict = classify(case)
    lines = list(story(case, verdict, lambda _: "NOON"))
    assert "ended NOON" in lines[0]
    assert lines[1].startswith(f"  {verdict.cause}, {verdict.sureness}: ")
    for source in verdict.missing:
        assert any(line.startswith(f"  missing    {source}: ") for line in lines)
    assert len(lines) <= 40


def test_every_kind_of_evidence_has_words() -> None:
    workload = evidence.Workload(runtime="docker", id="a", name="model")
    fill = {
        "pid": 1,
        "seconds": 3,
        "xid": 79,
        "device": "0000:65:00",
        "signal": 9,
        "code": 0,
        "sender_pid": 2,
        "rose": {"oom": 1},
        "since_ns": 0,
        "refused": 2,
        "workload": workload,
        "action": "stop",
        "result": "success",
        "ok": False,
        "by": "earlyoom",
        "total": 10,
        "used": 9,
        "state": "lost",
        "pattern": "cuda_out_of_memory",
        "reason": "lost",
    }
    for kind in get_args(evidence.AnyEvidence):
        wanted = {f.name for f in evidence.msgspec.structs.fields(kind) if f.required} - {"source", "time_ns"}
        piece = kind(source="x", time_ns=10**9, **{name: fill[name] for name in wanted})
        assert describe(piece)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "+0 ms"), (-0.02, "-20 ms"), (31.04, "+31.0 s"), (-200, "-3.33 min"), (7200, "+2 h")],
)
def test_times_are_told_relative_to_the_end(seconds: float, text: str) -> None:
    assert relative(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "500 ms"), (42, "42 s"), (600, "10 min"), (18720, "5.2 h"), (1e6, "11.6 d")]
)
def test_lengths_of_time_are_told_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text
