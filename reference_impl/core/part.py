"""What all decisions of the engine have in common."""

from __future__ import annotations


class Part:
    """Base of the decisions; `reached` turns true where a variant's wrong code ran."""

    reached = False
