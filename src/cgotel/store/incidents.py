"""Verdicts with the evidence that they were drawn from, the oldest dropped first."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from cgotel.restarts.case import Case, decode, encode
from cgotel.restarts.verdict import Verdict
from cgotel.store.database import Database


class Incident(NamedTuple):
    """One end and the verdict on it."""

    case: Case
    verdict: Verdict


class Incidents:
    """The last ``most`` incidents."""

    def __init__(self, database: Database, most: int = 10_000) -> None:
        self._database = database
        self._most = most
        self._added = 0

    def open(self, case: Case) -> None:
        """Keep an end that waits for its verdict, in case that this agent does not live to draw it."""
        row = (case.exit.uid, encode(case))
        self._database.attempt(
            lambda connection: connection.execute("INSERT OR REPLACE INTO opened VALUES (?, ?)", row)
        )

    def opened(self) -> list[Case]:
        """The ends that an earlier life left without a verdict."""
        cases: list[Case] = []

        def read(connection: sqlite3.Connection) -> None:
            for uid, evidence in connection.execute("SELECT uid, evidence FROM opened").fetchall():
                try:
                    cases.append(decode(evidence))
                except msgspec.MsgspecError:  # of a newer cgotel, or damaged: it will never be readable
                    connection.execute("DELETE FROM opened WHERE uid = ?", (uid,))

        self._database.attempt(read)
        return cases

    def add(self, incident: Incident) -> None:
        """Keep one; told again (by its uid), the newer verdict is kept."""
        row = _row(incident)
        self._added += 1
        trim = self._added % 100 == 1

        def change(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO incidents VALUES (?,?,?,?,?,?,?,?,?,?)", row)
            connection.execute("DELETE FROM opened WHERE uid = ?", (row[0],))
            if trim:
                connection.execute(
                    "DELETE FROM incidents WHERE uid IN "
                    "(SELECT uid FROM incidents ORDER BY ended_ns DESC LIMIT -1 OFFSET ?)",
                    (self._most,),
                )

        self._database.attempt(change)

    def has(self, uid: str) -> bool:
        """Whether an end was judged before, in this life or an earlier one."""
        with self._database.transaction() as connection:
            found = connection.execute("SELECT 1 FROM incidents WHERE uid = ?", (uid,)).fetchone()
        return found is not None


def _row(incident: Incident) -> tuple[object, ...]:
    case, verdict = incident
    workload = case.exit.workload
    return (
        case.exit.uid,
        case.exit.ended_ns,
        workload.runtime,
        workload.name,
        workload.id,
        workload.cgroup,
        verdict.cause,
        verdict.sureness,
        msgspec.json.encode(verdict),
        encode(case),
    )


def find(
    connection: sqlite3.Connection,
    what: str | None = None,
    since_ns: int = 0,
    cause: str | None = None,
    unreadable: Callable[[str, msgspec.MsgspecError], object] = lambda _uid, _error: None,
) -> Iterator[Incident]:
    """Incidents from a time on, the newest first, each read when it is asked for.

    ``what`` is a name, a unit without its suffix, a path or the end of one, or the beginning of an id;
    None for all. One that another version
    kept and this one cannot read is ``unreadable``, and left out.
    """
    query = "SELECT uid, evidence, verdict FROM incidents WHERE ended_ns >= ?"
    arguments: list[object] = [since_ns]
    if what is not None:
        what = what.encode("utf-8", "backslashreplace").decode()  # as evidence is kept
        tail = "/" + what.strip("/")
        query += " AND (name IN (?, ?) OR cgroup = ? OR substr(id, 1, ?) = ? OR substr(cgroup, ?) = ?)"
        arguments += [what, f"{what}.service", what, len(what), what, -len(tail), tail]
    if cause is not None:
        query += " AND cause = ?"
        arguments.append(cause)
    for uid, evidence, verdict in connection.execute(f"{query} ORDER BY ended_ns DESC", arguments):
        try:
            incident = Incident(decode(evidence), msgspec.json.decode(verdict, type=Verdict))
        except msgspec.MsgspecError as error:
            unreadable(uid, error)
        else:
            yield incident
