"""Lines and bodies as real daemons sent them: Docker 20.10.24 and 26.1.5, Podman 4.3.1 and 5.4.2 of
Debian 12 and 13, recorded while each thing was done to a container of busybox."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.clock import Clocks, Timeline
from cgotel.evidence import Workload
from cgotel.runtimes.engine import messages, told
from cgotel.runtimes.engine.lines import Lines

RECORDED = Path(__file__).parent / "recorded"
DAEMONS = ("docker-20.10.24", "docker-26.1.5", "podman-4.3.1", "podman-5.4.2")


def events(daemon: str) -> list[messages.Event]:
    found = [messages.event(line) for line in (RECORDED / f"{daemon}.events").read_bytes().splitlines()]
    return [event for event in found if event is not None]


def named(daemon: str, name: str) -> list[messages.Event]:
    return [event for event in events(daemon) if event.name == name]


@pytest.mark.parametrize("daemon", DAEMONS)
def test_reads_every_event_of_a_real_daemon(daemon: str) -> None:
    told = events(daemon)
    assert len({event.key for event in told}) == len(told)
    assert all(event.wall_ns > 1_796_000_000 * 10**9 for event in told)
    deaths = [event.code for event in told if event.action == "die" and event.name == "a3"]
    assert deaths == [3]
    assert {event.image for event in told if event.topic == "container"} == {"localhost/bb:1"}


@pytest.mark.parametrize("daemon", DAEMONS)
def test_a_start_that_failed_has_no_start(daemon: str) -> None:
    actions = [event.action for event in named(daemon, "miss")]
    assert "create" in actions
    assert not {"start", "die"} & set(actions)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_only_docker_numbers_a_signal(daemon: str) -> None:
    kills = [event for event in events(daemon) if event.action == "kill"]
    assert kills
    assert all(bool(event.signal) == daemon.startswith("docker") for event in kills)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_reads_every_container_of_a_real_daemon(daemon: str) -> None:
    bodies = (RECORDED / f"{daemon}.containers").read_bytes().splitlines()
    found = [messages.container(body) for body in bodies]
    by_name = {container.name: container for container in found}
    a3 = by_name["a3"]
    assert (a3.code, a3.running, a3.pid, a3.status) == (3, False, None, "exited")
    assert a3.began is not None
    assert a3.ended is not None
    assert 0.2e9 < a3.ended - a3.began < 2e9
    assert a3.image_id.startswith("sha256:")
    assert by_name["miss"].began is None
    assert by_name["miss"].ended is None
    assert by_name["pol"].restart_count == 2
    assert by_name["pol"].restart_policy == "on-failure"
    assert a3.health is None  # Podman 4.3 shows an empty one
    assert by_name["hea"].health is not None


def test_a_failed_start_as_docker_shows_it() -> None:
    bodies = (RECORDED / "docker-20.10.24.containers").read_bytes().splitlines()
    missing = next(c for body in bodies if (c := messages.container(body)).name == "miss")
    assert missing.code == 127
    assert "no such file or directory" in missing.error


def test_failures_in_a_row_are_counted_back_from_the_last_probe() -> None:
    probes = tuple(messages.Probe(at, at + 1, code, "") for at, code in ((1, 1), (2, 0), (3, 1), (4, 1)))
    health = messages.Health("unhealthy", 2, probes)
    timeline = Timeline(lambda: Clocks(0, 0, 0))
    results = [r for _, r in told.probe_results(health, 0, Workload(runtime="docker", id="x"), timeline)]
    assert [r.failures for r in results] == [None, 0, 1, 2]


def test_failures_of_the_start_period_are_not_counted() -> None:
    health = messages.Health("starting", 0, (messages.Probe(1, 2, 1, ""),))
    timeline = Timeline(lambda: Clocks(0, 0, 0))
    ((_, result),) = told.probe_results(health, 0, Workload(runtime="docker", id="x"), timeline)
    assert (result.ok, result.failures) == (False, None)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01T00:00:01.5Z", 15 * 10**8),
        ("1970-01-01T02:00:01.000000007+02:00", 10**9 + 7),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
        ("1970-13-01T00:00:01Z", None),
        ("yesterday", None),
    ],
)
def test_stamps(text: str, nanoseconds: int | None) -> None:
    assert messages.stamp(text) == nanoseconds


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_none_or_a_value_error(line: bytes) -> None:
    for read in (messages.event, messages.container, messages.listed):
        try:
            read(line)
        except ValueError:
            continue


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("Type", "Action", "Actor", "time", "timeNano"), values))
)
def test_an_event_of_any_shape_is_read_or_refused(content: dict[str, object]) -> None:
    try:
        messages.event(msgspec.json.encode(content))
    except ValueError:
        return


def test_a_hostile_name_comes_cut_and_otherwise_as_it_was() -> None:
    name = "\x1b[2J\n" + "x" * 5000
    line = msgspec.json.encode(
        {"Type": "container", "Action": "die", "Actor": {"ID": "a" * 64, "Attributes": {"name": name}}}
    )
    event = messages.event(line)
    assert event is not None
    assert event.name == name[:1024]


@given(
    st.lists(st.binary(max_size=50).filter(lambda line: b"\n" not in line), max_size=20), st.integers(1, 64)
)
def test_lines_come_apart_wherever_the_pieces_end(content: list[bytes], size: int) -> None:
    stream = b"".join(line + b"\n" for line in content)
    lines, found = Lines(), []
    for at in range(0, len(stream), size):
        found += lines.feed(stream[at : at + size])
    assert found == content


def test_a_line_too_long_is_left_out_and_counted() -> None:
    lines = Lines(longest=10)
    found = [*lines.feed(b"short\n" + b"x" * 8), *lines.feed(b"x" * 8), *lines.feed(b"x\nafter\n")]
    assert found == [b"short", b"after"]
    assert lines.dropped == 1
