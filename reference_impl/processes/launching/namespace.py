"""A network of the run's own (a network namespace of Linux): no other process of the machine reaches a port in it.

Root makes one outright.  Any other user first needs a user namespace, which allows it; in there the user keeps the own
number, so files stay the user's, and nothing is gained outside.  Containers and some distributions allow neither, or
allow the namespace and then not what has to be done in it.  So a child tries it first.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import traceback
from pathlib import Path
from typing import NoReturn

from .offspring import LINUX

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 1
_REQUEST = struct.Struct("16sH14x")
"""The kernel's ifreq: an interface's name, and its flags."""
_unshare = ctypes.CDLL(None, use_errno=True).unshare if LINUX else None


def enter() -> None:
    """Leave the machine's network for one that has nothing but a loopback; raises OSError.

    Only for a process with one thread.  It and the processes that it starts from then on are in the new network; its
    earlier sockets are not.
    """
    if _unshare is None:
        raise OSError("there are no network namespaces")
    uid, gid = os.geteuid(), os.getegid()
    if _unshare(_CLONE_NEWNET if uid == 0 else _CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"unshare: {os.strerror(code)}")
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        _, flags = _REQUEST.unpack(fcntl.ioctl(any_socket, _SIOCGIFFLAGS, _REQUEST.pack(b"lo", 0)))
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, _REQUEST.pack(b"lo", flags | _IFF_UP))


def why_not() -> str:
    """Why `enter` does not work here; empty where it works.  A child tries it, and connects to itself there."""
    if not LINUX:
        return "there are no network namespaces"
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _try(writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        reason = pipe.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    return reason or ("" if status == 0 else "it cannot be tried")


def _try(pipe: int) -> NoReturn:
    code = 1
    try:
        enter()
        with socket.create_server(("127.0.0.1", 0)) as here, socket.create_connection(here.getsockname(), 1):
            code = 0
    except OSError as error:
        os.write(pipe, (error.strerror or str(error)).encode())
    except BaseException:
        os.write(pipe, traceback.format_exc().splitlines()[-1].encode())
    finally:
        os._exit(code)
