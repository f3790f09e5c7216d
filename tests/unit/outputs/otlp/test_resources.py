"""Whose word stands where several speak of one resource."""

from cgotel.model import Entity
from cgotel.outputs.otlp.resources import Resources, host

AGENT = Entity("agent", "cgotel", {"process.pid": 7})
CONTAINER = Entity("container", "/a", {"container.id": "x"})


def test_an_entity_stands_before_the_user_and_the_user_before_the_host():
    resources = Resources({"host.name": "h", "host.id": "i"}, {"host.name": "node", "container.id": "y"})
    assert resources.of(CONTAINER) == {"host.name": "node", "host.id": "i", "container.id": "x"}


def test_only_the_agent_is_the_service_cgotel():
    resources = Resources({"host.id": "i"}, {})
    assert "service.name" not in resources.of(CONTAINER)
    agent = resources.of(AGENT)
    assert (agent["service.name"], agent["process.pid"]) == ("cgotel", 7)
    assert agent["service.instance.id"] == Resources({"host.id": "i"}, {}).of(AGENT)["service.instance.id"]
    assert agent["service.instance.id"] != Resources({"host.id": "j"}, {}).of(AGENT)["service.instance.id"]


def test_a_service_name_of_the_user_is_on_every_resource():
    resources = Resources({}, {"service.name": "mine"})
    assert {resources.of(e)["service.name"] for e in (AGENT, CONTAINER)} == {"mine"}


def test_a_container_speaks_of_the_host_below_host_root(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hostname").write_text("the-host\n")
    (tmp_path / "etc/machine-id").write_text("0123\n")
    expected = {"host.name": "the-host", "os.type": "linux", "host.id": "0123"}
    assert host({"HOST_ROOT": str(tmp_path)}) == expected
    assert host({"HOST_ETC": str(tmp_path / "etc")}) == expected


def test_what_cannot_be_read_is_left_out(tmp_path):
    found = host({"HOST_ROOT": str(tmp_path)})
    assert "host.id" not in found
    assert found["host.name"]
