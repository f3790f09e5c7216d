"""The file: opened by one writer, set aside when it is corrupt, kept in memory where it cannot be."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

log = logging.getLogger(__name__)

_VERSION = 1
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS incidents (
    uid TEXT PRIMARY KEY, ended_ns INTEGER NOT NULL, runtime TEXT NOT NULL, name TEXT NOT NULL,
    id TEXT NOT NULL, cgroup TEXT, cause TEXT NOT NULL, sureness TEXT NOT NULL,
    verdict BLOB NOT NULL, evidence BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS incidents_by_time ON incidents (ended_ns);
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, event BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS deliveries (
    output TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (output, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS opened (uid TEXT PRIMARY KEY, evidence BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, content BLOB NOT NULL);
"""


class StoreUnavailable(Exception):  # noqa: N818 - a state, not a fault
    """A store cannot be opened for reading: one line says which and why."""


def state_directory(configured: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Where state is kept: as configured, else systemd's STATE_DIRECTORY, /var/lib/cgotel for root,
    else below XDG_STATE_HOME or ~/.local/state.
    """
    if configured:
        return Path(configured)
    if by_systemd := environ.get("STATE_DIRECTORY", "").split(":")[0]:
        return Path(by_systemd)
    if os.geteuid() == 0:
        return Path("/var/lib/cgotel")
    base = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME") or "/", ".local", "state"))
    return Path(base, "cgotel")


class Database:
    """One SQLite database, safe to use from several threads.

    What fails for want of space or for a damaged disk costs what was to be written: it is told
    once, counted in ``faults``, and the caller goes on. A file that is deleted, replaced or damaged
    meanwhile is begun anew.
    """

    def __init__(self, path: Path | None) -> None:
        self.path: Path | None = None
        self.faults = 0
        self._told = ""
        self._changes = 0
        self._lock = threading.RLock()
        self._held: int | None = None
        self._file: tuple[int, int] | None = None
        self._closed = False
        self._open(path)

    @property
    def in_memory(self) -> bool:
        """Whether nothing of it outlives this process."""
        return self.path is None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything in the body, or nothing. Raises `sqlite3.Error`."""
        with self._lock:
            if self.path is not None and not self._closed and _file(self.path) != self._file:
                log.error("%s was taken away: a new one is begun", self.path)
                self._open_again(self.path)
            with self._connection:
                yield self._connection

    def attempt(self, change: Callable[[sqlite3.Connection], object]) -> bool:
        """Make a change; False, told and counted, where that cannot be done now."""
        try:
            self._make(change)
        except sqlite3.Error as error:
            self.faults += 1
            if str(error) != self._told:
                self._told = str(error)
                log.error("%s: %s: what was to be kept is not", self.path or "the store", error)
            self._has_changed()
            return False
        if self._has_changed():  # to read is no sign of space
            self._told = ""
        return True

    def _has_changed(self) -> bool:
        """Whether anything was written since this was asked last."""
        before = self._changes
        with suppress(sqlite3.ProgrammingError):  # it is closed
            self._changes = self._connection.total_changes
        return self._changes != before

    def close(self) -> None:
        """Let go of the file. May be called twice."""
        with self._lock:
            self._closed = True
            self._let_go()

    def _make(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Make a change; where the file turns out to be damaged, in a new one."""
        try:
            with self.transaction() as connection:
                change(connection)
        except sqlite3.DatabaseError as error:
            with self._lock:
                if self.path is None or self._closed or not _is_damage(error):
                    raise
                self._open_again(self.path)
            with self.transaction() as connection:
                change(connection)

    def _open(self, path: Path | None) -> None:
        self._connection = self._opened(path)
        self._file = _file(self.path) if self.path is not None else None
        self._let_go = weakref.finalize(self, _let_go, self._connection, self._held)

    def _open_again(self, path: Path) -> None:
        """As at the start; what cannot be opened any more is from now on kept in memory."""
        self._let_go()
        self.path, self._held = None, None
        self._open(path)

    def _opened(self, path: Path | None) -> sqlite3.Connection:
        if path is None:
            return _prepared(":memory:")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._held = _locked(path)
        except BlockingIOError:
            log.warning("%s is another cgotel's: verdicts of this one are kept in memory only", path)
            return _prepared(":memory:")
        except OSError as error:
            log.warning("%s: %s: verdicts are kept in memory only", path, error.strerror)
            return _prepared(":memory:")
        try:
            connection = _prepared(str(path))
        except sqlite3.Error as error:
            if _is_damage(error):
                return self._begun_anew(path, error)
            log.warning("%s: %s: verdicts are kept in memory only", path, error)
            return _prepared(":memory:")
        self.path = path
        return connection

    def _begun_anew(self, path: Path, error: sqlite3.Error) -> sqlite3.Connection:
        aside = path.with_name(f"{path.name}.corrupt-{time.strftime('%Y%m%dT%H%M%S')}")
        try:
            path.rename(aside)
            for companion in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    path.with_name(path.name + companion).rename(aside.with_name(aside.name + companion))
            connection = _prepared(str(path))
        except (OSError, sqlite3.Error) as still:
            log.error("%s: %s; nor can a new one be begun: %s: kept in memory only", path, error, still)
            return _prepared(":memory:")
        log.error("%s: %s: it is kept as %s, and a new one is begun", path, error, aside.name)
        self.path = path
        return connection


def _file(path: Path) -> tuple[int, int] | None:
    """Which file stands at a path; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether an error is the file's own, and not a lack of space or of a lock that will pass."""
    if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError):
        return False
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & 0xFF in _DAMAGED


def _let_go(connection: sqlite3.Connection, held: int | None) -> None:
    connection.close()
    if held is not None:
        os.close(held)


def _locked(path: Path) -> int:
    """The lock file of a database, held. Raises `BlockingIOError` where another process holds it."""
    held = os.open(path.with_name(f"{path.name}.lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held


def _prepared(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, check_same_thread=False, timeout=5)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise sqlite3.DatabaseError(f"made by a newer cgotel (version {version})")
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("database disk image is malformed")
        connection.executescript(_SCHEMA)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection


def read_only(path: Path) -> sqlite3.Connection:
    """A store that another process may be writing, for reading. Raises `StoreUnavailable`."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        connection.execute("SELECT 1 FROM incidents LIMIT 1")
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"{path}: {error}") from error
    return connection
