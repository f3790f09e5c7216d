"""Transient units of the lab's systemd, and units from files, made and cleared away by tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUN = Path("/run/systemd/system")
LIMIT_S = 120


def systemctl(*words: str, check: bool = True) -> str:
    """Run systemctl, and return what it says."""
    done = subprocess.run(["systemctl", *words], check=check, capture_output=True, text=True, timeout=LIMIT_S)
    return done.stdout


def start(name: str, *command: str, **properties: object) -> None:
    """Start a transient service: ``start("web", "sleep", "9", MemoryMax="64M")`` runs ``web.service``."""
    settings = [f"--property={key}={value}" for key, value in properties.items()]
    subprocess.run(
        ["systemd-run", "--quiet", f"--unit={name}", *settings, "--", *command],
        check=False,  # a service that ends at once is a failure to systemd-run of some versions
        timeout=LIMIT_S,
    )


@contextmanager
def unit_file(name: str, content: str) -> Iterator[None]:
    """A unit from a file, until the end of the block."""
    path = RUN / name
    path.write_text(content)
    try:
        systemctl("daemon-reload")
        yield
    finally:
        systemctl("stop", name, check=False)
        systemctl("reset-failed", name, check=False)
        path.unlink()
        systemctl("daemon-reload")
