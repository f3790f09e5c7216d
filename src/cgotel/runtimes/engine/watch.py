"""One connection to a daemon: events are read in one thread and worked through in another.

A daemon drops events of a reader that is slow (moby, pubsub: 100 ms), so the reader only takes them
in; who asks about a container takes its time. Events are worked through in the order in which they
came, one question at a time.
"""

from __future__ import annotations

import errno
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from cgotel.contract import Report, Stop, Timeline
from cgotel.evidence import Gap
from cgotel.runtimes.engine import messages
from cgotel.runtimes.engine.asker import PATIENCE_S, Asker
from cgotel.runtimes.engine.client import Client
from cgotel.runtimes.engine.follower import Follower
from cgotel.runtimes.engine.lines import Lines
from cgotel.runtimes.engine.marks import Mark
from cgotel.runtimes.engine.messages import Event
from cgotel.runtimes.engine.words import Words, seconds

_EVENTS = "/events?filters=%7B%22type%22%3A%5B%22container%22%2C%22network%22%5D%7D&since="
_OVERLAP_NS = 10**6  # Podman leaves out an event of exactly the time asked for
_QUIET_S = 0.3  # so long without an event: what was missed has been told
_REMEMBER_S = 3.0  # a daemon that has told nothing of it by now remembers nothing
_SILENT_S = 60.0  # so long without an event: ask whether anybody is there
_MARK_EVERY_S = 1.0
_MOST_WAITING = 100_000
_MOST_NONSENSE = 100


class Watch:
    """From the first event to the loss of the connection. ``mark`` is where an earlier one left off."""

    def __init__(
        self,
        client: Client,
        follower: Follower,
        mark: Mark | None,
        keep: Callable[[Mark], None],
        report: Report,
        timeline: Timeline,
        source: str,
        keep_words: bool,
    ) -> None:
        self._client = client
        self._follower = follower
        self._ask = Asker(client)
        follower.connect(self._ask, report)
        self._words = Words(client, report, keep_words)
        self._keep = keep
        self._report = report
        self._timeline = timeline
        self._source = source
        self._began = self._wall()
        self._resumed = mark is not None
        self._mark = mark or Mark(alive=self._began, time=self._began)
        self._left_off = self._mark.alive
        self._remembered = False  # the daemon told an event that was handled before: nothing is missing
        self._caught_up = False
        self._inbox: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._nonsense = 0
        self._overflowed = False
        self._kept = 0.0

    def run(self, stop: Stop) -> None:
        """Work until stopped. Raises what a client raises when the daemon is lost."""
        reader = threading.Thread(target=self._read, name="cgotel-events", daemon=True)
        self._words.start()
        reader.start()
        try:
            if not self._resumed:
                self._catch_up()
            self._work(stop)
        except TimeoutError:  # who knows since when it does not answer
            raise
        except BaseException:
            self._note_alive()
            raise
        else:
            self._note_alive()
        finally:
            self._keep(self._mark)
            self._words.close()
            self._client.hang_up()
            reader.join(PATIENCE_S)

    # The thread that reads

    def _read(self) -> None:
        lines = Lines()
        try:
            for piece in self._client.stream(_EVENTS + seconds(self._mark.time - _OVERLAP_NS)):
                for line in lines.feed(piece):
                    self._take(line)
                if lines.dropped:
                    lines.dropped = 0
                    self._unreadable()
            self._inbox.put(ConnectionResetError(errno.ECONNRESET, "it ended its events"))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the one who waits must know
            self._inbox.put(error)

    def _take(self, line: bytes) -> None:
        try:
            event = messages.event(line) if line.strip() else None
        except ValueError:
            self._unreadable()
            return
        if event is None:
            return
        if self._inbox.qsize() >= _MOST_WAITING:
            self._overflowed = True
        else:
            self._inbox.put(event)

    def _unreadable(self) -> None:
        self._nonsense += 1
        if self._nonsense > _MOST_NONSENSE:
            raise ValueError("it sends what is no event")
        self._report(self._gap(self._wall(), "an event could not be read"))

    # The thread that works

    def _work(self, stop: Stop) -> None:
        began = heard = time.monotonic()
        while not stop.is_set():
            due_s = self._follower.due()
            item = self._next(_QUIET_S if due_s is None else min(due_s, _QUIET_S))
            now = time.monotonic()
            if isinstance(item, Event):
                heard = now
                self._handle(item)
            elif item is not None:
                raise item
            elif not self._caught_up:
                if self._remembered or now - began > _REMEMBER_S:
                    self._catch_up()
            elif now - heard > _SILENT_S:
                self._ask.make_sure()
                heard = now
                self._mark.alive = self._wall()
            if self._ask.doubtful:
                self._ask.make_sure()
            self._look_into_logs()
            if now - self._kept > _MARK_EVERY_S:
                self._kept = now
                self._keep(self._mark)

    def _next(self, timeout_s: float) -> Event | BaseException | None:
        with suppress(queue.Empty):
            return self._inbox.get(timeout=max(0.001, timeout_s))
        return None

    def _handle(self, event: Event) -> None:
        if self._mark.has(event.key, event.wall_ns):
            self._remembered = True
            return
        if not self._caught_up and event.wall_ns >= self._began:
            self._catch_up()
        self._follower.event(event)
        self._mark.pass_(event.key, event.wall_ns)
        if self._overflowed and self._inbox.empty():
            self._overflowed = False
            self._report(self._gap(event.wall_ns, "more events than could be worked through"))

    def _look_into_logs(self) -> None:
        for ended in self._follower.ended:
            self._words.ask(ended)
        self._follower.ended.clear()

    # From what was missed to what is

    def _catch_up(self) -> None:
        """All that the daemon remembers has been told: now see what is, and say what may be missing.

        It remembers little (Docker: 256 events, and none from before it was started). If it still had
        the last event that was handled, nothing is missing.
        """
        self._caught_up = True
        missing = self._resumed and not self._remembered
        if missing:
            self._report(self._gap(self._left_off, "the daemon does not remember what happened meanwhile"))
        listed = messages.listed(self._client.get("/containers/json?all=1", PATIENCE_S))
        running = {one.id for one in listed if one.running}
        for container in self._follower.alive():
            if container not in running:
                self._follower.lost(container, self._left_off, self._wall())
        for one in listed:
            if not one.running and not missing:
                continue
            if (found := self._ask(one.id)) is None:
                continue
            if self._resumed:
                self._follower.found_ended(found, self._left_off, self._wall())
            self._follower.running(found)

    def _gap(self, since_wall: int, reason: str) -> Gap:
        return Gap(
            source=self._source,
            time_ns=self._timeline.now(),
            since_ns=self._timeline.from_wall(since_wall),
            reason=reason,
        )

    def _note_alive(self) -> None:
        if self._caught_up:
            self._mark.alive = self._wall()

    def _wall(self) -> int:
        return self._timeline.to_wall(self._timeline.now())
