"""Where failures are made to happen: supervisors begun when first needed, the kernel's words kept."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby

from tests.lab.guest.failures.catalogue import Cell, cell_id
from tests.lab.guest.failures.model import Caused
from tests.lab.guest.kernel_log import KernelLog
from tests.lab.guest.supervisors.containerd import Containerd
from tests.lab.guest.supervisors.docker import Docker
from tests.lab.guest.supervisors.model import Supervisor
from tests.lab.guest.supervisors.podman import Podman
from tests.lab.guest.supervisors.systemd import Systemd


class Stage:
    """Closed, its supervisors' helpers are gone; the daemons stay."""

    def __init__(self) -> None:
        self._known = {kind.name: kind() for kind in (Docker, Podman, Containerd, Systemd)}
        self._begun: dict[str, Supervisor] = {}
        self._beginning = threading.Lock()
        self._left: list[tuple[Supervisor, str]] = []
        self._kernel = KernelLog()

    def supervisor(self, name: str) -> Supervisor:
        """The supervisor of that name, its daemon running and its images loaded."""
        with self._beginning:
            if name not in self._begun:
                self._known[name].begin()
                self._begun[name] = self._known[name]
        return self._begun[name]

    def cause(self, cell: Cell) -> Caused:
        """Make one failure happen to a workload named after the cell, and clean up after it."""
        failure, name = cell
        supervisor = self.supervisor(name)
        workload_name = cell_id(cell).replace("_", "-")
        try:
            caused = failure.make(supervisor, workload_name)
            seen = caused.with_kernel(self._kernel.said(caused.workload))
        except BaseException:
            with suppress(Exception):  # it may not have come so far that there is anything
                supervisor.remove(workload_name)
            raise
        if caused.workload.refusal:
            self._left.append((supervisor, workload_name))  # as people leave it: its state tells why
        else:
            supervisor.remove(workload_name)
        return seen

    def cause_all(self, cells: Iterable[Cell]) -> dict[Cell, Future[Caused]]:
        """Begin to make them all happen, one after the other under each supervisor.

        What needs the machine for itself comes when all others are over.
        """
        futures: dict[Cell, Future[Caused]] = {cell: Future() for cell in cells}
        threading.Thread(target=self._fulfil, args=(futures,)).start()
        return futures

    def _fulfil(self, futures: dict[Cell, Future[Caused]]) -> None:
        together = sorted((cell for cell in futures if not cell[0].alone), key=lambda cell: cell[1])
        lanes = [list(lane) for _, lane in groupby(together, key=lambda cell: cell[1])]
        with ThreadPoolExecutor() as pool:
            for lane in lanes:
                pool.submit(self._one_by_one, lane, futures)
        self._one_by_one([cell for cell in futures if cell[0].alone], futures)

    def _one_by_one(self, cells: list[Cell], futures: dict[Cell, Future[Caused]]) -> None:
        for cell in cells:
            try:
                futures[cell].set_result(self.cause(cell))
            except Exception as error:
                futures[cell].set_exception(error)

    def close(self) -> None:
        """End what the supervisors have started beside their daemons."""
        for supervisor, name in self._left:
            supervisor.remove(name)
        for supervisor in self._begun.values():
            supervisor.close()
