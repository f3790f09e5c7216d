"""Whose word stands where several speak of one resource."""

from cgotel.model import Entity
from cgotel.outputs.otlp.resources import Resources

AGENT = Entity("agent", "cgotel", {"process.pid": 7})
CONTAINER = Entity("container", "/a", {"container.id": "x"})


def test_an_entity_stands_before_the_user_and_the_user_before_the_host():
    resources = Resources({"host.name": "h", "host.id": "i"}, {"host.name": "node", "container.id": "y"})
    assert resources.of(CONTAINER) == {"host.name": "node", "host.id": "i", "container.id": "x"}


def test_what_the_user_calls_the_host_it_is_called_on_its_own_resource_too():
    host = Entity("host", "i", {"host.name": "h", "host.id": "i"})
    assert Resources(host.attributes, {"host.name": "node"}).of(host) == {"host.name": "node", "host.id": "i"}


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


def test_a_resource_has_of_its_host_what_tells_hosts_apart():
    told = {"host.name": "h", "host.id": "i", "os.type": "linux"}
    resources = Resources({**told, "os.description": "Debian", "host.arch": "amd64"}, {})
    assert resources.of(CONTAINER) == {**told, "container.id": "x"}
