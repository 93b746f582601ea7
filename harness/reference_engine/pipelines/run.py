"""Run a pipeline of bytes, and judge that nothing was lost or repeated."""

from __future__ import annotations

import msgspec

from ....properties.graphs.conservation import BytesHistory, check
from ....properties.model.verdict import Verdict, Violated
from ....reference_impl.core.vocabulary.errors import EngineError
from ....reference_impl.simulated.pipelines.parts import Checkpoint, PipelineOutcome
from ....reference_impl.simulated.pipelines.plan import Pipeline
from ....reference_impl.simulated.pipelines.world import MakeSpilling, PipelineWorld, spilling_of
from ...scenario.files import digest


class PipelineRun(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run, and its verdict."""

    pipeline: Pipeline
    outcome: PipelineOutcome
    verdict: Verdict

    @property
    def complete(self) -> list[Checkpoint]:
        return [one for one in self.outcome.checkpoints if one.complete_us is not None]

    @property
    def for_good(self) -> int:
        """Bytes that the sink processed and no crash undid."""
        return len(self.outcome.processed) * self.outcome.buffer_bytes

    @property
    def written(self) -> int:
        """Bytes that all stores wrote."""
        return sum(self.outcome.written.values())

    @property
    def trace_sha256(self) -> str:
        """The digest of all that happened."""
        return digest(self.outcome)


class NotConserved(EngineError):
    """A measured run lost or repeated bytes, so its measurements are not valid."""


def judged(pipeline: Pipeline, spilling: MakeSpilling = spilling_of) -> PipelineRun:
    """Run a pipeline and judge the run; raises EngineError if the pipeline cannot run."""
    outcome = PipelineWorld(pipeline, spilling).run()
    numbers = {stage.name: number for number, stage in enumerate(pipeline.stages)}
    history = BytesHistory(
        sources={numbers[name]: name for name in outcome.positions},
        processed=tuple(outcome.processed),
        in_flight=tuple(outcome.in_flight),
        read={numbers[name]: position for name, position in outcome.positions.items()},
    )
    return PipelineRun(pipeline=pipeline, outcome=outcome, verdict=check(history))


def measured(pipeline: Pipeline) -> PipelineRun:
    """A run whose measurements are valid; raises NotConserved if bytes are lost, repeated or reordered."""
    run = judged(pipeline)
    if isinstance(run.verdict, Violated):
        raise NotConserved(run.verdict.message)
    return run
