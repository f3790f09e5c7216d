"""How the host's pytest reports every guest test one by one, and what the two sides say.

The guest's pytest writes each of its reports to the port as a line of JSON (`GuestSide`). The host's
pytest collects the same files, runs none of their tests itself, and hands on the guest's reports
under the same node ids, with the guest's failure texts and durations (`HostSide`).
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.lab import kernels, matrix
from tests.lab.host import ROOT, LabError
from tests.lab.project import PROJECT
from tests.lab.vm import Guest

GUEST_TESTS = Path(__file__).parent / "guest"
PORT = "CGOTEL_LAB_PORT"
EVERYWHERE = "CGOTEL_LAB_EVERYWHERE"
MAY_SKIP = "kernel_file"
_MOST_RETRIES = 8  # what needs more is no mishap of a slow emulation
_MOST_BOOTS = 1  # after the first


def side(config: pytest.Config) -> GuestSide | HostSide | None:
    """The side that this process is on; neither for a pytest started by hand in the guest's shell."""
    if port := os.environ.get(PORT):
        return GuestSide(config, port)
    return None if ROOT == PROJECT else HostSide(config)


class GuestSide:
    """Runs the tests and tells the host."""

    def __init__(self, config: pytest.Config, port: str) -> None:
        self._config = config
        self._port = open(port, "w", encoding="utf-8")  # noqa: SIM115 - open while we live

    def _say(self, **message: object) -> None:
        self._port.write(json.dumps(message) + "\n")
        self._port.flush()

    def pytest_sessionstart(self) -> None:
        self._say(about=f"Linux {platform.release()}, Python {platform.python_version()}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        self._say(report=hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._say(finished=nodeid)


class HostSide:
    """Boots each kernel once, for all of its selected tests, and hands on what the guest reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._runs: dict[str, KernelRun] = {}
        self._cells: list[matrix.Cell] = []
        self._retries = 0
        self._second: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Guest tests come last, kernel by kernel; the time limit is the guest's to keep."""
        guest = [item for item in items if _is_guest(item)]
        elsewhere = [] if os.environ.get(EVERYWHERE) else [item for item in guest if not _belongs(item)]
        if elsewhere:
            self._config.hook.pytest_deselected(items=elsewhere)
            guest = [item for item in guest if item not in elsewhere]
        order = list(kernels.KERNELS)
        guest.sort(key=lambda item: order.index(_kernel(item)))
        for item in guest:
            item.add_marker(pytest.mark.timeout(0), append=False)
        items[:] = [item for item in items if not _is_guest(item)] + guest

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if not _is_guest(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item):
            self._cells += [
                matrix.Cell(*said) for name, said in report.user_properties if name == matrix.PROPERTY
            ]
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for run in self._runs.values():
            terminalreporter.write_line(f"lab: {run}")
        for nodeid in self._second:
            terminalreporter.write_line(f"lab: only at the second try, in a guest of its own: {nodeid}")
        for line in matrix.lines(self._cells):
            terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        for run in self._runs.values():
            run.close()

    def _reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        name = _kernel(item)
        if name not in self._runs:
            selection = [i.nodeid for i in item.session.items if _is_guest(i) and _kernel(i) == name]
            self._runs[name] = KernelRun(name, selection)
        first = self._asked(item, self._runs[name])
        if not any(report.failed for report in first) or self._retries >= _MOST_RETRIES:
            return first
        self._retries += 1
        with closing(KernelRun(name, [item.nodeid])) as alone:
            second = self._asked(item, alone)
        if any(report.failed for report in second):
            return first
        self._second.append(item.nodeid)
        return second

    def _asked(self, item: pytest.Item, run: KernelRun) -> list[pytest.TestReport]:
        try:
            said = run.reports(item.nodeid)
        except LabError as error:
            return [_failure(item, str(error))]
        return [_required(item, self._decode(data)) for data in said]

    def _decode(self, data: dict[str, Any]) -> pytest.TestReport:
        """The report as it was in the guest; the place of a skip is a tuple, which JSON has not."""
        if data["outcome"] == "skipped" and isinstance(data["longrepr"], list):
            path, line, reason = data["longrepr"]
            data["longrepr"] = (str(ROOT / Path(path).relative_to(PROJECT)), line, reason)
        hook = self._config.hook
        return hook.pytest_report_from_serializable(config=self._config, data=data)


class KernelRun:
    """One boot of one kernel: what its guest has said so far."""

    def __init__(self, name: str, selection: list[str]) -> None:
        self._name = name
        self._selection = selection
        self._guest: Guest | None = None
        self._lost: LabError | None = None
        self._reports: dict[str, list[dict[str, Any]]] = {}
        self._finished: set[str] = set()
        self._messages = self._told()
        self._boots = 0
        self._mishaps: list[str] = []
        self._began = self._booted = self._ended = time.monotonic()
        self._about = f"Linux {name}"

    def __str__(self) -> str:
        return (
            f"{self._about}: {len(self._finished)} of {len(self._selection)} tests, "
            f"boot {self._booted - self._began:.1f} s, tests {self._ended - self._booted:.1f} s"
            + "".join(f"; booted again: {mishap}" for mishap in self._mishaps)
        )

    def reports(self, nodeid: str) -> list[dict[str, Any]]:
        """The reports of one test, as soon as the guest has finished it; a `LabError` if it cannot."""
        if self._lost:
            raise LabError(str(self._lost).splitlines()[0])
        while nodeid not in self._finished:
            try:
                self._take(next(self._messages))
            except LabError as error:
                self._begin_again(error)
        return self._reports.pop(nodeid)

    def close(self) -> None:
        """Stop the guest, if it was ever booted."""
        self._messages.close()
        if self._guest:
            self._guest.close()

    def _begin_again(self, error: LabError) -> None:
        """Boot once more for the tests that are left: emulated CPUs crash when code is patched under them.

        Tracepoints are such patches (text_poke). Raises the error where that was tried already.
        """
        if self._boots > _MOST_BOOTS:
            self._lost = error
            raise error
        self.close()
        self._mishaps.append(str(error).splitlines()[0])
        self._guest = None
        self._reports = {node: said for node, said in self._reports.items() if node in self._finished}
        self._messages = self._told()

    def _told(self) -> Generator[dict[str, Any], None, None]:
        left = [node for node in self._selection if node not in self._finished]
        self._boots += 1
        self._guest = Guest(kernels.named(self._name), left)
        with closing(self._guest.lines()) as lines:
            for line in lines:
                yield json.loads(line)
        raise self._guest.lost()

    def _take(self, message: dict[str, Any]) -> None:
        self._ended = time.monotonic()
        match message:
            case {"about": about}:
                self._about, self._booted = about, self._ended
            case {"report": {"nodeid": nodeid} as report}:
                self._reports.setdefault(nodeid, []).append(report)
            case {"finished": nodeid}:
                self._finished.add(nodeid)


def _is_guest(item: pytest.Item) -> bool:
    return item.path.is_relative_to(GUEST_TESTS)


def _belongs(item: pytest.Item) -> bool:
    """Whether a test wants this kernel: not so one with a mark ``only_on`` whose kernel is there as well."""
    mark = item.get_closest_marker("only_on")
    if mark is None or _kernel(item) in mark.args:
        return True
    return not {kernel.name for kernel in kernels.chosen()} & set(mark.args)


def _kernel(item: pytest.Item) -> str:
    return item.callspec.params["kernel"]  # type: ignore[attr-defined]


def _required(item: pytest.Item, report: pytest.TestReport) -> pytest.TestReport:
    """A skip is a failure unless the test names the kernel file that may be missing."""
    skipped = report.skipped and not hasattr(report, "wasxfail")
    if skipped and not item.get_closest_marker(MAY_SKIP):
        report.outcome = "failed"
        report.longrepr = f"skipped, and no {MAY_SKIP} mark allows it: {report.longreprtext}"
    return report


def _failure(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {item.name: 1}, "failed", longrepr=text, when="call")
