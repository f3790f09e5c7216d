"""Metrics of hardware that several collectors fill: the conventions' `hw.*`."""

from __future__ import annotations

from cgotel.collectors.instruments import Instruments
from cgotel.model import Instrument


def energy(make: Instruments) -> Instrument:
    """Energy of one component: a processor, memory, a GPU."""
    return make.counter("hw.energy", "J", "Energy that the component used", number="double")


def power(make: Instruments) -> Instrument:
    """Power of one component."""
    return make.gauge("hw.power", "W", "Power that the component takes", number="double")
