"""Metrics and log events over OTLP, to any OpenTelemetry receiver."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cgotel import __version__
from cgotel.contract import Lost, Output, Roots, Settled
from cgotel.hookspecs import hookimpl
from cgotel.model import Event, Instrument, Point, Sweep
from cgotel.outputs.otlp.settings import OtlpConfig, Plan, Target, resolve

if TYPE_CHECKING:
    from cgotel.outputs.otlp.encode import Encoder
    from cgotel.outputs.otlp.resources import Resources
    from cgotel.outputs.otlp.sender import Sender

_MOST_LOG_RECORDS = 512
"""In a request: the specification's OTEL_BLRP_MAX_EXPORT_BATCH_SIZE."""

log = logging.getLogger(__name__)


class OtlpOutput(Output):
    """Encodes where it is called and sends from threads of its own, one a signal.

    `start` raises `ConfigError` for a setting that cannot be used, be it from the file or from an
    ``OTEL_*`` variable.
    """

    name = "otlp"
    Config = OtlpConfig

    config: OtlpConfig

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._metrics: Sender | None = None
        self._logs: Sender | None = None
        self._encoder: Encoder | None = None
        self._resources: Resources | None = None

    @property
    def instruments(self) -> tuple[Instrument, ...]:  # type: ignore[override]
        from cgotel.outputs.otlp.points import INSTRUMENTS

        return INSTRUMENTS

    def check(self) -> None:
        plan = resolve(self.config, os.environ)
        from cgotel.outputs.otlp.transport import transport_to

        for target in filter(None, (plan.metrics, plan.logs)):
            transport_to(target).close()

    def start(self) -> None:
        from cgotel.identity.host import host_attributes
        from cgotel.outputs.otlp.encode import Encoder
        from cgotel.outputs.otlp.resources import Resources
        from cgotel.outputs.otlp.temporality import Deltas

        plan = resolve(self.config, os.environ)
        _say(plan)
        self._resources = Resources(host_attributes(Roots.discover()), plan.resource)
        deltas = Deltas(time.time_ns()) if plan.delta else None
        self._encoder = Encoder(self._resources, __version__, self.config.request_bytes, deltas)
        self._metrics = self._sender(plan.metrics, 1)
        self._logs = self._sender(plan.logs, _MOST_LOG_RECORDS)
        for sender in self._senders():
            sender.start()

    def write(self, sweep: Sweep) -> None:
        if self._metrics is not None and self._encoder is not None:
            for batch in self._encoder.encode(sweep):
                self._metrics.put(batch)

    def emit(self, event: Event) -> None:
        self.deliver(event, lambda taken: None)

    def deliver(self, event: Event, settled: Settled) -> None:
        if self._logs is None or self._resources is None:
            settled(True)  # log events are switched off
            return
        from cgotel.outputs.otlp.logs import log_request

        request = log_request(event, self._resources, __version__)
        self._logs.put(replace(request, settled=(settled,)))

    def points(self) -> Iterable[Point]:
        from cgotel.outputs.otlp.points import points

        return points(self._senders(), self._encoder.invalid if self._encoder is not None else 0)

    def close(self, timeout_s: float = 5.0) -> None:
        """See `Output.close`. Raises `Lost` when what was last written did not arrive."""
        senders = self._senders()
        self._metrics = self._logs = None
        for sender in senders:
            sender.stop(timeout_s)
        for sender in senders:
            if lost := sender.join():
                log.error("%s: %d %s are lost", sender.target, lost, sender.target.signal.items)
        if undelivered := sum(sender.undelivered for sender in senders):
            raise Lost(f"otlp: {undelivered} items were not delivered")

    def _senders(self) -> list[Sender]:
        return [sender for sender in (self._metrics, self._logs) if sender is not None]

    def _sender(self, target: Target | None, most_items: int) -> Sender | None:
        if target is None:
            return None
        from cgotel.outputs.otlp.queue import BatchQueue
        from cgotel.outputs.otlp.sender import Sender
        from cgotel.outputs.otlp.transport import transport_to

        queue = BatchQueue(self.config.queue_bytes)
        return Sender(target, transport_to(target), queue, self.config.retry_for, most_items)


def _say(plan: Plan) -> None:
    temporality = "delta" if plan.delta else "cumulative"
    for note in plan.notes:
        log.info("otlp: %s", note)
    for target in filter(None, (plan.metrics, plan.logs)):
        log.info("otlp: %s%s", target, f", {temporality}" if target is plan.metrics else "")


@hookimpl
def cgotel_outputs() -> list[type[Output]]:
    return [OtlpOutput]
