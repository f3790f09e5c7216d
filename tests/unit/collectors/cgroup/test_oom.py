"""An OOM kill is told once, where the victim lived, and never for what was killed before we looked."""

from cgotel.model import Severity

WEB = "web.service"
STAT = "usage_usec 0\nuser_usec 0\nsystem_usec 0\n"


def kills(cgroups, second: int, content: str) -> list[int]:
    cgroups.write({WEB: {"cpu.stat": STAT, "memory.events.local": content}})
    cgroups.sweep(second)
    return [event.attributes["cgotel.oom.kills"] for event in cgroups.collector.events()]


def test_a_rise_is_an_event_and_what_stood_there_at_first_is_none(cgroups) -> None:
    assert kills(cgroups, 0, "oom 4\noom_kill 3\n") == []
    assert kills(cgroups, 10, "oom 5\noom_kill 3\n") == []
    assert kills(cgroups, 20, "oom 5\noom_kill 4\n") == [1]
    assert kills(cgroups, 30, "oom 5\noom_kill 4\n") == []
    assert kills(cgroups, 40, "oom 9\noom_kill 7\n") == [3]


def test_an_event_says_what_the_kernel_said_and_no_more(cgroups) -> None:
    kills(cgroups, 0, "oom_kill 0\n")
    kills(cgroups, 10, "oom_kill 2\n")
    [event] = cgroups.collector.events()
    assert event.name == "cgotel.oom.kill"
    assert event.severity == Severity.ERROR
    assert event.time_ns == event.observed_ns == 10 * 10**9
    assert event.body == "the kernel's OOM killer killed 2 processes of /web.service"
    assert event.attributes["process.linux.cgroup"] == "0::/web.service"
    assert event.uid == f"oom_kill:{event.entity.key}:2"


def test_a_counter_that_falls_or_cannot_be_read_is_no_kill(cgroups) -> None:
    assert kills(cgroups, 0, "oom_kill 5\n") == []
    assert kills(cgroups, 10, "oom_kill 1\n") == []
    assert kills(cgroups, 20, "oom_kill max\n") == []
    assert kills(cgroups, 30, "oom_kill 9\n") == []
    assert kills(cgroups, 40, "oom_kill 10\noom_kill 10\n") == []
    assert kills(cgroups, 50, "") == []


def test_a_cgroup_made_anew_starts_from_its_own_ground(cgroups) -> None:
    """A second OOM after a restart must be seen, and the first must not be seen twice."""
    kills(cgroups, 0, "oom_kill 0\n")
    assert kills(cgroups, 10, "oom_kill 1\n") == [1]
    [first] = cgroups.collector.events()
    cgroups.remove(WEB)
    assert kills(cgroups, 20, "oom_kill 0\n") == []
    assert kills(cgroups, 30, "oom_kill 1\n") == [1]
    [second] = cgroups.collector.events()
    assert second.uid != first.uid


def test_the_subtrees_counter_alone_is_no_event(cgroups) -> None:
    cgroups.write(
        {WEB: {"cpu.stat": STAT, "memory.events": "oom_kill 0\n", "memory.events.local": "oom_kill 0\n"}}
    )
    cgroups.sweep(0)
    cgroups.write({WEB: {"memory.events": "oom_kill 1\n"}})
    cgroups.sweep(10)
    assert cgroups.collector.events() == []
