"""The planted defects of the reference engine by name, each with the invariant that it must violate."""

from __future__ import annotations

from ...reference_impl.defects import DEFECTS as DEFECTS
