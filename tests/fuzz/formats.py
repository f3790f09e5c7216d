"""Feeds every parser of kernel files whatever atheris finds: see README.md beside this file.

An input is some files, one after another: every parser must take each without an exception, give no
number out of range, and say of a keyed file exactly what stands in it, whatever it saw before.
"""

import math
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["cgotel.kernel", "cgotel.collectors"]):
    from cgotel.collectors import psi
    from cgotel.collectors.cgroup import cpu, io, memory, others
    from cgotel.collectors.cgroup.tables import Family
    from cgotel.kernel import formats, procfs, zram

from tests.unit.kernel.keyed_files import (
    ALL,
    FLAT,
    NESTED,
    Want,
    as_dict,
    flat,
    flat_truth,
    half,
    joined,
    nested,
    nested_truth,
)

_BETWEEN_FILES = b"\xfe"
_SCALARS = [b"max\n", b"42\n", b"0.07\n", b"150000 100000\n", b"0-3,7\n", b"1\n2\n0\n", b"default 100\n"]
_FAMILY = Family("container")
_TABLES = [
    *cpu.tables(_FAMILY),
    *memory.tables(_FAMILY),
    *io.tables(_FAMILY, str),
    *others.tables(_FAMILY, [("2MB", 2097152)]),
    *psi.tables(_FAMILY, "{}.pressure", "{}.pressure", averages=True, machine=False),
]


def one_input(data: bytes) -> None:
    """What atheris calls again and again."""
    want = half if data[:1] < b"\x80" else ALL
    decimals = data[1:2] < b"\x80"
    files = data[2:].split(_BETWEEN_FILES)
    _keyed(files, want, decimals)
    _scalars(files[0])
    _host(files[0])
    for table in _TABLES:
        series, values = table.parse(files[0])
        for one, value in zip(series, values, strict=True):
            assert _in_range(value)
            assert _in_range(one.convert(value))


def _keyed(files: list[bytes], want: Want, decimals: bool) -> None:
    flats, nesteds = flat(True, decimals, want), nested(True, decimals, want)
    together = joined(True, want)
    for file in files:
        assert repr(together.columns(file)) == repr(joined(False, want).columns(file))
        for veteran, truth in ((flats, flat_truth), (nesteds, nested_truth)):
            wanted = {key: value for key, value in truth(file, decimals).items() if want(key[1])}
            assert repr(as_dict(veteran.columns(file))) == repr(wanted)


def _scalars(file: bytes) -> None:
    processes = formats.processes(file)
    limits = formats.quota_and_period(file) or ()
    single = (formats.whole, formats.number, formats.single, formats.count_list)
    for value in (processes and processes.count, *limits, *(parse(file) for parse in single)):
        assert value is None or _in_range(value)


def _host(file: bytes) -> None:
    amounts = [*procfs.meminfo(file).values(), *zram.columns(file, ("a", "b", "c")).values()]
    for swap in procfs.swaps(file).values():
        amounts += swap
    if (load := procfs.load(file)) is not None:
        amounts += [*load.averages, load.threads]
    for blocks in procfs.buddyinfo(file).values():
        amounts += [*blocks.counts, *(blocks.unusable(order) for order in range(len(blocks.counts)))]
    assert all(map(_in_range, amounts))
    assert procfs.without_interrupts(file) in file


def _in_range(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= formats.INT64_MAX


def _seeds(directory: str) -> None:
    """What kernels print, to start from."""
    for number, file in enumerate(FLAT + NESTED + _SCALARS):
        Path(directory, f"seed-{number}").write_bytes(b"\xff\x00" + file + _BETWEEN_FILES + file)
    together = b"\0".join([FLAT[1], NESTED[0], _SCALARS[1]])
    Path(directory, "seed-together").write_bytes(b"\xff\x00" + together + _BETWEEN_FILES + together)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as seeds:
        _seeds(seeds)
        atheris.Setup([*sys.argv, seeds], one_input)
        atheris.Fuzz()
