"""Bytes of files that may come from anybody: bounded, and every error reported in one line.

Nothing is opened for which one could wait without end (a pipe, a device), and no more is read than a bound.  The bytes
are decoded to plain data; the caller checks what it means.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from ..runtime.exit_codes import UsageError

TOML_LIMIT_BYTES = 1024 * 1024
DEPTH_LIMIT = 32
"""brackets within brackets; a scenario needs 8"""

KEY_LIMIT = 64
"""how many dots a key in TOML may have"""

_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")
_APART = re.compile(r"[^\w.\- \t]")
_JOINTS = re.compile(r"[\w-][ \t]*\.")
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BOM = b"\xef\xbb\xbf"
"""which some editors put in front of UTF-8"""


class FileError(UsageError):
    """A file that cannot be used; its text is one line for a person."""


def bytes_of(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most so many; raises FileError."""
    demand_file(path, limit)
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # if it has become a pipe since, the read does not wait
        with os.fdopen(opened, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from None
    if len(data) > limit:  # it has grown, or its size cannot be known
        raise _too_large(path, len(data), limit)
    return data


def demand_file(path: Path, limit: int | None = None) -> None:
    """Raise FileError if this is not a regular file, or has more bytes than a limit; for a caller that reads it by
    itself."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path}: it is no file{' but a folder' if stat.S_ISDIR(found.st_mode) else ''}")
    if limit is not None and found.st_size > limit:
        raise _too_large(path, found.st_size, limit)


def json_of(data: bytes, where: str) -> bytes:
    """The bytes without a byte order mark; raises FileError if they are not JSON.

    They must be UTF-8 text, not empty, and not nested too deeply.
    """
    data = data.removeprefix(_BOM)
    if not data.strip():
        raise FileError(f"{where}: the file is empty")
    checked_text(data, where)
    if _depth(data) > DEPTH_LIMIT and _depth(_TEXTS.sub(b"", data)) > DEPTH_LIMIT:
        raise FileError(f"{where}: nested deeper than {DEPTH_LIMIT} brackets")
    return data


def _depth(data: bytes) -> int:
    """How deeply brackets are nested, those in texts included."""
    steps = (1 if byte in b"[{" else -1 for byte in data.translate(None, _NOT_BRACKETS))
    return max(itertools.accumulate(steps), default=0)


def toml_of(path: Path, what: str) -> dict[str, Any]:
    """The table of a TOML file; errors say that the file is not `what`.  Raises FileError."""
    text = checked_text(bytes_of(path, TOML_LIMIT_BYTES).removeprefix(_BOM), str(path))
    if any(line.count(".") > KEY_LIMIT and _joints(line) > KEY_LIMIT for line in text.splitlines()):
        raise FileError(f"{path} is not {what}: a key has more than {KEY_LIMIT} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise FileError(f"{path} is not {what}: nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError is a ValueError, and so is the error for a number that is too long
        raise FileError(f"{path} is not {what}: {error}") from None


def _joints(line: str) -> int:
    """The most dots that join names to one key in a line of TOML: the time to decode them grows with their square."""
    bare = _QUOTED.sub("x", line).partition("#")[0]
    return max(len(_JOINTS.findall(piece)) for piece in _APART.split(bare))


def checked_text(data: bytes, where: str) -> str:
    """The bytes as text; raises FileError if they are not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{where}: byte {error.start} is not UTF-8 text ({data[error.start]:#04x})") from None


def _too_large(path: Path, size: int, limit: int) -> FileError:
    return FileError(f"{path}: {size:,} bytes; the limit is {limit:,}")
