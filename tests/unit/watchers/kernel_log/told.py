"""What a reader of the log says to lines and records."""

import re
from collections.abc import Iterable

from cgotel.clock import Clocks, Timeline
from cgotel.evidence import Evidence
from cgotel.kernel.kmsg import Record
from cgotel.watchers.kernel_log.reader import Reader
from cgotel.watchers.kernel_log.stamps import Stamps

SECOND = 10**9
BOOTED_NS = 1_796_000_000 * SECOND
NOW_NS = 10**6 * SECOND  # since boot

_PRINTABLE = re.compile(rb"[^\x20-\x5b\x5d-\x7e]")


def stamps() -> Stamps:
    """Of a machine that has been up for 10**6 seconds and whose clocks agree."""
    read = lambda: Clocks(BOOTED_NS + NOW_NS, NOW_NS, NOW_NS)  # noqa: E731
    return Stamps(Timeline(read), read)


def escaped(text: str | bytes) -> bytes:
    """As /dev/kmsg shows it."""
    raw = text if isinstance(text, bytes) else text.encode()
    return _PRINTABLE.sub(lambda found: b"\\x%02x" % found[0][0], raw)


def record(text: str | bytes, number: int = 0, **changed: object) -> Record:
    """A record of the kernel, one millisecond after the one before."""
    made = Record(number, 5_000_000 + 1000 * number, 0, False, b"", escaped(text))
    return made._replace(**changed)


def records(text: str) -> list[Record]:
    """One for each line; ``+`` in front marks a fragment."""
    lines = [line for line in text.split("\n") if line.strip()]
    return [record(line.removeprefix("+"), n, continued=line.startswith("+")) for n, line in enumerate(lines)]


def told(given: str | Iterable[Record]) -> list[Evidence]:
    """All the evidence in some lines, or records."""
    reader = Reader(stamps())
    found = []
    for one in records(given) if isinstance(given, str) else given:
        found += [evidence for _, evidence in reader.feed(one)]
    return found + [evidence for _, evidence in reader.flush()]
