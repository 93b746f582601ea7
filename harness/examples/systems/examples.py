"""The documents' worked examples on general systems, by name."""

from __future__ import annotations

from .claims import SystemExample
from .instants import CLOCK_SKEW_SNAPSHOT, FOUR_GLOBAL_STATES
from .worked import CHANDY_LAMPORT_P1_P2_P3

SYSTEM_EXAMPLES: dict[str, SystemExample] = {
    example.name: example for example in (CHANDY_LAMPORT_P1_P2_P3, FOUR_GLOBAL_STATES, CLOCK_SKEW_SNAPSHOT)
}
