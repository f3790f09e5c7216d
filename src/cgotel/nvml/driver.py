"""The driver behind NVIDIA's own bindings: each call on its own risk, each refusal with its meaning.

Only the thread that opened it uses it. Codes are those of nvml.h; the bindings' errors are never kept,
since they cannot be hashed and ask the driver for their text.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections import Counter
from typing import Any, TypeAlias

Handle: TypeAlias = Any

UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, TOO_SMALL, NOT_LOADED = 1, 3, 4, 6, 7, 9
TIMEOUT, NO_LIBRARY, NO_FUNCTION, LOST, RESET_REQUIRED, MISMATCH = 10, 12, 13, 15, 16, 18
NO_DATA, DEPRECATED, GPU_NOT_FOUND, UNKNOWN = 21, 26, 28, 999

NAMES = {
    UNINITIALIZED: "uninitialized",
    2: "invalid_argument",
    NOT_SUPPORTED: "not_supported",
    NO_PERMISSION: "no_permission",
    NOT_FOUND: "not_found",
    TOO_SMALL: "insufficient_size",
    NOT_LOADED: "driver_not_loaded",
    TIMEOUT: "timeout",
    NO_LIBRARY: "library_not_found",
    NO_FUNCTION: "function_not_found",
    LOST: "gpu_is_lost",
    RESET_REQUIRED: "reset_required",
    MISMATCH: "lib_rm_version_mismatch",
    19: "in_use",
    25: "argument_version_mismatch",
    27: "not_ready",
    GPU_NOT_FOUND: "gpu_not_found",
    UNKNOWN: "unknown",
}

_NEVER = frozenset((NOT_SUPPORTED, NO_PERMISSION, NO_FUNCTION, DEPRECATED))  # until it is opened anew
_NO_ANSWER = frozenset((NOT_FOUND, TOO_SMALL, TIMEOUT, NO_DATA))  # which is no error
_OF_DRIVER = frozenset((UNINITIALIZED, NOT_LOADED, MISMATCH))


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A call did not succeed: ``code`` is nvml.h's."""

    def __init__(self, function: str, code: int) -> None:
        self.function = function
        self.code = code
        self.meaning = NAMES.get(code, str(code))
        super().__init__(f"{function}: {self.meaning}")


class GpuLost(Refused):
    """This GPU answers nothing more; others may."""


class DriverLost(Refused):
    """Nothing answers until the driver is opened anew."""


class Driver:
    """An opened NVML. ``errors`` counts calls that failed, by function and meaning."""

    def __init__(self, library: str) -> None:
        import pynvml

        self.version = ""
        self.errors: Counter[tuple[str, str]] = Counter()
        self.reset_required: set[str] = set()
        """GPUs that said so since they were asked last."""
        self.denied: set[str] = set()
        """Functions that this user may not call."""
        self._never: set[tuple[str, str, tuple[object, ...]]] = set()
        self._nvml = pynvml
        if library and pynvml.nvmlLib is None:
            try:
                pynvml.nvmlLib = ctypes.CDLL(library)
            except OSError as error:
                raise DriverLost("load", NO_LIBRARY) from error
        self.call("nvmlInitWithFlags", 0)
        self._pid = os.getpid()
        self.version = str(self.ask("", "nvmlSystemGetDriverVersion") or "")

    def close(self) -> None:
        """Let go of every GPU. In a process that was forked off there is nothing to let go of."""
        if os.getpid() == self._pid:
            try:
                self.call("nvmlShutdown")
            except Refused:
                return

    def call(self, function: str, *arguments: object, **named: object) -> Any:
        """What a function answers. Raises `Refused`."""
        try:
            return getattr(self._nvml, function)(*arguments, **named)
        except self._nvml.NVMLError as error:
            code = int(error.value)
        except AttributeError:
            code = NO_FUNCTION  # bindings that are older than the function
        except (UnicodeDecodeError, ValueError):
            code = UNKNOWN
        raise (DriverLost if code in _OF_DRIVER else GpuLost if _is_lost(code) else Refused)(function, code)

    def ask(self, gpu: str, function: str, *arguments: Any) -> Any:
        """What a function answers for a GPU; None where it gives nothing. Raises for what is lost.

        The first of ``arguments`` is the handle. What is not supported once is not asked again.
        """
        key = (gpu, function, arguments[1:])
        if key in self._never:
            return None
        try:
            return self.call(function, *arguments)
        except (GpuLost, DriverLost):
            raise
        except Refused as refused:
            code = refused.code
        if code == NO_PERMISSION:
            self.denied.add(function)
        if code == RESET_REQUIRED:
            self.reset_required.add(gpu)
        if code in _NEVER:
            self._never.add(key)
        elif code not in _NO_ANSWER:
            self.errors[function, NAMES.get(code, str(code))] += 1
        return None

    @property
    def lists_processes_truly(self) -> bool:
        """Drivers 535.43 to 535.98 give structures of another size under the same name.

        go-nvml#75, nvitop#75, gpustat#161: a reader gets pids that are amounts.
        """
        numbers = [int(part) for part in re.findall(r"\d+", self.version)]
        return not (numbers[:1] == [535] and numbers < [535, 104, 5])


def _is_lost(code: int) -> bool:
    return code in (LOST, GPU_NOT_FOUND)
