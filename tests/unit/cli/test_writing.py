"""Files beside the answer: one of its own for each command, and none that stays for ever."""

import os
import time

import pytest

from cgotel.cli import writing

HOUR_S = 3600


@pytest.fixture
def target(tmp_path):
    return tmp_path / "cgotel.prom"


def names(target):
    return {path.name for path in target.parent.iterdir()}


def leave(target, name, age_s):
    path = target.parent / name
    path.write_text("half")
    os.utime(path, (time.time() - age_s,) * 2)


def test_a_name_that_is_taken_is_somebody_elses(target, monkeypatch, capsys):
    monkeypatch.setattr(os, "urandom", bytes)
    taken = f".cgotel.prom.{bytes(8).hex()}.cgotel-new"
    leave(target, taken, 0)
    with pytest.raises(SystemExit) as end:
        writing.write(b"new", str(target))
    assert end.value.code == 1
    assert "File exists" in capsys.readouterr().err
    assert (target.parent / taken).read_text() == "half"


def test_what_a_killed_command_left_goes_after_an_hour(target):
    leave(target, ".cgotel.prom.0123456789abcdef.cgotel-new", HOUR_S + 60)
    leave(target, ".cgotel.prom.1123456789abcdef.cgotel-new", HOUR_S - 60)
    writing.write(b"new", str(target))
    assert names(target) == {"cgotel.prom", ".cgotel.prom.1123456789abcdef.cgotel-new"}


@pytest.mark.parametrize(
    "name",
    [
        ".other.prom.0123456789abcdef.cgotel-new",
        ".cgotel.prom.b.0123456789abcdef.cgotel-new",
        "cgotel.prom.0123456789abcdef.cgotel-new",
        ".cgotel.prom.notes.cgotel-new",
        ".cgotelXprom.0123456789abcdef.cgotel-new",
        ".cgotel.prom.0123456789abcdef.cgotel-new.bak",
    ],
)
def test_the_files_of_others_stay_however_old(target, name):
    leave(target, name, 10 * HOUR_S)
    writing.write(b"new", str(target))
    assert names(target) == {"cgotel.prom", name}


def test_a_name_as_long_as_a_name_may_be(tmp_path):
    target = tmp_path / ("é" * 127)
    writing.write(b"new", str(target))
    assert target.read_bytes() == b"new"
    assert names(target) == {target.name}
