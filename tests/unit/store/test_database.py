"""The store's file: one writer, set aside when corrupt, in memory where there is no place."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.restarts.test_cases import load

from cgotel.store import Database, Incidents, StoredBookmark, StoreUnavailable, state_directory
from cgotel.store.database import read_only

HOLDER = """
import sys
from pathlib import Path
from cgotel.store import Database

database = Database(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_bookmark_outlives_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    first = Database(path)
    StoredBookmark(first, "kernel_log").write(b"seq 7")
    first.close()
    again = Database(path)
    assert StoredBookmark(again, "kernel_log").read() == b"seq 7"
    assert StoredBookmark(again, "docker").read() is None
    again.close()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_corrupt_store_is_set_aside_told_and_begun_anew(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "agent.db"
    path.write_bytes(content)
    database = Database(path)
    [aside] = tmp_path.glob("agent.db.corrupt-*")
    assert aside.read_bytes() == content
    assert aside.name in caplog.text
    StoredBookmark(database, "x").write(b"1")
    database.close()
    with closing(read_only(path)) as connection:
        assert connection.execute("SELECT count(*) FROM marks").fetchone() == (1,)


def test_a_store_that_another_process_writes_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "agent.db"
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            HOLDER,
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        second = Database(path)
        assert second.in_memory
        assert "another cgotel" in caplog.text
        second.close()
    finally:
        holder.communicate(b"")


def test_where_nothing_can_be_written_all_goes_on_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    database = Database(tmp_path / "file" / "agent.db")
    assert database.in_memory
    assert "in memory" in caplog.text
    assert database.attempt(lambda connection: connection.execute("SELECT 1"))


def test_what_cannot_be_written_is_told_once_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(tmp_path / "agent.db")
    with database.transaction() as connection:
        connection.execute("PRAGMA max_page_count = 1")  # as on a full disk
    for number in range(3):
        assert not database.attempt(
            lambda c, n=number: c.execute("INSERT INTO marks VALUES (?, zeroblob(100000))", (str(n),))
        )
    assert database.faults == 3
    assert caplog.text.count("full") == 1
    database.close()


def test_reading_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"none\.db: unable to open"):
        read_only(tmp_path / "none.db")


def test_a_store_of_a_newer_cgotel_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute("CREATE TABLE future (x)")
    database = Database(path)
    [aside] = tmp_path.glob("agent.db.corrupt-*")
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("future",)]
    database.close()


@pytest.mark.parametrize(
    ("configured", "environ", "place"),
    [
        ("/srv/state", {"STATE_DIRECTORY": "/x"}, "/srv/state"),
        (None, {"STATE_DIRECTORY": "/var/lib/private/cgotel:/other"}, "/var/lib/private/cgotel"),
    ],
)
def test_where_state_is_kept(configured: str | None, environ: dict[str, str], place: str) -> None:
    assert state_directory(configured, environ) == Path(place)


def test_where_state_is_kept_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert state_directory(None, {"HOME": "/home/ann"}) == Path("/home/ann/.local/state/cgotel")
    assert state_directory(None, {"XDG_STATE_HOME": "/state", "HOME": "/"}) == Path("/state/cgotel")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert state_directory(None, {"HOME": "/root"}) == Path("/var/lib/cgotel")


def test_an_error_that_will_pass_does_not_set_a_sound_store_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "agent.db"
    first = Database(path)
    StoredBookmark(first, "kernel_log").write(b"seq 7")
    first.close()
    with closing(sqlite3.connect(path)) as other:  # as a full disk does, this fails without any damage
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        database = Database(path)
        assert database.in_memory
        database.close()
    assert "in memory only" in caplog.text
    assert list(tmp_path.glob("*corrupt*")) == []
    again = Database(path)
    assert StoredBookmark(again, "kernel_log").read() == b"seq 7"
    again.close()


@pytest.mark.parametrize("how", ["deleted", "replaced", "with its directory"])
def test_a_store_that_is_taken_away_is_begun_anew(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state" / "agent.db"
    database = Database(path)
    StoredBookmark(database, "old").write(b"1")
    if how == "with its directory":
        shutil.rmtree(path.parent)
    else:
        for file in path.parent.glob("agent.db*"):
            if file.suffix != ".lock":
                file.unlink()
    if how == "replaced":
        path.write_bytes(b"")
    StoredBookmark(database, "new").write(b"2")
    assert "taken away" in caplog.text
    assert database.faults == 0
    with closing(read_only(path)) as connection:
        assert connection.execute("SELECT name FROM marks").fetchall() == [("new",)]
    database.close()


def test_a_store_that_is_damaged_while_it_is_written_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    database = Database(path)
    for number in range(100):
        StoredBookmark(database, f"old {number}").write(b"x" * 1000)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(path, 8192)
    StoredBookmark(database, "new").write(b"2")
    StoredBookmark(database, "newer").write(b"2")
    assert list(tmp_path.glob("agent.db.corrupt-*"))
    database.close()
    with closing(read_only(path)) as connection:
        assert connection.execute("SELECT name FROM marks ORDER BY name").fetchall()[:1] == [("new",)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_one_unreadable_case_among_those_left_open_costs_no_other(tmp_path: Path) -> None:
    database = Database(tmp_path / "agent.db")
    incidents, case = Incidents(database), load("137-nothing-known")
    incidents.open(case)
    with database.transaction() as connection:
        connection.execute("INSERT INTO opened VALUES ('0', ?)", (b'{"of": "a newer version"}',))
    assert incidents.opened() == [case]
    with database.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM opened").fetchone() == (1,)
    database.close()


def test_a_store_that_was_closed_is_not_opened_again_by_who_comes_late(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    database = Database(path)
    late = StoredBookmark(database, "late")
    database.close()
    database._closed = False  # closed as the interpreter ends, and not by its owner
    late.write(b"1")
    assert database.faults == 1
    database._closed = True
    late.write(b"2")
    assert database.faults == 2
    assert list(tmp_path.glob("*corrupt*")) == []
    again = Database(path)
    assert not again.in_memory
    again.close()
