"""The TCP connections of this machine with how many bytes have come and gone, as Linux lists them.

Toxiproxy counts the bytes of a connection only once it has closed.  The kernel counts them at once,
and tells them to whoever asks (sock_diag(7), the list that `ss` prints).  It also remembers for a
minute which end of a connection closed it first.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from ...runtime.exit_codes import HarnessFailed

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
INET_DIAG_INFO = 2
ESTABLISHED, FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSE_WAIT = 1, 4, 5, 6, 8
OPEN = (ESTABLISHED, CLOSE_WAIT)
CLOSED_FIRST = (FIN_WAIT1, FIN_WAIT2, TIME_WAIT)
"""states of the end that closed its connection before the other end did"""

_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI2H4I4I3I")
_PORTS = struct.Struct("!HH")
_MESSAGE = 72
"""the bytes of struct inet_diag_msg; attributes come behind it"""
_INODE = 68
_RECEIVED, _SENT = 128, 200
"""where tcpi_bytes_received and tcpi_bytes_sent are in struct tcp_info"""
_ANSWER = 1 << 16
_WITHIN_S = 2.0


class Socket(NamedTuple):
    """One end of a connection."""

    local: int
    """its port, and that of the other end"""
    remote: int
    state: int
    inode: int
    """0 once its process has closed it"""
    received: int
    sent: int
    """how many bytes have come, and gone; 0 once it is closed"""


def sockets() -> list[Socket]:
    """Every end of a TCP connection in this process's network; raises HarnessFailed if Linux does not list them."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
            link.settimeout(_WITHIN_S)
            return [one for family in (socket.AF_INET, socket.AF_INET6) for one in _listed(link, family)]
    except (OSError, struct.error) as error:
        raise HarnessFailed(
            f"Linux does not list the connections here (sock_diag: {error}), so nothing would show what a fault of a"
            " proxy has hit; leave out the [proxies] of the pipeline"
        ) from error


def inodes_of(pid: int) -> frozenset[int]:
    """The sockets that a process has open; none if it has ended."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # it was closed meanwhile
                kind, _, number = os.readlink(entry.path).partition(":[")
                if kind == "socket":
                    found.add(int(number.rstrip("]")))
    return frozenset(found)


def _listed(link: socket.socket, family: int) -> Iterator[Socket]:
    states = sum(1 << state for state in (*OPEN, *CLOSED_FIRST))
    wanted = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), states, *[0] * 13)
    head = _HEADER.pack(_HEADER.size + len(wanted), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, family, 0)
    link.send(head + wanted)
    while True:
        data = link.recv(_ANSWER)
        at = 0
        while at + _HEADER.size <= len(data):
            size, kind, _, _, _ = _HEADER.unpack_from(data, at)
            if kind == NLMSG_DONE:
                return
            if kind == NLMSG_ERROR:
                (number,) = struct.unpack_from("=i", data, at + _HEADER.size)
                raise OSError(-number, os.strerror(-number))
            yield _read(data[at + _HEADER.size : at + size])
            at += (size + 3) & ~3


def _read(message: bytes) -> Socket:
    local, remote = _PORTS.unpack_from(message, 4)
    (inode,) = struct.unpack_from("=I", message, _INODE)
    received, sent = _counts(message)
    return Socket(local=local, remote=remote, state=message[1], inode=inode, received=received, sent=sent)


def _counts(message: bytes) -> tuple[int, int]:
    """How many bytes have come and gone, by the attribute that has struct tcp_info."""
    at = _MESSAGE
    while at + 4 <= len(message):
        size, kind = struct.unpack_from("=HH", message, at)
        if kind == INET_DIAG_INFO:
            counts = [struct.unpack_from("=Q", message, at + 4 + place)[0] for place in (_RECEIVED, _SENT)]
            return counts[0], counts[1]
        at += max(4, (size + 3) & ~3)
    return 0, 0
