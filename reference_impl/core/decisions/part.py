"""The base of the engine's decisions."""

from __future__ import annotations


class Part:
    """Base of the decisions; a variant sets `reached` where its wrong code runs."""

    reached = False
