"""From errno to a state: the one table."""

import errno

import pytest

from cgotel.kernel.source import SourceStatus, State, Unavailable, state_of


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (errno.ENOENT, State.ABSENT),
        (errno.ENOTDIR, State.ABSENT),
        (errno.EACCES, State.DENIED),
        (errno.EPERM, State.DENIED),
        (errno.EOPNOTSUPP, State.OFF),
        (errno.ENODEV, State.GONE),
        (errno.ESRCH, State.GONE),
        (errno.EIO, State.FAILED),
        (errno.EMFILE, State.FAILED),
        (errno.EINTR, State.FAILED),
        (0, State.FAILED),
    ],
)
def test_every_errno_has_a_state(number: int, state: State) -> None:
    assert state_of(OSError(number, "said the kernel")) is state


def test_an_error_without_a_number_is_a_failure() -> None:
    assert state_of(OSError("no number")) is State.FAILED


def test_a_state_reads_as_its_word() -> None:
    assert [f"{state}" for state in State] == ["ok", "absent", "denied", "masked", "off", "gone", "failed"]


def test_what_is_unavailable_says_why_and_carries_its_status() -> None:
    status = SourceStatus("cgroup", State.DENIED, "not allowed", "run as root")
    assert str(Unavailable(status)) == "not allowed"
    assert Unavailable(status).status is status
    assert str(Unavailable(SourceStatus("cgroup", State.ABSENT))) == "absent"
