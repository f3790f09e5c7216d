"""Looks at single containers, for a while that has a bound."""

from __future__ import annotations

import time

from cgotel.runtimes.engine import messages
from cgotel.runtimes.engine.client import FAULTS, Client, Refused
from cgotel.runtimes.engine.messages import Container

PATIENCE_S = 5.0
"""How long a daemon may take for an answer."""

_STUCK_S = 60.0


class Asker:
    """Looks at containers, and gives up on one that does not answer rather than on those behind it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stuck: dict[str, float] = {}
        self.doubtful = False

    def __call__(self, container: str) -> Container | None:
        if time.monotonic() < self._stuck.get(container, 0):
            return None
        try:
            body = self._client.get(f"/containers/{container}/json", PATIENCE_S)
            return messages.container(body)
        except TimeoutError:
            self._stuck = {stuck: at for stuck, at in self._stuck.items() if at > time.monotonic()}
            self._stuck[container] = time.monotonic() + _STUCK_S
            self.doubtful = True
        except Refused as refused:
            self.doubtful |= refused.status != 404
        except FAULTS:
            self.doubtful = True
        return None

    def make_sure(self) -> None:
        """Raise one of `FAULTS` if it was no single container that did not answer."""
        self.doubtful = False
        self._client.get("/_ping", PATIENCE_S)
