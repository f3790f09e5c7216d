"""The smallest cgotel plugin: one collector.

$ cat /proc/sys/kernel/random/entropy_avail
256
"""

from __future__ import annotations

from collections.abc import Iterator

from cgotel import (
    Collector,
    Entity,
    Instrument,
    Reading,
    SourceStatus,
    State,
    Tick,
    Unavailable,
    hookimpl,
)

ENTROPY = Instrument(
    "system.linux.entropy.available", "updowncounter", "bit", "Bits of entropy in the kernel's pool"
)
SERIES = ENTROPY.series("random.entropy_avail")


class EntropyCollector(Collector):
    """The kernel's entropy pool (Documentation/admin-guide/sysctl/kernel.rst, "random")."""

    name = "entropy"
    needs = ("/proc/sys/kernel/random/entropy_avail, readable as any user",)
    instruments = (ENTROPY,)

    def start(self) -> None:
        self._path = f"{self.roots.proc}/sys/kernel/random/entropy_avail"
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise Unavailable(SourceStatus(self.name, State.ABSENT, f"{self._path}: {error}")) from error

    def collect(self, tick: Tick) -> Iterator[Reading]:
        yield Reading.of(Entity("random", "random"), tick.time_ns, [(SERIES, self._read())])

    def _read(self) -> int:
        with open(self._path, encoding="ascii") as file:
            return int(file.read())


@hookimpl
def cgotel_collectors() -> list[type[Collector]]:
    return [EntropyCollector]
