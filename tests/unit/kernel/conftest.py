"""A real cgroup for every test that asks; examples of hypothesis without a time limit for each.

A busy machine is no fault of a parser.
"""

from tests.unit.kernel.real import cgroup

__all__ = ["cgroup"]
