"""Sweeps as requests, against the SDK exporter's own encoder."""

import gc
import logging
import math
from dataclasses import replace

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from tests.unit.outputs.otlp.material import (
    ALL,
    BEGAN_NS,
    CURRENT,
    DB,
    MEMORY,
    NEXT_NS,
    NOW_NS,
    PEAKED,
    RESOURCES,
    USED,
    USER,
    WEB,
    metrics_of,
    parsed,
    points_of,
    reading,
    sweep,
)

from cgotel.model import Entity, Instrument
from cgotel.outputs.otlp.encode import SCHEMA_URL, Encoder
from cgotel.outputs.otlp.temporality import Deltas

MIB = 1024 * 1024
NO_RECORDED_VALUE = 1


@pytest.fixture
def encoder():
    return Encoder(RESOURCES, "1.2.3", 3 * MIB)


def by_sdk(*readings):
    """The same readings through the SDK's data classes and its exporter's encoder."""
    scope = InstrumentationScope("cgotel", "1.2.3", SCHEMA_URL)
    resources = []
    for one in readings:
        attributes = {"host.name": "h1", **one.entity.attributes}
        groups = {}
        for series, raw in one.points:
            groups.setdefault(series.instrument, []).append(
                export.NumberDataPoint(
                    dict(series.attributes), one.entity.began_ns, one.time_ns, series.convert(raw)
                )
            )
        metrics = [
            export.Metric(instrument.name, instrument.description, instrument.unit, _data(instrument, points))
            for instrument, points in groups.items()
        ]
        resources.append(
            export.ResourceMetrics(
                Resource(attributes, SCHEMA_URL),
                [export.ScopeMetrics(scope, metrics, SCHEMA_URL)],
                SCHEMA_URL,
            )
        )
    return list(encode_metrics(export.MetricsData(resources)).resource_metrics)


def _data(instrument, points):
    if instrument.kind == "gauge":
        return export.Gauge(points)
    cumulative = export.AggregationTemporality.CUMULATIVE
    return export.Sum(points, cumulative, instrument.kind == "counter")


def test_a_sweep_is_what_the_sdk_exporter_would_send(encoder):
    readings = [reading(WEB), reading(DB, values=[9, 8, 7, 6, 5, 4, 3])]
    assert parsed(encoder.encode(sweep(*readings))) == by_sdk(*readings)


def test_the_next_sweep_differs_in_times_and_values_alone(encoder):
    list(encoder.encode(sweep(reading(WEB))))
    later = reading(WEB, NEXT_NS, values=[1, 2, 3, 4, 5, 6, 7])
    assert parsed(encoder.encode(sweep(later, time_ns=NEXT_NS))) == by_sdk(later)


def test_readings_of_one_entity_share_a_resource(encoder):
    (found,) = parsed(
        encoder.encode(sweep(reading(series=[USER], values=[1]), reading(series=[CURRENT], values=[2])))
    )
    assert list(metrics_of(found)) == ["container.cpu.time", "container.memory.usage"]
    assert len(found.scope_metrics) == 1


def test_an_entity_that_ended_has_its_series_ended_once(encoder):
    list(encoder.encode(sweep(reading(WEB), reading(DB))))
    alive, ended = parsed(encoder.encode(sweep(reading(DB, NEXT_NS), ended=[WEB], time_ns=NEXT_NS)))
    assert not any(p.flags for m in metrics_of(alive).values() for p in points_of(m))
    points = [p for m in metrics_of(ended).values() for p in points_of(m)]
    assert len(points) == len(ALL)
    assert {(p.flags, p.time_unix_nano, p.WhichOneof("value")) for p in points} == {
        (NO_RECORDED_VALUE, NEXT_NS, None)
    }
    assert ended.resource == by_sdk(reading(WEB))[0].resource
    assert list(encoder.encode(sweep(ended=[WEB]))) == []


def test_what_another_collector_still_reports_has_not_ended(encoder):
    list(encoder.encode(sweep(reading(WEB))))
    (found,) = parsed(encoder.encode(sweep(reading(WEB), ended=[WEB])))
    assert not any(p.flags for m in metrics_of(found).values() for p in points_of(m))


def test_a_series_that_vanishes_from_a_living_entity_is_ended(encoder):
    list(encoder.encode(sweep(reading(series=[USER, PEAKED], values=[1, 2]))))
    ended, alive = parsed(encoder.encode(sweep(reading(time_ns=NEXT_NS, series=[USER], values=[3]))))
    assert list(metrics_of(alive)) == ["container.cpu.time"]
    (point,) = points_of(metrics_of(ended)["cgroup.memory.peak"])
    assert (point.flags, point.time_unix_nano) == (NO_RECORDED_VALUE, NEXT_NS)
    assert list(metrics_of(ended)) == ["cgroup.memory.peak"]


def test_a_resource_that_changes_ends_the_series_under_the_old_one(encoder):
    list(encoder.encode(sweep(reading(WEB))))
    named = Entity("container", WEB.key, {**WEB.attributes, "container.name": "web"}, BEGAN_NS)
    ended, alive = parsed(encoder.encode(sweep(reading(named))))
    assert len(alive.resource.attributes) == len(ended.resource.attributes) + 1
    assert {p.flags for m in metrics_of(ended).values() for p in points_of(m)} == {NO_RECORDED_VALUE}


def test_a_value_that_cannot_be_sent_is_left_out_counted_and_told_once(encoder, caplog):
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        (batch,) = encoder.encode(sweep(reading(series=[USER, USED], values=[1, math.nan])))
    (found,) = parsed([batch])
    assert list(metrics_of(found)) == ["container.cpu.time"]
    assert (batch.items, encoder.invalid) == (1, 2)
    (message,) = caplog.messages
    assert (
        "container /web@1: a point of cgroup.memory.utilization (memory.utilization) is left out" in message
    )


def test_a_reading_without_points_makes_no_resource(encoder):
    assert list(encoder.encode(sweep(reading(series=[], values=[])))) == []
    assert list(encoder.encode(sweep(reading(series=[USED], values=[math.inf])))) == []


def many(entities, time_ns=NOW_NS):
    return [
        reading(Entity("container", f"/{n}", {"container.id": str(n)}, BEGAN_NS), time_ns)
        for n in range(entities)
    ]


def test_requests_are_split_between_entities():
    encoder = Encoder(RESOURCES, "1", 10_000)
    batches = list(encoder.encode(sweep(*many(100))))
    assert len(batches) > 1
    assert max(len(batch.body()) for batch in batches) <= 10_000
    assert sum(batch.items for batch in batches) == 100 * len(ALL)
    ids = [r.resource.attributes[1].value.string_value for r in parsed(batches)]
    assert ids == [str(n) for n in range(100)]


def test_an_entity_larger_than_a_request_is_split_inside():
    instrument = Instrument("a.b", "gauge", "1", "x" * 100)
    series = tuple([instrument.series("s", attributes={"n": str(n)}) for n in range(3000)])
    encoder = Encoder(RESOURCES, "1", 8_000)
    batches = list(encoder.encode(sweep(reading(series=series, values=range(3000)))))
    assert max(len(batch.body()) for batch in batches) <= 8_500  # the resource comes on top
    points = [p for r in parsed(batches) for p in points_of(metrics_of(r)["a.b"])]
    assert {p.attributes[0].value.string_value: p.as_int for p in points} == {str(n): n for n in range(3000)}


def test_an_entity_that_is_made_anew_each_time_is_prepared_once(encoder):
    def anew():
        return Entity(WEB.kind, WEB.key, dict(WEB.attributes), WEB.began_ns)

    list(encoder.encode(sweep(reading(anew()))))
    (kept,) = encoder._kept.values()
    list(encoder.encode(sweep(reading(anew()))))
    assert next(iter(encoder._kept.values())) is kept


def test_nothing_is_kept_of_what_ended(encoder):
    for round_number in range(3):
        entities = [Entity("container", f"/{round_number}/{n}", {}, BEGAN_NS) for n in range(20)]
        own = Instrument(f"a.{round_number}", "gauge", "1", "").series("s")
        list(encoder.encode(sweep(*[reading(e, series=[own], values=[1]) for e in entities])))
        list(encoder.encode(sweep(ended=entities)))
    del own
    gc.collect()
    assert encoder._kept == {}
    assert dict(encoder._layouts) == {}


def test_like_entities_share_one_layout(encoder):
    list(encoder.encode(sweep(*many(50))))
    assert len(encoder._layouts) == 1


def test_an_entity_of_counters_alone_has_no_first_delta():
    encoder = Encoder(RESOURCES, "1", 3 * MIB, Deltas(since_ns=NOW_NS))
    assert list(encoder.encode(sweep(reading(series=[USER], values=[1])))) == []
    (found,) = parsed(encoder.encode(sweep(reading(WEB, NEXT_NS, [USER], [2_000_001]))))
    (point,) = points_of(metrics_of(found)["container.cpu.time"])
    assert point.as_double == 2.0
    list(encoder.encode(sweep(ended=[WEB])))
    assert (encoder._kept, encoder._deltas._seen) == ({}, {})


def test_what_ends_before_its_first_delta_is_forgotten():
    deltas = Deltas(since_ns=NOW_NS)
    encoder = Encoder(RESOURCES, "1", 3 * MIB, deltas)
    list(encoder.encode(sweep(reading(series=[USER], values=[1]))))
    list(encoder.encode(sweep(ended=[WEB])))
    assert deltas._seen == {}


def test_deltas_begin_where_the_last_ones_ended():
    encoder = Encoder(RESOURCES, "1", 3 * MIB, Deltas(since_ns=NOW_NS))
    list(encoder.encode(sweep(reading(series=[USER, CURRENT], values=[1_000_000, 10]))))
    (found,) = parsed(encoder.encode(sweep(reading(WEB, NEXT_NS, [USER, CURRENT], [3_500_000, 12]))))
    cpu, memory = metrics_of(found).values()
    (point,) = points_of(cpu)
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (2.5, NOW_NS, NEXT_NS)
    assert (cpu.sum.aggregation_temporality, cpu.sum.is_monotonic) == (1, True)
    (point,) = points_of(memory)
    assert (point.as_int, point.start_time_unix_nano) == (12, BEGAN_NS)
    assert memory.sum.aggregation_temporality == 2


def of_web(source="memory.x", value=1, **changes):
    """A second reading of the same entity, wrong in one way."""
    series = (MEMORY.series(source),)
    return replace(reading(series=series, values=[value]), **changes)


def entity(**changes):
    return replace(WEB, **changes)


WRONG = {
    "attribute": of_web(entity=entity(attributes={"container.id": None})),
    "nested attribute": of_web(entity=entity(attributes={"container.id": ("a", None)})),
    "began": of_web(entity=entity(began_ns=-1)),
    "began that is no number": of_web(entity=entity(began_ns="then")),
    "time before 1970": of_web(time_ns=-1),
    "time beyond the wire": of_web(time_ns=2**64),
    "time that is no integer": of_web(time_ns=1.5),
    "too few values": of_web(values=[]),
    "too many values": of_web(values=[1, 2]),
    "series attribute": of_web(series=(MEMORY.series("x", attributes={"a": None}),)),
}


@pytest.mark.parametrize("delta", [False, True], ids=["cumulative", "delta"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_a_reading_that_cannot_be_encoded_costs_nothing_but_itself(wrong, first, delta, caplog):
    if not first and wrong.entity is not WEB:
        wrong = replace(wrong, entity=WEB, time_ns=-1)  # the first alone says what its entity is

    def encoder():
        return Encoder(RESOURCES, "1.2.3", 3 * MIB, Deltas(since_ns=NOW_NS) if delta else None)

    hit, spared = encoder(), encoder()
    for step in range(3):
        time_ns = NOW_NS + step * 10**9
        right = reading(time_ns=time_ns, values=[step * value for value in (10, 2, 3, 4, 5, 6, 7)])
        others = [reading(DB, time_ns)]
        both = ([wrong, right] if first else [right, wrong]) if step else [right]
        got = parsed(hit.encode(sweep(*both, *others, time_ns=time_ns)))
        assert got == parsed(spared.encode(sweep(right, *others, time_ns=time_ns)))
    assert hit.invalid == 2
    assert len([m for m in caplog.messages if "a reading is left out" in m]) == 1
    assert parsed(hit.encode(sweep(ended=[WEB]))) == parsed(spared.encode(sweep(ended=[WEB])))


def test_a_reading_that_cannot_be_encoded_is_no_ground_for_deltas():
    encoder = Encoder(RESOURCES, "1", 3 * MIB, Deltas(since_ns=NOW_NS))
    no_number = reading(series=[USER, CURRENT], values=[None, 1])
    assert list(encoder.encode(sweep(no_number, reading(DB)))) != []
    assert encoder.invalid == 2
    assert (WEB.kind, WEB.key) not in encoder._deltas._seen
