"""What tables make of kernel files, as text: one row for each point, in the order of the files."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.unit.collectors.cgroup.kernel_files import LEAF

from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import FileTable
from cgotel.model import Point

CGROUP = Family("cgroup")


def expected(controller: str) -> str:
    """Every row that a controller's files in `LEAF` must give."""
    return (Path(__file__).parent / "rows" / f"{controller}.txt").read_text()


def shown(tables: Iterable[FileTable], files: Mapping[str, str] = LEAF) -> str:
    """``source = metric{attribute=value} number unit kind``, for every file that there is."""
    rows = []
    for table in tables:
        if table.file in files:
            columns = table.parse(files[table.file].encode())
            rows += [row(point) for point in zip(*columns, strict=True)]
    return "".join(f"{line}\n" for line in rows)


def row(point: Point) -> str:
    series, raw = point
    instrument = series.instrument
    attributes = ",".join(f"{key}={value}" for key, value in series.attributes)
    name = f"{instrument.name}{{{attributes}}}" if attributes else instrument.name
    return f"{series.source} = {name} {series.convert(raw)} {instrument.unit} {instrument.kind}"


def keys(files: Iterable[str]) -> set[str]:
    """The kernel's names of everything that stands in these keyed files: ``cpu.stat.user_usec``."""
    found = set()
    for file in files:
        for line in LEAF[file].splitlines():
            outer, *words = line.split()
            pairs = [word.partition("=")[0] for word in words if "=" in word]
            found |= {f"{file}.{outer}.{key}" for key in pairs} or {f"{file}.{outer}"}
    return found


def sources(tables: Iterable[FileTable]) -> set[str]:
    """The kernel's names of everything that tables make a point of."""
    return {
        series.source for t in tables if t.file in LEAF for series in t.parse(LEAF[t.file].encode()).wanted
    }
