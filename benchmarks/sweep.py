"""What a sweep costs, as ratios from one run: ``python benchmarks/sweep.py`` (see README.md)."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

import recorded
from contenders import Apart, contenders, processes_needed
from encoding import encoding
from residence import residence
from rounds import Result, alternate, spread, table
from starting import starting
from trees import Tree, move, real_trees, recorded_trees

_FEW = 10


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cgroups", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cgroups, rounds = arguments.cgroups, arguments.rounds
    processes = processes_needed(cgroups, len(recorded.FILES))
    if processes > 1:
        print(f"RLIMIT_NOFILE is small: everyone shares the cgroups among {processes} processes\n")
    with recorded_trees(cgroups, processes) as trees:
        sweeps(trees, rounds)
        encoding(trees, rounds)
    with recorded_trees(cgroups, 1) as [tree]:
        residence(tree)
    with recorded_trees(_FEW, 1) as [tree]:
        starting(tree, rounds)
    try:
        with real_trees(cgroups, processes) as trees:
            real_sweeps(trees, rounds)
    except OSError as error:
        print(f"no real cgroups: {error}")


def sweeps(trees: Sequence[Tree], rounds: int) -> None:
    """Recorded contents: with all that moves in life moved before each round, and with nothing."""
    taking_part = contenders(trees)
    title = f"{cgroups_of(trees)} recorded cgroups, {len(trees[0].files)} files each"
    moving = alternate(taking_part, rounds, lambda number: move(trees, number))
    report(f"{title}; all changed", taking_part, moving, cgroups_of(trees))
    report(f"{title}; unchanged", taking_part, alternate(taking_part, rounds), cgroups_of(trees))
    close(taking_part)


def real_sweeps(trees: Sequence[Tree], rounds: int) -> None:
    """Real cgroups: most of the time is the kernel's, which prints each file anew."""
    taking_part = contenders(trees)
    files = trees[0].files
    title = f"{cgroups_of(trees)} real cgroups, {len(files)} files each: {' '.join(files)}"
    report(title, taking_part, alternate(taking_part, rounds), cgroups_of(trees))
    close(taking_part)


def cgroups_of(trees: Sequence[Tree]) -> int:
    """How many cgroups the trees have together."""
    return sum(len(tree.cgroups) for tree in trees)


def report(title: str, taking_part: Sequence[Apart], results: Sequence[Result], cgroups: int) -> None:
    """A line for each contender: time, ratios to the floor and to the naive version, system calls."""
    floor, naive = results[0], results[-1]
    lines = []
    for contender, result in zip(taking_part, results, strict=True):
        per_cgroup = [seconds * 1e6 / cgroups for seconds in result.seconds]
        calls = contender.calls()
        lines.append(
            [
                result.name,
                spread(per_cgroup, 1),
                spread(result.ratios(floor)),
                spread(result.ratios(naive), 3),
                " ".join(f"{call} {count / cgroups:.2f}" for call, count in calls.most_common()),
            ]
        )
    print(table(title, ("", "µs CPU a cgroup", "to the floor", "to naive", "system calls a cgroup"), lines))


def close(taking_part: Sequence[Apart]) -> None:
    """Let all of them go."""
    for contender in taking_part:
        contender.close()


if __name__ == "__main__":
    main()
