"""What outlives the agent: verdicts, events that wait for a receiver, how far watchers have come.

One SQLite file, written by one process. Where there is no place to write, everything is kept in
memory, and that is said.
"""

from cgotel.store.database import Database, StoreUnavailable, state_directory
from cgotel.store.incidents import Incident, Incidents
from cgotel.store.marks import StoredBookmark
from cgotel.store.outbox import Outbox

__all__ = [
    "Database",
    "Incident",
    "Incidents",
    "Outbox",
    "StoreUnavailable",
    "StoredBookmark",
    "state_directory",
]
