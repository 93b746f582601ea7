"""Takes away what a run has made in a database that outlives it, when nobody else is left to."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from .sinks import Place


class Will(msgspec.Struct, frozen=True, kw_only=True):
    """A place, and the file that says what is there, for as long as it is."""

    place: Place
    note: str = ""


def encode(place: Place, *, note: Path | None = None) -> bytes:
    """The configuration that `main` reads."""
    return msgspec.msgpack.encode(Will(place=place, note=str(note or "")), enc_hook=str)


def decode(config: bytes) -> Will:
    return msgspec.msgpack.decode(config, type=Will, dec_hook=lambda kind, text: kind(text))


def main(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """The launcher's entry: purge a place, and then remove the note of it."""
    will = decode(config)
    reader = will.place.reader()
    reader.purge()
    reader.close()
    if will.note:
        Path(will.note).unlink(missing_ok=True)
