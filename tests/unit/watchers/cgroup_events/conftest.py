"""A real cgroup for those tests that ask."""

from tests.unit.kernel.real import cgroup

__all__ = ["cgroup"]
