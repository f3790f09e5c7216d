"""The plugin behind the callbacks: configured, started, read, shut down; it raises nothing, ever.

A raising config callback keeps the whole daemon from starting. A raising read callback is asked ever
more seldom, up to once a day. Five that block stop all of collectd. So every callback is guarded,
sweeps run in a thread of cgotel's own that is begun after the daemon's fork, and the read callback
waits for half an interval at most.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from cgotel.assemble import Assembly, assemble
from cgotel.clock import now
from cgotel.collectd.background import Background
from cgotel.collectd.daemon import Daemon, DaemonLog, advice, missing_types
from cgotel.collectd.options import Node, Options, parse
from cgotel.collectd.work import PLUGIN, Swept, Work
from cgotel.config import ConfigError
from cgotel.outputs.collectd import Entry, Mapper
from cgotel.outputs.collectd.notifications import Notification, notification

STOP_TIMEOUT_S = 0.5

_FIRST_HOLD_S = 0.5
_MOST_HOLD_S = 5.0
_HELD_SHARE = 0.5  # of the interval, waiting for a sweep
_READ_SHARE = 0.9  # of the interval, dispatching included


class Plugin:
    """One a daemon. ``collectd`` is the daemon's own module."""

    def __init__(self, collectd: Daemon) -> None:
        self._collectd = collectd
        self._log = logging.getLogger("cgotel")
        self._handler = DaemonLog(collectd)
        self._options = Options()
        self._configured = False
        self._off = False
        self._work: Work | None = None
        self._background: Background[Swept] | None = None
        self._pending: deque[Entry] = deque()
        self._pending_time_s = 0.0
        self._read_at_ns: int | None = None
        self._told = ""
        self._listen()

    def configure(self, blocks: Iterable[Node]) -> None:
        """Take the options of a ``<Module>`` block."""
        self._options, faults = parse(blocks)
        if self._configured:
            faults.append("there are two <Module cgotel_collectd> blocks; one is allowed")
        self._configured = True
        if not faults:
            faults += _config_faults(self._options)
        for fault in faults:
            self._log.error("%s", fault)
        if faults:
            self._off = True
            self._log.error("cgotel stays off until its configuration is corrected; collectd goes on")

    def init(self) -> None:
        """Begin to read: after the daemon's fork, before its reader threads."""
        if self._off or self._background is not None:
            return
        try:
            assembly = _assembled(self._options)
        except ConfigError as error:
            self._log.error("%s; cgotel stays off", error)
            return
        self._begin(assembly)
        name = "cgotel_collectd"
        if self._options.interval is None:
            self._collectd.register_read(self.read, name=name)
        else:
            self._collectd.register_read(self.read, self._options.interval, name=name)

    def _begin(self, assembly: Assembly) -> None:
        missing = missing_types(self._collectd)
        if missing:
            self._log.error("%s", advice(missing))
        for fault in assembly.registry.faults():
            self._log.error("%s", fault)
        self._work = Work(assembly, Mapper(missing))
        self._background = Background(self._work.sweep, self._work.close)
        self._background.start()

    def read(self) -> None:
        """Ask for a sweep, wait a little, dispatch what there is. Never raises."""
        try:
            try:
                self._read()
            finally:
                self._notify()
        except Exception as error:  # noqa: BLE001 - collectd would ask ever more seldom
            self._log.error("%s: %s", type(error).__name__, error)

    def _read(self) -> None:
        assert self._background is not None, "read() before init()"
        began_ns = now().monotonic_ns
        hold_s = self._hold_s(began_ns)
        if not self._pending:
            swept = self._background.take(hold_s if self._background.ask() else 0)
            if swept is None:
                self._tell_late(self._background.busy_s())
                return
            self._pending.extend(swept.entries)
            self._pending_time_s = swept.time_s
        self._dispatch(began_ns + int(hold_s * 1e9 / _HELD_SHARE * _READ_SHARE))

    def _hold_s(self, began_ns: int) -> float:
        """How long to wait for a sweep: a share of the interval, which collectd does not tell."""
        before_ns, self._read_at_ns = self._read_at_ns, began_ns
        interval_s = self._options.interval
        if interval_s is None:
            if before_ns is None:
                return _FIRST_HOLD_S
            interval_s = (began_ns - before_ns) / 1e9
        return min(_HELD_SHARE * interval_s, _MOST_HOLD_S)

    def _dispatch(self, until_ns: int) -> None:
        """Hand over what is pending; what the time does not suffice for follows at the next read."""
        while self._pending:
            entry = self._pending.popleft()
            values = self._collectd.Values(
                plugin=PLUGIN,
                plugin_instance=entry.plugin_instance,
                time=self._pending_time_s,
                interval=self._options.interval or 0,
                meta=entry.meta if self._options.meta else {},
            )
            for value in entry.values:
                values.dispatch(type=value.type, type_instance=value.type_instance, values=value.numbers)
            if now().monotonic_ns > until_ns and self._pending:
                self._tell(
                    "slow",
                    f"collectd takes longer than an interval for the values of one sweep; those of "
                    f"{len(self._pending)} cgroups follow: raise Interval, or narrow by Include or Kinds",
                )
                return

    def _notify(self) -> None:
        assert self._work is not None, "read() before init()"
        for number, event in self._work.outbox.waiting(PLUGIN):
            if self._options.notifications:
                self._dispatch_notification(notification(event))
            self._work.outbox.taken(PLUGIN, number)

    def _dispatch_notification(self, told: Notification) -> None:
        self._collectd.Notification(
            plugin=PLUGIN,
            plugin_instance=told.plugin_instance,
            type=told.type,
            type_instance=told.type_instance,
            message=told.message,
            severity=told.severity,
            time=told.time_s,
            meta=told.meta,
        ).dispatch()

    def _tell_late(self, busy_s: float) -> None:
        self._tell(
            "late",
            f"a sweep has not ended after {busy_s:.1f} s; its values follow when it has. If it never "
            f"does, a kernel file blocks: see the stack of collectd's thread in /proc/PID/task/*/stack",
        )

    def _tell(self, what: str, warning: str) -> None:
        """Once, until another thing is to be told."""
        if self._told != what:
            self._told = what
            self._log.warning("%s", warning)

    def shutdown(self) -> None:
        """Stop within a second, whatever blocks."""
        if self._background is not None and not self._background.stop(STOP_TIMEOUT_S):
            self._log.warning("a sweep still runs at the end; it is left behind")
        self._log.removeHandler(self._handler)

    def _listen(self) -> None:
        self._log.addHandler(self._handler)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False


def _environment() -> dict[str, str]:
    """HOST_* and the like, without what speaks of OpenTelemetry: it has no say here."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}


def _assembled(options: Options) -> Assembly:
    assembly = assemble(options.config, _environment())
    return replace(assembly, configuration=options.over(assembly.configuration))


def _config_faults(options: Options) -> Iterator[str]:
    """What is wrong with the file that option Config names."""
    try:
        _assembled(options)
    except ConfigError as error:
        yield f"option Config: {error}" if options.config else str(error)
