"""What the kernel's accounting says of each thread that ends: name, peak of memory (taskstats.rst).

Only the little of generic netlink that registration needs; the records that come are fixed structs.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

from cgotel.kernel.files import read_once

_NETLINK_GENERIC = 16
_CONTROLLER = 16  # GENL_ID_CTRL
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2
_GET, _REGISTER = 1, 3  # TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK
_OF_TASK, _PID, _STATS = 4, 1, 3  # TASKSTATS_TYPE_AGGR_PID, _PID, _STATS
_REQUEST, _ACKNOWLEDGE = 1, 4
_ERROR = 2  # NLMSG_ERROR
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_COMM_AT, _PEAK_AT = 80, 200  # ac_comm, hiwater_rss in struct taskstats
_AT_15 = 48  # version 15 alone has put fields before both
_COMM_BYTES = 32
_KIB = 1024
_MOST_AT_ONCE = 4000
_BUFFER_BYTES = 4 << 20
_SO_RCVBUFFORCE = 33


class ExitRecord(NamedTuple):
    """A thread that ended: the peak of its process's memory is in bytes, None where it had none."""

    pid: int
    comm: bytes
    peak: int | None


class ExitRecords:
    """The records of all threads that end. Raises OSError where they are not to be had.

    ENOENT: a kernel without taskstats; EPERM: no CAP_NET_ADMIN; EINVAL: not in the first pid and
    user namespaces.
    """

    def __init__(self, sysfs: str) -> None:
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        self._socket = socket.socket(socket.AF_NETLINK, kind, _NETLINK_GENERIC)
        try:
            self._socket.bind((0, 0))
            self._socket.settimeout(2)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            cpus = read_once(f"{sysfs}/devices/system/cpu/possible").strip() + b"\0"
            family = self._family()
            self._ask(family, _GET, _attribute(_REGISTER, cpus))
            self._socket.setblocking(False)
        except BaseException:
            self.close()
            raise

    def read(self) -> Iterator[ExitRecord]:
        """Threads that ended since the last time; never waits.

        Where records were lost, it goes on with the next one.
        """
        for _ in range(_MOST_AT_ONCE):
            try:
                data = self._socket.recv(4096)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                continue
            if found := record(data):
                yield found

    def close(self) -> None:
        """The kernel forgets whoever is gone."""
        self._socket.close()

    def _family(self) -> int:
        answer = self._ask(_CONTROLLER, _GET_FAMILY, _attribute(_FAMILY_NAME, b"TASKSTATS\0"))
        for kind, value in _attributes(answer, 20, len(answer)):
            if kind == _FAMILY_ID:
                return int.from_bytes(value[:2], sys.byteorder)
        raise FileNotFoundError(errno.ENOENT, "the kernel has no taskstats")

    def _ask(self, family: int, command: int, attribute: bytes) -> bytes:
        """Send a request; the first answer that is no acknowledgement, or the acknowledgement."""
        size = _HEADER.size + 4 + len(attribute)
        header = _HEADER.pack(size, family, _REQUEST | _ACKNOWLEDGE, 1, 0)
        self._socket.send(header + struct.pack("=BBH", command, 1, 0) + attribute)
        answer = b""
        while True:
            data = self._socket.recv(8192)
            kind = _HEADER.unpack_from(data)[1]
            if kind == _ERROR:
                [code] = struct.unpack_from("=i", data, _HEADER.size)
                if code:
                    raise OSError(-code, os.strerror(-code))
                return answer
            if kind == _CONTROLLER:
                answer = data


def record(data: bytes) -> ExitRecord | None:
    """The record of one thread; None for any other message."""
    for kind, value in _attributes(data, 20, len(data)):
        if kind == _OF_TASK:
            fields = dict(_attributes(value, 0, len(value)))
            stats, pid = fields.get(_STATS, b""), fields.get(_PID, b"")
            if len(stats) >= _PEAK_AT + _AT_15 + 8 and len(pid) == 4:
                shift = _AT_15 if struct.unpack_from("=H", stats)[0] == 15 else 0
                comm = stats[_COMM_AT + shift : _COMM_AT + shift + _COMM_BYTES].partition(b"\0")[0]
                [kib] = struct.unpack_from("=Q", stats, _PEAK_AT + shift)
                return ExitRecord(struct.unpack("=I", pid)[0], comm, kib * _KIB or None)
    return None


def _attribute(kind: int, value: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + bytes(-size % 4)


def _attributes(data: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    while start + _ATTRIBUTE.size <= end:
        size, kind = _ATTRIBUTE.unpack_from(data, start)
        if size < _ATTRIBUTE.size or start + size > end:
            return
        yield kind & 0x3FFF, data[start + _ATTRIBUTE.size : start + size]  # without NLA_F_NESTED
        start += size + -size % 4
