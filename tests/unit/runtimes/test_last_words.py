"""The lines are those that the programs print, in the wording of their sources and of public reports."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from cgotel.runtimes import last_words

SPOKEN = dict(
    line.split("\t", 1) for line in (Path(__file__).parent / "last_words.txt").read_text().splitlines()
)


@pytest.mark.parametrize("name", SPOKEN)
def test_names_what_a_program_ended_with(name: str) -> None:
    log = f"starting\nworking\n{SPOKEN[name]}\nbye\n".encode()
    assert name in [words.name for words in last_words.find(log)]


def test_leaves_alone_what_programs_say_all_day() -> None:
    log = b"\n".join(
        (
            b"INFO: GPU memory utilization 0.90, KV cache 71.3 GiB",
            b"WARNING memory is at 91 %, throttling",
            b"GET /killed/workers?oom=1 200",
            b"Out of the 12 workers 3 are idle",
            b"signal 15 received, shutting down",
        )
    )
    assert last_words.find(log) == []


def test_tells_device_memory_from_host_memory_and_a_heap_of_its_own() -> None:
    meanings = {pattern.name: pattern.meaning for pattern in last_words.PATTERNS}
    assert meanings["tensorflow_gpu_oom"] == "gpu_memory"
    assert meanings["tensorflow_cpu_oom"] == "host_memory"
    assert meanings["jvm_heap_space"] == "heap"
    assert meanings["jvm_no_native_thread"] == "pids"
    assert meanings["gunicorn_worker_sigkill"] == "supervisor"
    assert meanings["cuda_ecc_uncorrectable"] == "gpu_fault"


def test_names_each_pattern_once_by_its_last_line_and_in_the_order_of_lines() -> None:
    log = b"CUDA error: out of memory\nretry 1\nCUDA error: out of memory (2)\nEngineDeadError\n"
    found = last_words.find(log)
    assert [(words.name, words.line) for words in found] == [
        ("cuda_error_out_of_memory", "CUDA error: out of memory (2)"),
        ("vllm_engine_dead", "EngineDeadError"),
    ]


def test_looks_at_the_end_only() -> None:
    old = b"CUDA error: out of memory\n" + b"fine\n" * last_words.MOST_LINES
    assert last_words.find(old) == []
    long = b"CUDA error: out of memory\n" + b"x" * last_words.MOST_BYTES
    assert last_words.find(long) == []


def test_names_are_unique_snake_case_and_their_meanings_are_the_known_ones() -> None:
    names = [pattern.name for pattern in last_words.PATTERNS]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    assert {pattern.meaning for pattern in last_words.PATTERNS} == {
        "gpu_memory", "host_memory", "heap", "gpu_fault", "pids", "supervisor", "start",
    }  # fmt: skip


def _openings() -> list[str]:
    """How each pattern begins, to lead it on again and again."""
    return sorted(
        {re.split(r"[\\(\[|^?*]", p.regex.pattern.lstrip("^"))[0] for p in last_words.PATTERNS} - {""}
    )


@pytest.mark.parametrize("kind", ["one long line", "many lines", "binary", "control characters", "digits"])
def test_a_hostile_log_costs_bounded_time(kind: str) -> None:
    logs = {
        "one long line": [(opening * 200_000)[:10_000_000].encode() for opening in _openings()],
        "many lines": [
            b"\n".join([(opening * 300)[:320].encode()] * 1000) for opening in _openings()
        ],
        "binary": [random.Random(7).randbytes(10_000_000)],
        "control characters": [b"\x1b[2J\x00\r\x08" * 100_000, b"\n" * 1_000_000],
        "digits": [b": line 1:" + b" " * 60_000 + b"1" * 60_000, b"DataLoader worker (pid" + b" 1," * 30_000],
    }  # fmt: skip
    began = time.process_time()
    for log in logs[kind]:
        last_words.find(log)
    assert time.process_time() - began < 0.5 * len(logs[kind]) + 5


def test_a_line_that_matches_comes_cut_and_otherwise_as_it_was() -> None:
    (words,) = last_words.find(b"\x1b[31mCUDA error: out of memory\xff" + b"!" * 5000)
    assert words.line.startswith("\x1b[31mCUDA error: out of memory�!!!")
    assert len(words.line) == 512
