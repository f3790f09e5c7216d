"""From readings to serialised OTLP: cgotel's encoder against the SDK's data classes and encoder."""

# ruff: noqa: TID253 - the SDK is what is compared with
from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from contenders import Collecting
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from rounds import Timed, alternate, spread, table
from trees import Tree

from cgotel.model import Reading, Series, Sweep
from cgotel.outputs.otlp.encode import Encoder
from cgotel.outputs.otlp.resources import Resources

POINTS = 60
_LIMIT = 3 * 1024 * 1024
_HOST = {"host.name": "benchmark"}


def encoding(trees: Sequence[Tree], rounds: int) -> None:
    """Print the cost of a point, from containers of ``POINTS`` points each."""
    readings = [_cut(reading) for tree in trees for reading in _containers(tree)]
    ours = _Ours()
    taking_part = [
        Timed("cgotel, gzipped", partial(ours.encode, readings)),
        Timed("cgotel's gzip alone", ours.compress),
        Timed("the SDK's data classes, not gzipped", partial(_by_sdk, readings)),
    ]
    ours.encode(readings)  # layouts are made once
    results = alternate(taking_part, rounds, lambda number: _move(readings, number))
    points = len(readings) * POINTS
    lines = [
        [r.name, spread([s * 1e6 / points for s in r.seconds], 3), spread(r.ratios(results[0]))]
        for r in results
    ]
    title = f"{len(readings)} containers of {POINTS} points to serialised OTLP"
    print(table(title, ("", "µs CPU a point", "to cgotel"), lines))


class _Ours:
    def __init__(self) -> None:
        self._encoder = Encoder(Resources(_HOST, {}), "benchmark", _LIMIT)
        self._bodies: list[bytes] = []

    def encode(self, readings: list[Reading]) -> None:
        batches = list(self._encoder.encode(Sweep(time.time_ns(), readings)))
        self._bodies = self._bodies or [batch.body() for batch in batches]

    def compress(self) -> None:
        for body in self._bodies:
            gzip.compress(body, 1, mtime=0)


def _containers(tree: Tree) -> list[Reading]:
    collecting = Collecting(tree, 0)
    collecting.sweep()  # rates need a second one
    collecting.close()
    return [r for r in collecting.readings if "container.id" in r.entity.attributes]


def _cut(reading: Reading) -> Reading:
    series = _FIRST.setdefault(reading.series, reading.series[:POINTS])
    return replace(reading, series=series, values=list(reading.values[:POINTS]))


_FIRST: dict[tuple[Series, ...], tuple[Series, ...]] = {}


def _move(readings: list[Reading], number: int) -> None:
    for index, reading in enumerate(readings):
        readings[index] = replace(
            reading, time_ns=reading.time_ns + 10**10, values=[value + number for value in reading.values]
        )


def _by_sdk(readings: list[Reading]) -> None:
    scope = InstrumentationScope("cgotel")
    data = [
        sdk.ResourceMetrics(
            Resource({**_HOST, **reading.entity.attributes}),
            [sdk.ScopeMetrics(scope, _metrics(reading), "")],
            "",
        )
        for reading in readings
    ]
    encode_metrics(sdk.MetricsData(data)).SerializeToString()


def _metrics(reading: Reading) -> list[sdk.Metric]:
    began_ns = reading.entity.began_ns or 0
    points: dict[str, list[sdk.NumberDataPoint]] = {}
    for series, raw in reading.points:
        point = sdk.NumberDataPoint(dict(series.attributes), began_ns, reading.time_ns, series.convert(raw))
        points.setdefault(series.instrument.name, []).append(point)
    instruments = {series.instrument.name: series.instrument for series in reading.series}
    return [
        sdk.Metric(
            name,
            instruments[name].description,
            instruments[name].unit,
            sdk.Gauge(of_one)
            if instruments[name].kind == "gauge"
            else sdk.Sum(of_one, sdk.AggregationTemporality.CUMULATIVE, instruments[name].kind == "counter"),
        )
        for name, of_one in points.items()
    ]
