"""The base of what a process writes into its journal."""

from __future__ import annotations

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Entry(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Base of the entries."""

    stamp: int
