"""What rose, since when, and what is not worth telling."""

from hypothesis import given
from hypothesis import strategies as st

from cgotel.watchers.cgroup_events.tally import Tally


def test_only_what_rose_is_there_and_only_once() -> None:
    tally = Tally({"max": 3, "oom_kill": 1}, 10)
    tally.see({"max": 3, "oom_kill": 2}, 20, heard=True)
    assert (tally.rose, tally.since_ns, tally.seen_ns, tally.urgent) == ({"oom_kill": 1}, 10, 20, True)
    tally.tell()
    assert (tally.rose, tally.since_ns, tally.urgent) == ({}, 20, False)


def test_since_is_the_last_look_that_saw_nothing_new() -> None:
    tally = Tally({"max": 3}, 10)
    tally.see({"max": 3}, 20, heard=True)
    tally.see({"max": 4}, 30, heard=True)
    tally.see({"max": 5}, 40, heard=True)
    assert (tally.rose, tally.since_ns, tally.first_ns, tally.seen_ns) == ({"max": 2}, 20, 30, 40)


def test_all_is_told_up_to_the_last_time_that_anything_was() -> None:
    tally = Tally({"max": 3}, 10)
    tally.see({"max": 3}, 20, heard=True)
    assert tally.told_ns == 10
    tally.see({"max": 4}, 30, heard=True)
    tally.tell()
    tally.see({"max": 4}, 40, heard=True)
    assert tally.told_ns == 30


def test_reclaim_alone_is_not_urgent() -> None:
    tally = Tally({"low": 0, "high": 0, "max": 0, "oom": 0}, 10)
    tally.see({"low": 1, "high": 2, "max": 3, "oom": 0}, 20, heard=True)
    assert not tally.urgent


def test_counters_that_fall_are_counters_of_something_else() -> None:
    tally = Tally({"max": 3, "oom_kill": 4}, 10)
    tally.see({"max": 9, "oom_kill": 1}, 20, heard=True)
    assert (tally.rose, tally.urgent, tally.since_ns) == ({}, False, 20)
    tally.see({"max": 9, "oom_kill": 2}, 30, heard=True)
    assert tally.rose == {"oom_kill": 1}


def test_a_file_that_was_read_without_its_lines_is_no_fall() -> None:
    tally = Tally({"oom_kill": 4}, 10)
    tally.see({}, 20, heard=True)
    tally.see({"oom_kill": 5}, 30, heard=True)
    assert tally.rose == {"oom_kill": 1}


def test_a_key_that_a_newer_kernel_has_counts_from_zero() -> None:
    tally = Tally({}, 10)
    tally.see({"oom_group_kill": 2}, 20, heard=True)
    assert tally.rose == {"oom_group_kill": 2}


def test_what_was_found_and_what_was_heard_is_together_only_found() -> None:
    tally = Tally({"max": 0}, 10)
    tally.see({"max": 1}, 20, heard=False)
    tally.see({"max": 2}, 30, heard=True)
    assert not tally.heard
    tally.tell()
    tally.see({"max": 3}, 40, heard=True)
    assert tally.heard


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=30))
def test_what_is_told_adds_up_to_what_was_counted(steps: list[tuple[int, int, bool]]) -> None:
    tally = Tally({"max": 5, "oom_kill": 7}, 0)
    counts, told = {"max": 5, "oom_kill": 7}, {"max": 5, "oom_kill": 7}
    for now, (more, kills, tell) in enumerate(steps, 1):
        counts = {"max": counts["max"] + more, "oom_kill": counts["oom_kill"] + kills}
        tally.see(counts, now, heard=True)
        assert tally.since_ns <= tally.seen_ns == now
        if tell:
            told = {key: n + tally.rose.get(key, 0) for key, n in told.items()}
            tally.tell()
    assert {key: n + tally.rose.get(key, 0) for key, n in told.items()} == counts
