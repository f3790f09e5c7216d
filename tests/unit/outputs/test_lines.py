"""A sweep as lines: what an entity is called, and what of it is a tag."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.outputs.parsed_lines import parsed
from tests.unit.outputs.sweeps import NOON_NS, cgroup, reading

from cgotel.contract import SourceStatus, State
from cgotel.model import Entity, Event, Severity
from cgotel.outputs import line_protocol as influx
from cgotel.outputs.lines import Lines

ID = "3f" * 32
WEB = cgroup("/system.slice/web.service")


def lines_of(*readings, **options):
    return parsed("".join(Lines(**options).of_readings(readings)))


def line_of(entity, numbers=None, **options):
    [line] = lines_of(reading(entity, numbers or {"memory.current": 1}), **options)
    return line


def test_a_cgroup_is_named_by_its_path_and_what_it_is():
    line = line_of(WEB)
    assert (line.measurement, line.time_ns) == ("cgotel_cgroup", NOON_NS)
    assert line.tags == {
        "path": "/system.slice/web.service",
        "kind": "service",
        "name": "web.service",
        "systemd_unit_name": "web.service",
        "systemd_slice_name": "system.slice",
    }


def test_a_container_has_the_names_that_other_plugins_give_it():
    tags = line_of(cgroup(f"/system.slice/docker-{ID}.scope")).tags
    assert (tags["container_id"], tags["container_runtime_name"]) == (ID, "docker")
    assert (tags["kind"], tags["name"]) == ("container", ID[:12])


def test_the_path_can_be_the_one_that_the_native_plugin_has():
    assert (
        line_of(WEB, path_prefix="/sys/fs/cgroup").tags["path"] == "/sys/fs/cgroup/system.slice/web.service"
    )


def test_what_changes_with_a_start_or_an_upgrade_is_no_tag():
    host = Entity("host", "h", {"host.name": "n", "host.id": "7", "os.description": "Debian 12"})
    agent = Entity("agent", "cgotel@7", {"process.pid": 7})
    lines = lines_of(reading(host, {"loadavg.1m": 1}), reading(agent, {"cgotel.sweep.points": 1}))
    assert [(line.measurement, line.tags) for line in lines] == [
        ("cgotel_host", {"host_name": "n", "host_id": "7"}),
        ("cgotel_agent", {}),
    ]


def test_a_plugins_kind_is_a_measurement_of_its_own():
    assert line_of(Entity("gpu card", "0", {"hw.id": "GPU-1"}))[:2] == ("cgotel_gpu card", {"hw_id": "GPU-1"})


@given(
    st.text(st.characters(exclude_characters="\x00"), min_size=1).filter(lambda text: text not in (".", ".."))
)
def test_a_hostile_name_is_one_line_like_any_other(name):
    line = line_of(cgroup(f"/system.slice/{name}"))
    assert line.fields == {"memory.current": 1}
    assert {"path", "kind", "name"} <= set(line.tags)


def test_a_path_as_long_as_can_be_stays_on_a_short_line():
    line = line_of(cgroup("/" + "/".join(["é, " * 85] * 60)))
    written = "".join(Lines().of_readings([reading(cgroup("/" + "/".join(["é, " * 85] * 60)), {"a": 1})]))
    assert line.fields == {"memory.current": 1}
    assert len(written.encode()) < influx.LONGEST_LINE


def test_owners_of_any_length_stay_on_short_lines():
    owned = {f"memory.limit{number}": (number, f"/{'x' * 4000}{number}") for number in range(64)}
    written = list(Lines().of_readings([reading(WEB, {}, owned)]))
    assert all(len(line.encode()) < influx.LONGEST_LINE for line in written)
    fields = {key: value for line in parsed("".join(written)) for key, value in line.fields.items()}
    assert len(fields) == 128


def test_a_made_again_cgroup_or_a_changed_set_of_series_is_seen_as_such():
    lines = Lines()
    for path, source in (("/a.service", "memory.current"), ("/b.service", "pids.current")):
        [line] = parsed("".join(lines.of_readings([reading(cgroup(path), {source: 1})])))
        assert (line.tags["path"], list(line.fields)) == (path, [source])


def test_an_event_is_a_line_with_what_it_says():
    event = Event(
        "cgotel.oom.kill",
        time_ns=5,
        observed_ns=9,
        severity=Severity.ERROR,
        entity=WEB,
        body='killed "1"\nof it',
        uid="oom:1",
        attributes={**WEB.attributes, "cgotel.oom.kills": 1, "cgotel.evidence": ("a", "b"), "x": True},
    )
    [line] = parsed(Lines().of_event(event))
    assert (line.measurement, line.time_ns) == ("cgotel_event", 5)
    assert line.tags["event"] == "cgotel.oom.kill"
    assert line.tags["severity"] == "error"
    assert line.tags["path"] == "/system.slice/web.service"
    assert line.fields == {
        "body": 'killed "1"\\nof it',
        "uid": "oom:1",
        "severity_number": 17,
        "observed_ns": 9,
        "cgotel.oom.kills": 1,
        "cgotel.evidence": '["a","b"]',
        "x": True,
    }


def test_an_event_with_much_to_say_stays_on_a_short_line():
    attributes = {f"evidence{number}": "é" * 3000 for number in range(100)}
    line = Lines().of_event(Event("e", 1, 1, Severity.INFO, WEB, "b" * 10**6, "u", attributes))
    assert len(line.encode()) < influx.LONGEST_LINE
    assert parsed(line)[0].fields["uid"] == "u"


def test_sources_are_one_line_of_states():
    statuses = [SourceStatus("cpu.stat", State.OK), SourceStatus("memory.max", State.ABSENT, "no controller")]
    [line] = parsed(Lines().of_sources(statuses, 7))
    assert line == ("cgotel_source", {}, {"cpu.stat": "ok", "memory.max": "absent"}, 7)
    assert Lines().of_sources([], 7) == ""
