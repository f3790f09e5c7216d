"""The data that everything speaks: numbers as the kernel said them, converted without loss of meaning."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.model import Entity, Instrument, Reading, count_points

CPU_TIME = Instrument("container.cpu.time", "counter", "s", "CPU time", "double")
USAGE = Instrument("container.memory.usage", "updowncounter", "By", "Memory")
USER = CPU_TIME.series("cpu.stat.user_usec", 1_000_000, {"cpu.mode": "user"})
SYSTEM = CPU_TIME.series("cpu.stat.system_usec", 1_000_000, {"cpu.mode": "system"})
CURRENT = USAGE.series("memory.current")
ENTITY = Entity("container", "/x@7")


def reading(*points) -> Reading:
    return Reading.of(ENTITY, 5, points)


@given(st.integers(0, 2**63 - 1))
def test_a_whole_number_without_a_divisor_stays_what_it_is(raw: int) -> None:
    assert CURRENT.convert(raw) == raw
    assert isinstance(CURRENT.convert(raw), int)


@given(st.integers(0, 2**53))
def test_microseconds_become_seconds(raw: int) -> None:
    assert USER.convert(raw) == pytest.approx(raw * 1e-6, rel=1e-12)
    assert isinstance(USER.convert(raw), float)


@given(st.integers(0, 2**63 - 1), st.integers(2, 10**9))
def test_a_divided_whole_number_is_whole_and_never_more_than_it_was(raw: int, divisor: int) -> None:
    converted = USAGE.series("x", divisor).convert(raw)
    assert isinstance(converted, int)
    assert converted * divisor <= raw < (converted + 1) * divisor


def test_each_series_is_itself_alone() -> None:
    """Outputs keep what they know of a series by its identity: two that look alike are two."""
    again = CPU_TIME.series("cpu.stat.user_usec", 1_000_000, {"cpu.mode": "user"})
    assert again != USER
    assert len({again, USER}) == 2
    assert USER.attributes == (("cpu.mode", "user"),)


def test_a_reading_holds_its_points_in_their_order() -> None:
    whole = reading((USER, 1), (CURRENT, 2))
    assert whole.series == (USER, CURRENT)
    assert list(whole.points) == [(USER, 1), (CURRENT, 2)]
    assert count_points([whole, reading(), whole]) == 4


def test_a_reading_of_unequal_rows_says_so() -> None:
    with pytest.raises(ValueError, match="shorter"):
        list(Reading(ENTITY, 0, (USER, CURRENT), [1]).points)


def test_a_value_is_asked_for_by_the_kernels_name_and_a_metric_by_its_own() -> None:
    whole = reading((USER, 1_500_000), (SYSTEM, 250_000), (CURRENT, 4096))
    assert whole.value("cpu.stat.system_usec") == 250_000
    assert whole.metric("container.cpu.time", cpu_mode="system") == 0.25
    with pytest.raises(LookupError, match=r"container\.cpu\.time has 2 points that differ by cpu_mode"):
        whole.metric("container.cpu.time")
    assert whole.metric("container.memory.usage") == 4096
    assert reading((USER, 1)).attribute("container.cpu.time", "cpu.mode") == "user"


def test_what_was_not_measured_is_none_and_what_is_zero_is_zero() -> None:
    whole = reading((USER, 0), (CURRENT, 0))
    assert whole.value("cpu.stat.user_usec") == whole.metric("container.cpu.time", cpu_mode="user") == 0
    assert whole.value("memory.max") is None
    assert whole.metric("container.memory.limit") is None
    assert whole.metric("container.cpu.time", cpu_mode="system") is None
    assert whole.metric("container.cpu.time", cpu_state="user") is None
    assert whole.attribute("container.memory.limit", "x") is None
    assert whole.attribute("container.memory.usage", "x") is None


@pytest.mark.parametrize("plain", [CPU_TIME, USER, ENTITY, reading((USER, 1))])
def test_data_does_not_change(plain) -> None:
    for field in dataclasses.fields(plain):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(plain, field.name, None)
