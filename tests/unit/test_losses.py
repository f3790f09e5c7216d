"""Sixty silent files behind one missing controller are one loss."""

from cgotel.contract import SourceStatus, State
from cgotel.losses import Loss, brief, losses


def test_sources_are_grouped_by_state_and_reason():
    found = losses(
        [
            SourceStatus("a", State.ABSENT, "no kernel", "get one"),
            SourceStatus("b", State.DENIED, "no right", "run as root"),
            SourceStatus("c", State.ABSENT, "no kernel", "get one"),
            SourceStatus("d", State.ABSENT, "no kernel", "get another"),
        ]
    )
    assert found == [
        Loss(State.DENIED, "no right", ("run as root",), ("b",)),
        Loss(State.ABSENT, "no kernel", ("get one", "get another"), ("a", "c", "d")),
    ]


def test_what_went_wrong_comes_first_then_what_costs_most():
    statuses = [SourceStatus(f"x{n}", State.ABSENT, "many") for n in range(9)]
    statuses += [SourceStatus("y", State.OFF, "few"), SourceStatus("z", State.FAILED, "broken")]
    assert [loss.reason for loss in losses(statuses)] == ["broken", "many", "few"]


def test_what_is_there_and_what_has_ended_is_no_loss():
    assert losses([SourceStatus("a", State.OK), SourceStatus("b", State.GONE, "ended")]) == []


def test_many_files_of_a_controller_are_one_word():
    names = ["pids.max", "pids.peak", "zram0", "cpu.max", *(f"memory.{n}" for n in range(3))]
    assert brief(names) == ["memory", "cpu.max", "pids.max", "pids.peak", "zram0"]
