"""For tests of collectors and watchers, ours and plugin authors': trees of files, sweeps, evidence."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar

from cgotel.contract import Collector, Stop, Tick, Watcher
from cgotel.evidence import Evidence
from cgotel.model import Reading

E = TypeVar("E", bound=Evidence)

Tree: TypeAlias = Mapping[str, "str | bytes | Tree"]
"""Names of files with their content, and names of directories with what is in them."""


def tree(content: Tree, *, into: Path) -> Path:
    """Write files and directories below ``into``, which is made where it is missing; return it.

    >>> mount = tree({"memory.max": "max\\n", "web.service": {"cpu.stat": "usage_usec 1\\n"}}, into=tmp_path)
    """
    into.mkdir(parents=True, exist_ok=True)
    for name, inside in content.items():
        if isinstance(inside, Mapping):
            tree(inside, into=into / name)
        else:
            (into / name).write_bytes(inside.encode() if isinstance(inside, str) else inside)
    return into


def sweep(collector: Collector, tick: Tick | None = None) -> list[Reading]:
    """Start a collector, ask it once, at ``tick`` (else at second 0 of both clocks), and close it.

    Raises what the collector raises, `Unavailable` among it: in an agent that would cost this
    collector's readings only.
    """
    try:
        collector.start()
        return list(collector.collect(tick or Tick(0, 0)))
    finally:
        collector.close()


class Heard:
    """What a watcher reported so far; `first` waits for more."""

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []
        self._changed = threading.Condition(threading.RLock())

    def report(self, evidence: Evidence) -> None:
        """Take one piece: the callable that `Watcher.watch` wants."""
        with self._changed:
            self.evidence.append(evidence)
            self._changed.notify_all()

    def all(self, kind: type[E], fits: Callable[[E], bool] = lambda _: True) -> list[E]:
        """Every piece of one kind that fits, so far."""
        with self._changed:
            return [piece for piece in self.evidence if isinstance(piece, kind) and fits(piece)]

    def first(self, kind: type[E], fits: Callable[[E], bool] = lambda _: True, timeout_s: float = 30) -> E:
        """The first piece of one kind that fits. Raises `TimeoutError` where none comes in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.all(kind, fits), timeout_s):
                raise TimeoutError(f"no such {kind.__name__} among {self.evidence}")
            return self.all(kind, fits)[0]


@contextmanager
def watched(watcher: Watcher, stop_timeout_s: float = 10) -> Iterator[Heard]:
    """Start a watcher and let it watch in a thread while the body runs; then stop and close it.

    What `Watcher.watch` raises is raised here at the end.
    """
    heard, stop, raised = Heard(), Stop(), list[BaseException]()

    def watch() -> None:
        try:
            watcher.watch(heard.report, stop)
        except BaseException as error:  # noqa: BLE001 - for the thread that waits
            raised.append(error)

    thread = threading.Thread(target=watch, daemon=True)
    try:
        watcher.start()
        thread.start()
        yield heard
    finally:
        stop.set()
        if thread.ident:
            thread.join(stop_timeout_s)
        watcher.close()
    if thread.is_alive():
        raise TimeoutError(f"watcher {watcher.name} did not stop within {stop_timeout_s:g} s")
    for error in raised:
        raise error
