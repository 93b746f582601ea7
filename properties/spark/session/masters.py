"""The URLs of Spark masters."""

from __future__ import annotations

import re
import socket

from .errors import SparkUnavailable

CONNECT_S = 5.0
FORMS = "local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT"

_URL = re.compile(r"local|local\[(\d+|\*)\]|spark://[^\s:,/]+:\d{1,5}(,[^\s:,/]+:\d{1,5})*|yarn|k8s://\S+")
_LOCAL = re.compile(r"local\[(\d+)\]")


def is_master(text: str) -> bool:
    """Whether a text is a master's URL in one of `FORMS`; local[N] has one core or more."""
    return _URL.fullmatch(text) is not None and text != "local[0]"


def is_local(master: str) -> bool:
    """Whether the executor is in the driver's own Java."""
    return master.startswith("local")


def demand_answering(master: str) -> None:
    """Raise SparkUnavailable if no master of a standalone cluster takes connections: Spark would try for a minute."""
    if not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, int(port)), CONNECT_S).close()
            return
        except (OSError, OverflowError) as error:
            last = error
    raise SparkUnavailable(f"no Spark master answers at {master} ({getattr(last, 'strerror', None) or last})")
