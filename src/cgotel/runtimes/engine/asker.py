"""Looks at single containers, for a while that has a bound."""

from __future__ import annotations

import time
from typing import NamedTuple

from cgotel.runtimes.engine import messages
from cgotel.runtimes.engine.client import FAULTS, Client, Refused
from cgotel.runtimes.engine.messages import Container
from cgotel.runtimes.latest import Latest

PATIENCE_S = 10.0
"""How long a daemon may take for an answer: a host without memory to spare is slow, and not dead."""

_FIRST_PAUSE_S = 5.0
_LAST_PAUSE_S = 60.0


class _Stuck(NamedTuple):
    """One that did not answer: it is not asked again before ``until``."""

    until: float
    pause_s: float


class Asker:
    """Looks at containers, and gives up on one that does not answer rather than on those behind it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stuck: Latest[str, _Stuck] = Latest(1000)
        self.doubtful = False

    def __call__(self, container: str) -> Container | None:
        stuck = self._stuck.get(container)
        if stuck is not None and time.monotonic() < stuck.until:
            return None
        try:
            found = messages.container(self._client.get(f"/containers/{container}/json", PATIENCE_S))
        except TimeoutError:
            pause_s = min(2 * stuck.pause_s, _LAST_PAUSE_S) if stuck else _FIRST_PAUSE_S
            self._stuck.put(container, _Stuck(time.monotonic() + pause_s, pause_s))
            self.doubtful = True
        except Refused as refused:
            self.doubtful |= refused.status != 404
        except FAULTS:
            self.doubtful = True
        else:
            self._stuck.pop(container, None)
            return found
        return None

    def make_sure(self) -> None:
        """Raise one of `FAULTS` if it was no single container that did not answer."""
        self.doubtful = False
        self._client.get("/_ping", PATIENCE_S)
