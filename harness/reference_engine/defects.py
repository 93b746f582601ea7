"""The planted defects of the reference engine by name, and the invariant that each must violate."""

from __future__ import annotations

from ...reference_impl.defects import DEFECTS as DEFECTS
