"""Keys as bytes that sort as the keys do: NULL first, then numbers, then strings.

A key is one part, or a tuple of parts.  A part is NULL (a byte 0), a whole number of 64 bits (a byte 1, then the number
plus 2^63 in eight bytes, the highest first) or a string (a byte 2, then UTF-8 to the end; it comes last).
"""

from __future__ import annotations

from typing import Any

_OFFSET = 1 << 63


def as_bytes(key: Any) -> bytes:
    if type(key) is int:
        return b"\1" + (key + _OFFSET).to_bytes(8)
    if key is None:
        return b"\0"
    if isinstance(key, str):
        return b"\2" + key.encode()
    return b"".join([as_bytes(part) for part in key])


def from_bytes(data: bytes) -> Any:
    parts: list[int | str | None] = []
    at = 0
    while at < len(data):
        kind, at = data[at], at + 1
        if kind == 0:
            parts.append(None)
        elif kind == 1:
            parts.append(int.from_bytes(data[at : at + 8]) - _OFFSET)
            at += 8
        else:
            parts.append(data[at:].decode())
            at = len(data)
    return parts[0] if len(parts) == 1 else tuple(parts)
