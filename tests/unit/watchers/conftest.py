"""Kernel parts that a machine may lack, or not permit: a test that needs one is skipped, with the reason."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgotel.contract import Roots
from cgotel.kernel.proc_events import ProcEvents


@pytest.fixture
def tracing(tmp_path: Path) -> Iterator[Roots]:
    """Roots with tracefs below ``sys``, mounted for this test."""
    place = tmp_path / "kernel/tracing"
    place.mkdir(parents=True)
    if os.geteuid() != 0:
        pytest.skip("only root can mount tracefs")
    command = ["mount", "-t", "tracefs", "tracefs", place]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"tracefs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        if not os.access(place / "events/signal/signal_generate/enable", os.W_OK):
            pytest.skip("tracing is not permitted here")
        yield Roots(sys=str(tmp_path))
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.fixture
def connector() -> None:
    """The kernel's process connector answers here."""
    try:
        ProcEvents().close()
    except OSError as error:
        pytest.skip(f"no process connector here: {error.strerror}")
