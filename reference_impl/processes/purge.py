"""Takes away what a run has made in a database that outlives it, when nobody else is left to."""

from __future__ import annotations

import socket

import msgspec

from .sinks import Place


def encode(place: Place) -> bytes:
    """The configuration that `main` reads."""
    return msgspec.msgpack.encode(place, enc_hook=str)


def main(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """The launcher's entry: purge a place."""
    place = msgspec.msgpack.decode(config, type=Place, dec_hook=lambda kind, text: kind(text))
    reader = place.reader()
    reader.purge()
    reader.close()
