"""The lab by hand: ``python -m tests.lab build | run [-k KERNEL] [-t EXPRESSION] | shell [-k KERNEL]``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.lab import kernels, rootfs, vm
from tests.lab.host import ROOT, LabError
from tests.lab.kernels import Kernel
from tests.lab.report import GUEST_TESTS


def main() -> int:
    """Do what the command line asks; what the lab lacks is one line and exit status 2."""
    asked = _parser().parse_args()
    if asked.kernel:
        os.environ["CGOTEL_LAB_KERNELS"] = asked.kernel
    try:
        return asked.do(asked, kernels.chosen())
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2


def build(asked: argparse.Namespace, chosen: list[Kernel]) -> int:
    """Make the images of all chosen kernels, side by side."""
    with ThreadPoolExecutor() as pool:
        for line in pool.map(_build, chosen):
            print(line)
    return 0


def run(asked: argparse.Namespace, chosen: list[Kernel]) -> int:
    """Run the guest suite by the host's pytest."""
    return pytest.main(["--rootdir", str(ROOT), str(GUEST_TESTS), "-k", asked.tests])


def shell(asked: argparse.Namespace, chosen: list[Kernel]) -> int:
    """Boot one kernel to a root shell, with the project at /project."""
    return vm.shell(chosen[-1])


def _build(kernel: Kernel) -> str:
    began = time.monotonic()
    path = rootfs.image(kernel)
    return f"Linux {kernel.name} on {kernel.suite}: {path} ({time.monotonic() - began:.1f} s)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for do in (build, run, shell):
        command = commands.add_parser(do.__name__, help=do.__doc__)
        command.add_argument("-k", "--kernel", help="6.1 or 6.12 (or both, with a comma)")
        command.set_defaults(do=do)
        if do is run:
            command.add_argument("-t", "--tests", default="", help="pytest's -k expression")
    return parser


if __name__ == "__main__":
    sys.exit(main())
