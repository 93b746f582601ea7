"""Worked examples from documents, run by name: a scenario, a system of processes or a pipeline
of bytes, with claims of its text.

Sources: Flink's first description of its checkpointing (stream_checkpointing.md, 2015),
the course on consistent snapshots and Flink's state, the discussion of unaligned checkpoints
(FLIP-76), the post on checkpoints after tasks finished (FLIP-147), and the proposal on
savepoints (FLIP-47); docs/protocol.md quotes them.  A claim is a sentence of the text, and
is searched for in the outcome of the run.  An example falls short if one of its claims does
not show.
"""

from __future__ import annotations

from .alignment import TWO_INPUT_ALIGNMENT, UNBLOCKED_ALIGNMENT
from .barriers import BARRIERS_IN_STREAM, SINGLE_INPUT_BARRIER, SNAPSHOT_CONTENTS
from .claims import Claim, Comparison, Example, NotShown, Ran, Shown, Variant, show
from .finishing.batch import COUNT_STREAMING_BATCH
from .finishing.examples import ABOUT_FINISHING
from .pipelines.claims import PipelineExample
from .pipelines.examples import PIPELINE_EXAMPLES
from .snapshots.examples import ABOUT_SNAPSHOTS
from .state import GREATER_THAN_PREVIOUS, STATELESS_PARSE
from .systems.claims import SystemExample
from .systems.examples import SYSTEM_EXAMPLES

__all__ = [
    "EVERY_EXAMPLE",
    "EXAMPLES",
    "AnyExample",
    "Claim",
    "Comparison",
    "Example",
    "NotShown",
    "Ran",
    "Shown",
    "Variant",
    "show",
]

AnyExample = Example | SystemExample | PipelineExample

EXAMPLES: dict[str, Example] = {
    example.scenario.name: example
    for example in (
        SINGLE_INPUT_BARRIER,
        TWO_INPUT_ALIGNMENT,
        UNBLOCKED_ALIGNMENT,
        BARRIERS_IN_STREAM,
        SNAPSHOT_CONTENTS,
        STATELESS_PARSE,
        GREATER_THAN_PREVIOUS,
        COUNT_STREAMING_BATCH,
        *ABOUT_FINISHING,
        *ABOUT_SNAPSHOTS,
    )
}

EVERY_EXAMPLE: dict[str, AnyExample] = {**EXAMPLES, **SYSTEM_EXAMPLES, **PIPELINE_EXAMPLES}
"""all examples by name: of streams, of systems of processes and channels, of pipelines of bytes"""
