"""Numbers for people: short, and a dash for what was not measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.outputs.figures import cpus, percent, seconds, size

KIB, MIB, GIB = 2**10, 2**20, 2**30


@pytest.mark.parametrize("figure", [size, percent, cpus, seconds])
def test_not_measured_is_a_dash_and_never_a_zero(figure):
    assert figure(None) == "-"
    assert figure(0) != "-"


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "0.98K"),
        (4 * KIB, "4.00K"),
        (91 * MIB, "91.0M"),
        (512 * MIB, "512M"),
        (1.93 * GIB, "1.93G"),
        (503 * GIB, "503G"),
        (-102 * MIB, "-102M"),
        (2**63, "8.00E"),
    ],
)
def test_sizes(amount, shown):
    assert size(amount) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0"), (0.0001, "0.0"), (0.004, "0.4"), (0.0999, "10"), (0.37, "37"), (1, "100")],
)
def test_percent(share, shown):
    assert percent(share) == shown


@pytest.mark.parametrize(("amount", "shown"), [(0, "0.00"), (0.126, "0.13"), (9.996, "10.0"), (64, "64.0")])
def test_cpus(amount, shown):
    assert cpus(amount) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0s"),
        (0.003, "3ms"),
        (2.44, "2.4s"),
        (59, "59s"),
        (725, "12m05s"),
        (11_220, "3h07m"),
        (187_200, "2d04h"),
    ],
)
def test_seconds(amount, shown):
    assert seconds(amount) == shown


@given(st.floats(0, 2.0**63))
def test_no_size_is_wider_than_five_characters(amount):
    assert len(size(amount)) <= 5
