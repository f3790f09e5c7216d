"""What plugin authors test with: a tree of files, and one sweep."""

import pytest

from cgotel.contract import Collector, SourceStatus, State, Tick, Unavailable
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Instrument, Reading
from cgotel.testing import sweep, tree

BOILED = Instrument("kettle.boiled", "counter", "{litre}", "Water boiled").series("kettle.boiled")


class Kettle(Collector):
    name = "kettle"
    opened = closed = 0

    def start(self) -> None:
        if self.config == "empty":
            raise Unavailable(SourceStatus(self.name, State.ABSENT, "no water"))
        self.opened += 1

    def collect(self, tick: Tick):
        if self.config == "broken":
            raise ZeroDivisionError
        yield Reading.of(Entity("kettle", "k"), tick.time_ns, [(BOILED, tick.monotonic_ns)])

    def close(self) -> None:
        self.closed += 1


def test_a_tree_has_the_files_and_directories_that_it_states(tmp_path) -> None:
    mount = tree(
        {"memory.max": "max\n", "a": {"cpu.stat": b"\xff\n", "b": {}}}, into=tmp_path / "new" / "mount"
    )
    assert mount == tmp_path / "new" / "mount"
    assert (mount / "memory.max").read_bytes() == b"max\n"
    assert (mount / "a/cpu.stat").read_bytes() == b"\xff\n"
    assert (mount / "a/b").is_dir()


def test_a_tree_is_added_to_what_is_there(tmp_path) -> None:
    tree({"a": {"x": "1\n", "y": "1\n"}}, into=tmp_path)
    tree({"a": {"x": "2\n"}}, into=tmp_path)
    assert (tmp_path / "a/x").read_text() == "2\n"
    assert (tmp_path / "a/y").read_text() == "1\n"


def test_a_sweep_starts_asks_and_closes(tmp_path) -> None:
    kettle = Kettle(None, Roots())
    [reading] = sweep(kettle, Tick(7, 9))
    assert (reading.time_ns, reading.value("kettle.boiled")) == (7, 9)
    assert (kettle.opened, kettle.closed) == (1, 1)
    [reading] = sweep(kettle)
    assert (reading.time_ns, reading.value("kettle.boiled")) == (0, 0)


@pytest.mark.parametrize(("config", "error"), [("empty", Unavailable), ("broken", ZeroDivisionError)])
def test_what_a_collector_raises_comes_out_and_it_is_closed(config: str, error: type[Exception]) -> None:
    kettle = Kettle(config, Roots())
    with pytest.raises(error):
        sweep(kettle)
    assert kettle.closed == 1
