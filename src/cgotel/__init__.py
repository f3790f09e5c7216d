"""cgotel: what holds a Linux workload back, from the kernel's own files."""

from cgotel.hookspecs import hookimpl

__version__ = "0.1.0"

__all__ = ["__version__", "hookimpl"]
