"""The measures: regimes of a checkpoint's duration, what steadiness is, who wins a cell."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cutproof.harness.examples.pipelines.tables import as_text, figures_of_comparisons
from cutproof.harness.reference_engine.pipelines.crashing import Comparison, circle, crashes, judge_comparison, rounds
from cutproof.harness.reference_engine.pipelines.measures import (
    MINUTE,
    SECOND,
    WAYS,
    crossover,
    durations,
    fed,
    first_checkpoint,
    pressed,
    recoveries,
    steadiness,
    stores,
    times_as_long,
    took_s,
)
from cutproof.harness.reference_engine.pipelines.run import NotConserved, judged, measured
from cutproof.reference_impl.core.extensions.in_flight_data.spilling import (
    AT_ONCE,
    CONTINUOUS,
    ChannelSpilling,
    Completeness,
    CopyProgress,
)
from cutproof.reference_impl.simulated.pipelines.plan import MB, Device, Pipeline
from cutproof.reference_impl.simulated.pipelines.world import spilling_of


def test_at_once_takes_as_long_as_alignment_where_the_rates_are_equal() -> None:
    assert crossover(Device(rate=45 * MB)) == pytest.approx(45 * MB, rel=0.01)


def test_the_ratio_follows_the_rates() -> None:
    assert times_as_long(100 * MB) == pytest.approx(10 / 3, rel=0.01)
    assert times_as_long(60 * MB) == pytest.approx(2, rel=0.01)


def test_under_growing_backpressure_there_are_three_regimes() -> None:
    calm, filling, full, stuck = durations((20 * MB, 15 * MB, 5 * MB, MB), ways=("aligned", "at once", "continuous"))
    assert max(calm.seconds.values()) < 0.01
    assert calm.in_flight < filling.in_flight < full.in_flight == stuck.in_flight
    assert filling.seconds["at once"] < full.seconds["at once"] == stuck.seconds["at once"]
    assert filling.seconds["aligned"] < full.seconds["aligned"] < stuck.seconds["aligned"] / 4
    assert filling.seconds["continuous"] == full.seconds["continuous"] == stuck.seconds["continuous"] < 0.1


def test_what_waits_less_than_the_time_out_is_stored_when_the_checkpoint_starts() -> None:
    """Of ten seconds in the queue the last five are written then."""
    took = took_s(first_checkpoint(pressed(100 * MB, WAYS["buffer timeout"]), MINUTE))
    assert took_s(first_checkpoint(pressed(100 * MB, CONTINUOUS), MINUTE)) < took


def test_continuous_spilling_is_steady_and_at_once_is_not() -> None:
    found = {one.way: one for one in steadiness(lambda way: pressed(20 * MB, way), ("at once", "continuous"))}
    assert found["continuous"].written_varies == 0
    assert found["at once"].written_varies > 0.5
    assert found["continuous"].written == pytest.approx(20)


def test_without_backpressure_a_time_out_of_buffers_writes_nothing() -> None:
    found = {one.way: one for one in steadiness(lambda way: fed(10 * MB, 20 * MB, way), ("buffer timeout",))}
    assert found["buffer timeout"].written == 0
    pressing = {one.way: one for one in steadiness(lambda way: pressed(10 * MB, way), ("buffer timeout",))}
    assert pressing["buffer timeout"].written > 9


def test_a_store_with_latency_takes_longer_to_flush_and_files_take_more_room() -> None:
    log, files, distant = stores(20 * MB, ("continuous",))
    assert log.checkpoint_s < 0.1 < distant.checkpoint_s < 2
    assert log.checkpoint_s < files.checkpoint_s < distant.checkpoint_s
    assert log.most_stored < files.most_stored
    assert log.processed == files.processed == distant.processed == 20


def test_recovery_reads_what_was_in_flight() -> None:
    found = {one.way: one for one in recoveries(10 * MB)}
    assert found["aligned"].read == 0 < found["continuous"].read
    assert found["aligned"].restored_s == 1 < found["continuous"].restored_s
    assert found["continuous"].undone < found["aligned"].undone < found["at once"].undone


def test_crashes_come_at_the_rate_and_one_at_the_end() -> None:
    drawn = crashes(MINUTE, 600 * MINUTE)
    assert len(drawn) == pytest.approx(600, rel=0.15)
    assert drawn[-1] == 600 * MINUTE
    assert list(drawn) == sorted(drawn)
    assert crashes(MINUTE) == crashes(MINUTE)
    assert crashes(None) == ()


def test_a_round_counts_only_checkpoints_that_were_complete_by_then() -> None:
    run = measured(circle(AT_ONCE, for_us=6 * MINUTE))
    given = rounds(run)
    assert sum(len(one.checkpoints_s) for one in given) == sum(
        (one.complete_us or 0) <= given[-1].crashed_us for one in run.complete
    )
    assert [one.covered for one in given] == sorted(one.covered for one in given)


def _judged(progress: dict[str, int], written: dict[str, int]) -> Comparison:
    return judge_comparison(MB, SECOND, None, progress, written)


def test_the_winner_is_who_wrote_least_of_those_that_came_furthest() -> None:
    given = _judged({"a": 1_000, "b": 995, "c": 900}, {"a": 5, "b": 3, "c": 0})
    assert (given.winner, given.even) == ("b", ("b", "a"))
    assert "b (a)" in as_text(figures_of_comparisons([replace(given, progress=dict.fromkeys(WAYS, 1_000))]))


def test_where_nobody_came_anywhere_nobody_wins() -> None:
    given = _judged({"a": 0, "b": 0}, {"a": 5, "b": 3})
    assert (given.winner, given.even) == ("none", ())


class _Anything(Completeness):
    def counts(self, progress: CopyProgress) -> bool:
        return True


def _hasty(plan: Pipeline) -> ChannelSpilling:
    return ChannelSpilling(plan.way, completeness=_Anything())


def test_a_run_that_loses_bytes_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(pressed(10 * MB, AT_ONCE), crashes_us=(70 * SECOND,), until_us=100 * SECOND)
    assert judged(plan, spilling_of) == measured(plan)
    monkeypatch.setattr(
        "cutproof.harness.reference_engine.pipelines.run.judged",
        lambda given: judged(given, _hasty),
    )
    with pytest.raises(NotConserved, match="lost buffer"):
        measured(plan)
