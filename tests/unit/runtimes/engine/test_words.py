"""The end of a container's log, in the frames in which an engine sends it, and what is made of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runtimes.engine.engine_server import Engine
from tests.unit.runtimes.engine.test_following import A, B, S

from cgotel.evidence import LastWords, RunEnded, RunStarted
from cgotel.runtimes.engine.log import TAIL, LogTail
from cgotel.runtimes.engine.watcher import EngineWatcher
from cgotel.testing import Heard, watched

Watching = Callable[..., EngineWatcher]

OOM = b"RuntimeError: CUDA error: out of memory\n"


def frame(stream: int, text: bytes) -> bytes:
    return bytes((stream, 0, 0, 0)) + len(text).to_bytes(4, "big") + text


def dies(engine: Engine, heard: Heard, container: str = A, code: int = 1) -> RunEnded:
    """A run begins and ends."""
    began = time.time_ns()
    engine.container(container, Status="running", began=began)
    engine.happen("start", container)
    heard.first(RunStarted, lambda e: e.workload.id == container)
    engine.container(container, Status="exited", ended=time.time_ns(), ExitCode=code)
    engine.happen("die", container, exitCode=str(code))
    return heard.first(RunEnded, lambda e: e.workload.id == container)


def test_names_the_pattern_and_keeps_no_text_unless_told_to(engine: Engine, watching: Watching) -> None:
    engine.logs[A] = lambda: [frame(1, b"ready\n"), frame(2, OOM), frame(1, b"bye\n")]
    with watched(watching(engine)) as heard:
        end = dies(engine, heard, code=0)  # engines are known to die with 0
        words = heard.first(LastWords)
    assert (words.pattern, words.meaning, words.text) == ("cuda_error_out_of_memory", "gpu_memory", "")
    assert (words.time_ns, words.cgroup, words.workload.id) == (end.time_ns, end.cgroup, A)


def test_keeps_the_line_where_configured(engine: Engine, watching: Watching) -> None:
    engine.logs[A] = lambda: [frame(2, b"\x1b[31m" + OOM)]
    with watched(watching(engine, keep_last_words=True)) as heard:
        dies(engine, heard)
        assert heard.first(LastWords).text == "\x1b[31mRuntimeError: CUDA error: out of memory"


def test_a_terminals_log_has_no_frames(engine: Engine, watching: Watching) -> None:
    engine.logs[A] = lambda: [OOM.replace(b"\n", b"\r\n")]
    engine.container(A)["Config"]["Tty"] = True
    with watched(watching(engine)) as heard:
        dies(engine, heard)
        heard.first(LastWords)


def test_asks_for_this_runs_words_only(engine: Engine, watching: Watching) -> None:
    engine.logs[A] = lambda: [frame(2, OOM)]
    with watched(watching(engine)) as heard:
        dies(engine, heard)
        heard.first(LastWords)
    (target,) = [target for _, target in engine.asked if "/logs?" in target]
    began = heard.all(RunStarted)[0].time_ns
    since = float(target.partition("&since=")[2].partition("&")[0])
    assert abs(since - began / 1e9) < 0.1
    assert "tail=200" in target
    assert "follow" not in target


def test_a_log_without_end_costs_a_bound_and_no_other_container(engine: Engine, watching: Watching) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield frame(1, b"x" * 65000)

    engine.logs[A] = endless  # type: ignore[assignment]
    engine.logs[B] = lambda: [frame(2, OOM)]
    with watched(watching(engine)) as heard:
        dies(engine, heard)
        dies(engine, heard, B)
        assert heard.first(LastWords).workload.id == B
    (read,) = [target for _, target in engine.asked if A in target and "/logs?" in target]
    assert read


def test_a_log_that_cannot_be_read_is_none(engine: Engine, watching: Watching) -> None:
    engine.stalls.add(f"{A}/logs")
    engine.logs[B] = lambda: [frame(2, OOM)]
    with watched(watching(engine)) as heard:
        dies(engine, heard)
        dies(engine, heard, B)
        assert heard.first(LastWords).workload.id == B
    assert time.time_ns() - heard.all(RunEnded)[0].time_ns < 60 * S


@given(st.lists(st.binary(max_size=300), max_size=30), st.integers(1, 64))
def test_frames_come_apart_wherever_the_pieces_end(texts: list[bytes], size: int) -> None:
    stream = b"".join(frame(1 + number % 2, text) for number, text in enumerate(texts))
    log = LogTail(framed=True)
    for at in range(0, len(stream), size):
        log.feed(stream[at : at + size])
    assert log.text() == b"".join(texts)[-TAIL:]


@given(st.binary(max_size=5000), st.booleans(), st.integers(1, 64))
def test_any_bytes_are_taken(stream: bytes, framed: bool, size: int) -> None:
    log = LogTail(framed)
    for at in range(0, len(stream), size):
        log.feed(stream[at : at + size])
    assert len(log.text()) <= TAIL


@pytest.mark.parametrize("framed", [True, False])
def test_no_more_than_the_end_is_kept(framed: bool) -> None:
    log = LogTail(framed)
    for number in range(300):
        text = b"%4d" % number + b"." * 4092
        log.feed(frame(1, text) if framed else text)
    assert len(log.text()) == TAIL
    assert log.text().endswith(b"." * 4092)
    assert log.text().startswith(b" 284")


def test_a_frame_of_four_gigabytes_that_is_never_sent_keeps_what_was() -> None:
    log = LogTail(framed=True)
    log.feed(b"\x01\0\0\0\xff\xff\xff\xff" + OOM)
    assert log.text() == OOM
