"""Sweeps of the real collector over the real tree, and the same files read raw beside it."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab.guest.cgroups import Cgroup

from cgotel.clock import now
from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
from cgotel.contract import Tick
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Event, Number, Reading, Series


class Sweeps:
    """One started collector; each `sweep` is one instant."""

    def __init__(self, **config: object) -> None:
        self.collector = CgroupCollector(CgroupConfig(**config), Roots.discover())
        self.collector.start()
        self.number = 0

    def sweep(self) -> list[Reading]:
        """Every reading of this instant."""
        return list(self.collector.collect(self.tick()))

    def tick(self) -> Tick:
        """The next instant."""
        self.number += 1
        return Tick(*now(), self.number)

    def of(self, cgroup: Cgroup) -> Reading:
        """The reading of one cgroup in a new sweep."""
        return reading_of(self.sweep(), cgroup)

    def events(self) -> list[Event]:
        """What the last sweep noticed."""
        return self.collector.events()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.collector.close()


def path_of(entity: Entity) -> str:
    """The cgroup path of an entity."""
    return str(entity.attributes["process.linux.cgroup"]).removeprefix("0::")


def reading_of(readings: list[Reading], cgroup: Cgroup) -> Reading:
    """The one reading of a cgroup."""
    [reading] = [reading for reading in readings if path_of(reading.entity) == cgroup.name]
    return reading


def raw(folder: Path) -> dict[str, Number]:
    """Every number of every file of a cgroup under ``file.key``, by the plainest of parsers."""
    found: dict[str, Number] = {}
    for file in sorted(folder.iterdir()):
        if file.is_dir() or file.name in ("cgroup.procs", "cgroup.threads", "cgroup.kill", "memory.reclaim"):
            continue
        try:
            text = file.read_text()
        except OSError:
            continue
        for line in text.splitlines():
            found.update(_line(file.name, line.split()))
    return found


def _line(name: str, words: list[str]) -> dict[str, Number]:
    if len(words) == 1 and _is_number(words[0]):
        return {name: int(words[0])}
    if len(words) == 2 and _is_number(words[1]):
        return {f"{name}.{words[0]}": int(words[1])}
    return {
        f"{name}.{words[0]}.{key}": float(value) if "." in value else int(value)
        for key, _, value in (word.partition("=") for word in words[1:])
        if _is_number(value)
    }


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None


def key_of(reading: Reading, series: Series) -> tuple[str, str, str]:
    """What makes a series the same from sweep to sweep."""
    return (reading.entity.key, series.source, repr(series.attributes))
