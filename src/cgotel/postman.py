"""Brings events to outputs, each until it is taken, in order, whoever tells them."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from cgotel.contract import Output
from cgotel.model import Event
from cgotel.store import Outbox

log = logging.getLogger(__name__)

_MOST_TRIES = 5  # of an event over which an output raises: it would raise for ever

Guarded = Callable[[Output, Callable[[], None]], bool]
"""Calls something of an output on the agent's terms; whether it went well."""


class Postman:
    """Offers every event to every output; one that was not taken is offered again at `round`.

    An output may take its time: it says later, from any thread, whether an event was taken.
    """

    def __init__(self, outbox: Outbox, outputs: Sequence[Output], guarded: Guarded) -> None:
        self._outbox = outbox
        self._outputs = {output.name: output for output in outputs}
        self._guarded = guarded
        self._offered: set[tuple[str, int]] = set()
        self._tries: Counter[tuple[str, int]] = Counter()
        self._lock = threading.RLock()

    @property
    def dropped(self) -> int:
        """Events that were given up: too old, or more than an output could bear."""
        return self._outbox.dropped

    @property
    def waiting(self) -> int:
        """Events that an output has still to take, those on their way included."""
        return self._outbox.count()

    def post(self, event: Event) -> None:
        """Keep an event and offer it; one that was told before is not told again."""
        with self._lock:
            if self._outbox.add(event):
                self.round()

    def round(self) -> None:
        """Offer what waits and is not on its way."""
        with self._lock:
            for name, output in self._outputs.items():
                for number, event in self._outbox.waiting(name):
                    if (name, number) not in self._offered:
                        self._offer(output, number, event)

    def _offer(self, output: Output, number: int, event: Event) -> None:
        key = (output.name, number)
        self._offered.add(key)
        self._tries[key] += 1
        settled = partial(self._settled, *key)
        if not self._guarded(output, partial(output.deliver, event, settled)):
            self._settled(*key, self._tries[key] >= _MOST_TRIES)

    def _settled(self, name: str, number: int, taken: bool) -> None:
        """Without our lock: an output may call this while it holds its own, which `round` waits for."""
        if taken:
            self._outbox.taken(name, number)
            self._tries.pop((name, number), None)
        self._offered.discard((name, number))
