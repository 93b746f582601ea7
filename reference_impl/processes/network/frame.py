"""What every frame between processes has; see `frames`."""

from __future__ import annotations

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Frame(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Base of the frames."""

    stamp: int
