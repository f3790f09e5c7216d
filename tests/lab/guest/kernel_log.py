"""What the kernel says meanwhile: its own records of /dev/kmsg (Documentation/ABI/testing/dev-kmsg)."""

from __future__ import annotations

import os
import re
import threading

from tests.lab.guest.supervisors.model import Workload, await_that


class KernelLog:
    """Collects from now on; `said` waits until everything that was logged before is here."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._log = os.open("/dev/kmsg", os.O_RDWR)
        os.lseek(self._log, 0, os.SEEK_END)
        threading.Thread(target=self._collect, daemon=True).start()

    def said(self, of: Workload) -> tuple[str, ...]:
        """The lines that name the cgroup of a workload or its main process."""
        mark = f"cgotel lab: {of.name} is over"
        os.write(self._log, f"{mark}\n".encode())  # without its end it could still be added to
        await_that("the kernel log is read", lambda: mark in self._lines)
        names = [rf"{re.escape(of.cgroup)}\b"] if of.cgroup else []
        names += [rf"\[{of.pid}\]", rf"pid={of.pid}\b", rf"process {of.pid}\b"] if of.pid else []
        wanted = re.compile("|".join(names) or "$^")
        return tuple(line for line in self._lines if line != mark and wanted.search(line))

    def _collect(self) -> None:
        while True:
            try:
                record = os.read(self._log, 8192).decode(errors="replace")
            except BrokenPipeError:  # overwritten before it was read: the next read goes on
                continue
            head, _, text = record.partition(";")
            line = text.splitlines()[0]
            if int(head.split(",")[0]) >> 3 == 0 or line.startswith("cgotel lab: "):
                self._lines.append(line)
