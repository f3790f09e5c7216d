"""A real cgroup for every test that asks; examples of hypothesis without a time limit for each.

A busy machine is no fault of a parser.
"""

from hypothesis import settings
from tests.unit.kernel.real import cgroup

__all__ = ["cgroup"]

settings.register_profile("cgotel", deadline=None)
settings.load_profile("cgotel")
