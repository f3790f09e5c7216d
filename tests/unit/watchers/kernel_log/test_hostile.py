"""Random and mutilated logs: nothing raises, and no process is a victim that no line calls killed."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.watchers.kernel_log import reports
from tests.unit.watchers.kernel_log.told import record, told

from cgotel.evidence import Evidence, Gap, OomKill
from cgotel.kernel.kmsg import Record

REPORTS = [reports.MEMCG, reports.GLOBAL, reports.GROUP, reports.OLD]
LINES = [line for text in REPORTS for line in text.splitlines()]
PLACES = {
    (813, "/ai.slice/docker-77.scope"), (77, "/system.slice/db.service"), (20, "/pod/c/inner"),
    (19, "/pod/c"), (21, "/pod/c"), (20, "/pod/c"), (4240, "/docker/abc"),
}  # fmt: skip
LIMITS = {None, "/ai.slice", "/pod", "/docker"}

texts = st.text(max_size=60) | st.sampled_from(LINES)
glued = st.lists(texts, min_size=1, max_size=3).map("".join)


@st.composite
def logs(draw: st.DrawFn, lines: st.SearchStrategy[str]) -> list[Record]:
    given = draw(st.lists(lines, max_size=25))
    number, found = 0, []
    for line in given:
        number += draw(st.sampled_from([1, 1, 1, 1, 2]))
        found.append(record(line, number, continued=draw(st.sampled_from([False, False, False, True]))))
    return found


def cut(line: str) -> st.SearchStrategy[str]:
    return st.tuples(st.integers(0, len(line)), st.integers(0, len(line))).map(
        lambda ends: line[min(ends) : max(ends)]
    )


@given(logs(glued))
def test_any_text_gives_evidence_that_can_be_stored_or_none(given: list[Record]) -> None:
    for evidence in told(given):
        assert isinstance(evidence, Evidence)
        msgspec.json.encode(evidence)


@given(logs(st.sampled_from(LINES)))
def test_lines_in_any_order_with_any_missing_invent_no_place(given: list[Record]) -> None:
    check(told(given))


@given(logs(st.sampled_from(LINES) | st.sampled_from(LINES).flatmap(cut)))
def test_torn_lines_invent_no_victim(given: list[Record]) -> None:
    check(told(given))


def check(found: list[Evidence]) -> None:
    """Every victim is one that some line names, with the cgroup that some line gives to it."""
    for kill in found:
        if isinstance(kill, Gap):
            continue
        assert isinstance(kill, OomKill)
        assert kill.pid in {pid for pid, _ in PLACES}
        assert (
            kill.cgroup is None or kill.group or (kill.pid, kill.cgroup) in PLACES or kill.cgroup == "/pod/c"
        )
        assert kill.limit_cgroup in LIMITS
        assert kill.cgroup in {None, *(cgroup for _, cgroup in PLACES)}


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes(text: bytes, continued: bool) -> None:
    told([record(b"oom-kill:"), record(text, 1, continued=continued), record(text, 2)])
