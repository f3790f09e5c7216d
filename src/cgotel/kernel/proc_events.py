"""Process events from the kernel's connector: who forked, executed, was renamed, ended (cn_proc.h).

Read here rather than through a library for three reasons, each measured with pyroute2 0.9: an event
costs 2 to 11 µs instead of 88, 17 MiB of memory stay free, and where the kernel gives no answer, as
in any container with a pid namespace of its own, nothing waits for ever.
"""

from __future__ import annotations

import ctypes
import errno
import select
import socket
import struct
import time
from typing import NamedTuple, TypeAlias

_NETLINK_CONNECTOR = 11
_GROUP = _INDEX = _VALUE = 1  # CN_IDX_PROC, CN_VAL_PROC
_LISTEN, _IGNORE = 1, 2
_NONE, _FORK, _EXEC, _COMM, _EXIT = 0, 1, 2, 0x200, 0x80000000

_SO_ATTACH_FILTER = 26
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 8 << 20  # an event takes less than 1 KiB of it
_MOST_AT_ONCE = 1000
_MESSAGE_BYTES = 128

# struct nlmsghdr, struct cn_msg, and what one asks of it
_CONTROL = struct.Struct("=IHHII IIIIHH I")
_WHAT_AND_TIME = struct.Struct("=36xI4xQ").unpack_from
_ERROR = struct.Struct("=52xI").unpack_from
_FORKED = struct.Struct("=52xIIII").unpack_from
_EXECUTED = struct.Struct("=52xII").unpack_from
_RENAMED = struct.Struct("=52xII16s").unpack_from
_ENDED = struct.Struct("=52xIIII").unpack_from
_PARENT = struct.Struct("=68xII").unpack_from


class Forked(NamedTuple):
    """A process came. Times are nanoseconds of CLOCK_MONOTONIC."""

    time_ns: int
    pid: int
    parent: int


class Executed(NamedTuple):
    """A process is another program now."""

    time_ns: int
    pid: int


class Renamed(NamedTuple):
    """A process gave itself a name, at most 15 bytes."""

    time_ns: int
    pid: int
    comm: bytes


class Ended(NamedTuple):
    """The first thread of a process ended, which mostly is the process.

    It is not where other threads live on, or where one of them executes a program and takes its place.
    ``status`` is as wait(2) gives it; ``parent`` None before 4.18.
    """

    time_ns: int
    pid: int
    status: int
    parent: int | None


class Overrun(NamedTuple):
    """Events were lost, because they were not read in time."""


Happening: TypeAlias = Forked | Executed | Renamed | Ended | Overrun


class ProcEvents:
    """The events of all processes of the host. Raises OSError where they are not to be had.

    ECONNREFUSED: not in the first network namespace; EPROTONOSUPPORT: a kernel without it; EPERM: no
    CAP_NET_ADMIN; ETIMEDOUT: no answer, as outside the first pid and user namespaces.
    """

    def __init__(self, timeout_s: float = 2.0) -> None:
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        self._socket = socket.socket(socket.AF_NETLINK, kind, _NETLINK_CONNECTOR)
        self._listening = False
        try:
            _enlarge(self._socket)
            _attach(self._socket, _PROCESSES_ONLY)
            self._socket.bind((0, _GROUP))
            self._control(_LISTEN)
            self._listening = True
            self._await_answer(timeout_s)
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Readable when something happened: for poll(2)."""
        return self._socket.fileno()

    def read(self) -> list[Happening]:
        """What happened, in the order in which the kernel tells it; at most a thousand at once."""
        happened: list[Happening] = []
        receive = self._socket.recvfrom
        for _ in range(_MOST_AT_ONCE):
            try:
                data, (sender, _) = receive(_MESSAGE_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                happened.append(Overrun())
                continue
            if sender == 0 and (one := _happening(data)) is not None:  # 0 is the kernel
                happened.append(one)
        return happened

    def close(self) -> None:
        """Stop listening; before 6.6 the kernel would go on making events for nobody."""
        if self._listening:
            self._listening = False
            self._control(_IGNORE)
        self._socket.close()

    def _control(self, operation: int) -> None:
        size = _CONTROL.size
        self._socket.send(
            _CONTROL.pack(size, 3, 0, 0, 0, _INDEX, _VALUE, 0, 0, 4, 0, operation)  # NLMSG_DONE
        )

    def _await_answer(self, timeout_s: float) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        deadline = time.monotonic() + timeout_s  # events may come all the time, if others listen
        while (left_s := deadline - time.monotonic()) > 0 and poll.poll(left_s * 1000):
            try:
                data, (sender, _) = self._socket.recvfrom(_MESSAGE_BYTES)
            except BlockingIOError:
                continue
            if sender == 0 and len(data) >= 56 and _WHAT_AND_TIME(data)[0] == _NONE:
                [code] = _ERROR(data)
                if code:
                    raise OSError(code, "the connector refused")
                return
        raise TimeoutError(errno.ETIMEDOUT, "the connector gave no answer")


def _happening(data: bytes) -> Happening | None:
    """One message of the kernel; None for what is none of ours."""
    if len(data) < 68:
        return None
    what, time_ns = _WHAT_AND_TIME(data)
    if what == _FORK:
        _, parent, _, child = _FORKED(data)
        return Forked(time_ns, child, parent)
    if what == _EXEC:
        return Executed(time_ns, _EXECUTED(data)[1])
    if what == _EXIT:
        pid, _, status, _ = _ENDED(data)
        parent = _PARENT(data)[1] if len(data) >= 76 else 0
        return Ended(time_ns, pid, status, parent or None)
    if what == _COMM and len(data) >= 76:
        _, pid, comm = _RENAMED(data)
        return Renamed(time_ns, pid, comm.partition(b"\0")[0])
    return None


def _enlarge(opened: socket.socket) -> None:
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    except PermissionError:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)


# A filter in the kernel, of classic BPF (networking/filter.rst): threads come and go far more often
# than processes, and would wake the reader each time.

_LOAD, _TO_X, _IF_EQUAL, _IF_EQUAL_X, _RETURN = 0x20, 0x07, 0x15, 0x1D, 0x06
_Instruction: TypeAlias = tuple[int, int, int, int]


def _word(number: int) -> int:
    """A word as the filter loads it: it takes every word for one of the network's."""
    return socket.htonl(number)


_PROCESSES_ONLY: tuple[_Instruction, ...] = (
    (_LOAD, 0, 0, 36),  # 0: proc_event.what
    (_IF_EQUAL, 12, 0, _word(_NONE)),  # to 14
    (_IF_EQUAL, 11, 0, _word(_EXEC)),  # to 14
    (_IF_EQUAL, 6, 0, _word(_FORK)),  # to 10
    (_IF_EQUAL, 1, 0, _word(_EXIT)),  # to 6
    (_IF_EQUAL, 0, 9, _word(_COMM)),  # to 6, all others to 15
    (_LOAD, 0, 0, 52),  # 6: process_pid, the thread
    (_TO_X, 0, 0, 0),
    (_LOAD, 0, 0, 56),  # process_tgid
    (_IF_EQUAL_X, 4, 5, 0),  # to 14 or 15
    (_LOAD, 0, 0, 60),  # 10: child_pid, the thread
    (_TO_X, 0, 0, 0),
    (_LOAD, 0, 0, 64),  # child_tgid
    (_IF_EQUAL_X, 0, 1, 0),  # to 14 or 15
    (_RETURN, 0, 0, 0xFFFFFFFF),  # 14: all of it
    (_RETURN, 0, 0, 0),  # 15: nothing
)


def _attach(opened: socket.socket, program: tuple[_Instruction, ...]) -> None:
    packed = b"".join(struct.pack("=HBBI", *one) for one in program)
    code = ctypes.create_string_buffer(packed)
    described = struct.pack("HP", len(program), ctypes.addressof(code))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)
