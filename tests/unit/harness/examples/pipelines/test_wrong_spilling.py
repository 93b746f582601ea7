"""Each claim of `spilling-arithmetic` about the engine: on an engine that spills wrongly it does not show."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from cutproof.harness.examples.claims import look_up
from cutproof.harness.examples.pipelines.arithmetic import SPILLING_ARITHMETIC
from cutproof.harness.reference_engine.pipelines import run as pipelines
from cutproof.harness.reference_engine.pipelines.measures import SECOND
from cutproof.reference_impl.core.extensions.in_flight_data.spilling import ChannelSpilling, SpillEffect, Way
from cutproof.reference_impl.simulated.pipelines.plan import Pipeline
from cutproof.reference_impl.simulated.pipelines.world import MakeSpilling


class StoresNothing(ChannelSpilling):
    """What a barrier overtook is left out of the checkpoint."""

    def snapshot(self, checkpoint: int, overtaken: list[int], *, closed: bool) -> list[SpillEffect]:
        if self._way.keeps_channels:
            return super().snapshot(checkpoint, overtaken, closed=closed)
        return super().snapshot(checkpoint, [], closed=closed)


class SpillsLate(ChannelSpilling):
    """A buffer is spilled only once a barrier overtook it, whatever the way says."""

    def came(self) -> list[SpillEffect]:
        way, self._way = self._way, Way(overtakes_after_us=0)
        try:
            return super().came()
        finally:
            self._way = way


class SpillsAtOnce(ChannelSpilling):
    """A buffer is spilled as it comes, where it was to be given time to be processed."""

    def came(self) -> list[SpillEffect]:
        way, self._way = self._way, Way(overtakes_after_us=0, spills_after_us=0)
        try:
            return super().came()
        finally:
            self._way = way


def made(kind: type[ChannelSpilling], pipeline: Pipeline) -> ChannelSpilling:
    return kind(pipeline.way)


WRONG: dict[int, type[ChannelSpilling]] = {
    0: StoresNothing,
    1: StoresNothing,
    3: SpillsLate,
    4: StoresNothing,
    5: StoresNothing,
    6: SpillsLate,
    7: SpillsLate,
    9: SpillsAtOnce,
}
"""By number of a claim an engine on which it is not so."""


def test_there_is_a_wrong_way_for_every_claim_about_the_engine() -> None:
    claims = SPILLING_ARITHMETIC.claims
    assert list(WRONG) == [number for number, claim in enumerate(claims) if not claim.assumes]


@pytest.mark.parametrize("number", WRONG)
def test_on_an_engine_that_spills_wrongly_the_claim_does_not_show(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: MakeSpilling = partial(made, WRONG[number])
    example = replace(SPILLING_ARITHMETIC, claims=(SPILLING_ARITHMETIC.claims[number],))
    run = pipelines.judged(replace(example.pipeline, until_us=SECOND))
    monkeypatch.setattr(pipelines, "judged", partial(pipelines.judged, spilling=wrong))
    (shown_claim,) = look_up(example.claims, example.pipeline, run)
    assert not shown_claim.shown, shown_claim.evidence
    assert "there is no" not in shown_claim.evidence
