"""Removes what a run has made in a database that outlives it, when no other process can do it any more."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from .sinks import SinkPlace


class Cleanup(msgspec.Struct, frozen=True, kw_only=True):
    """A place of sinks, and the note: a file that exists as long as something is in that place."""

    place: SinkPlace
    note: str = ""


def encode(place: SinkPlace, *, note: Path | None = None) -> bytes:
    """The configuration that `main` reads."""
    return msgspec.msgpack.encode(Cleanup(place=place, note=str(note or "")), enc_hook=str)


def decode(config: bytes) -> Cleanup:
    return msgspec.msgpack.decode(config, type=Cleanup, dec_hook=lambda kind, text: kind(text))


def main(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """The launcher's entry: purge a place, and then remove its note."""
    cleanup = decode(config)
    reader = cleanup.place.reader()
    reader.purge()
    reader.close()
    if cleanup.note:
        Path(cleanup.note).unlink(missing_ok=True)
