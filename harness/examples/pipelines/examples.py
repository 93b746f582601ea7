"""The examples from the discussion of FLIP-76, in bytes and time, by name."""

from __future__ import annotations

from .arithmetic import SPILLING_ARITHMETIC
from .claims import PipelineExample
from .overtaking import BARRIER_BEFORE_SNAPSHOT, VICIOUS_CIRCLE

PIPELINE_EXAMPLES: dict[str, PipelineExample] = {
    example.name: example for example in (BARRIER_BEFORE_SNAPSHOT, VICIOUS_CIRCLE, SPILLING_ARITHMETIC)
}
