"""Nights of one bank: what is new, fixed and back, what a night leaves to the next, and its exit code."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.harness.chaos import job, subject_night, watch
from cutproof.harness.chaos import plan as division
from cutproof.harness.chaos.bank import Bank
from cutproof.harness.chaos.job import ChaosRequest, NightDone, run_night
from cutproof.harness.chaos.replays import Replayer
from cutproof.harness.chaos.shrinking import Shrinking
from cutproof.harness.chaos.subject_night import Share
from cutproof.harness.chaos.watch import Watch
from cutproof.harness.counterexamples import findings
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search import profiles, worker
from cutproof.harness.search.oracle import Examined, Oracle
from cutproof.harness.search.outcome import ScenarioOutcome
from cutproof.harness.search.pool import Encoded, Here
from cutproof.harness.search.worker import Chunk, Plan
from cutproof.harness.shrink.on_subject import Seen, shrink_on
from cutproof.harness.shrink.shrink import Shrunk
from cutproof.harness.subject.port import Capabilities, Subject, SubjectFailed
from cutproof.properties.model.verdict import Reason, Unknown
from cutproof.reports.nights.model import Night
from unit.harness.chaos import banks
from unit.harness.chaos.banks import failure
from unit.harness.chaos.defective import DEFECTIVE, Defective
from unit.harness.scenarios import chain
from unit.harness.subjects import Agreeing

CUT = "A01"
"""lets a barrier overtake: consistent-cut is violated in every other scenario, without any fault"""
SHARE = job._share


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nights without worker processes that shrink hastily."""
    monkeypatch.setattr(subject_night, "Processes", lambda plan, _: Here(plan))
    monkeypatch.setattr(worker, "shrink_on", functools.partial(shrink_on, max_runs=15))
    monkeypatch.setattr(findings, "nearest_passing", lambda *_: None)
    monkeypatch.setattr(Defective, "planted", (CUT,))


def night(
    bank: Path,
    *,
    seed: int = 16,
    scenarios: int = 5,
    oracle: Oracle | None = None,
    known: Path | None = None,
    subjects: tuple[str, ...] = (DEFECTIVE,),
    master: str | None = None,
) -> NightDone:
    asked = ChaosRequest(
        bank=bank,
        seconds=600.0,
        subjects=subjects,
        master=master,
        seed=seed,
        profile="smoke",
        scenarios=scenarios,
        known=known,
    )
    return run_night(asked, oracle=oracle or Agreeing())


def test_a_failure_is_new_once_then_fixed_then_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = tmp_path / "bank"
    first = night(bank, scenarios=3)
    assert first.exit_code == ExitCode.VIOLATED
    found = {one.failure for one in first.night.replays}
    assert first.summary.bank.new == len(found) > 0
    assert first.summary.bank.unshrunk == 0

    assert "the bank has no earlier night, so whatever fails is new" in first.night.words, "its cache may be lost"

    second = night(bank, scenarios=3)
    assert not any("no earlier night" in words for words in second.night.words)
    assert second.summary.bank.new == 0, "the same seed finds the same, which is in the bank"
    assert {one.failure: one.status for one in second.night.replays} == dict.fromkeys(found, "still_failing")

    monkeypatch.setattr(Defective, "planted", ())
    third = night(bank, scenarios=4)
    assert third.exit_code == ExitCode.HELD
    assert {one.failure: one.status for one in third.night.replays} == dict.fromkeys(found, "fixed")

    monkeypatch.setattr(Defective, "planted", (CUT,))
    fourth = night(bank, scenarios=1)
    assert fourth.exit_code == ExitCode.VIOLATED
    assert fourth.summary.bank.again == fourth.summary.bank.still_failing == len(found)

    with Bank(bank) as kept:
        assert kept.failures.keys() == found
        assert [one.exit_code for one in kept.nights] == [1, 1, 0, 1]
        assert kept.unshrunk == {}
        assert kept.remarks == []
        for failure in kept.failures.values():
            assert failure.shrunk
            assert failure.replay == f"cutproof replay failures/{failure.id}/scenario.json --subject {DEFECTIVE}"


def test_a_replay_that_fails_in_another_way_is_a_failure_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # to the end: the same failure is to be shrunk to the same scenario from wherever shrinking begins
    monkeypatch.setattr(worker, "shrink_on", functools.partial(shrink_on, max_runs=300))
    first = night(tmp_path / "1", scenarios=1)
    shown = next(iter(first.failures.values()))
    with Bank(tmp_path / "1") as found, Bank(tmp_path / "2") as bank:
        bank.add_failure(replace(failure(subject=DEFECTIVE), invariant="drain"), found.scenario(shown.id))
    done = night(tmp_path / "2", scenarios=0)
    assert done.summary.scenarios.run == 0
    assert {one.status: one.failure for one in done.night.replays}["new"] == shown.id
    assert done.summary.bank.not_reached == 1
    assert done.exit_code == ExitCode.VIOLATED


def test_what_a_killed_night_left_is_shrunk_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Shrinking, "_shrink", killed)
        with pytest.raises(Killed):
            night(tmp_path)
    with Bank(tmp_path) as bank:
        (cut_off,) = bank.nights
        assert cut_off.ended is None
        assert cut_off.subjects[0].scenarios.run == 5
        assert len(bank.unshrunk) > 0
    done = night(tmp_path, seed=2, scenarios=1)
    assert done.summary.bank.new > 0
    assert all(failure.night == cut_off.id for failure in done.failures.values())


def test_what_was_not_replayed_for_the_longest_time_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the night before had another subject, or was interrupted amid its replays."""
    monkeypatch.setattr(Defective, "planted", ())
    monkeypatch.setattr(division, "REPLAYS", 10**9)  # time for one failure a night
    names = ("one", "two", "three")
    with Bank(tmp_path) as bank:
        for day, name in enumerate(names):
            bank.add_failure(failure(name, day=day, subject=DEFECTIVE), chain())

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    replayed = [night(tmp_path, scenarios=0).night]
    night(tmp_path, scenarios=0, subjects=("simulated",))
    replayed.append(night(tmp_path, scenarios=0).night)
    with monkeypatch.context() as patch:
        patch.setattr(Replayer, "replayed", interrupted)
        assert len(night(tmp_path, scenarios=0).night.not_replayed) == 3
    replayed.append(night(tmp_path, scenarios=0).night)
    assert [[one.failure for one in each.replays] for each in replayed] == [[failure(name).id] for name in names]


def test_what_an_earlier_night_recorded_in_real_time_is_no_failure_of_tonight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def capabilities(subject: Defective) -> Capabilities:
        return replace(SimulatedSubject().capabilities, real_time=True, deviations=False)

    monkeypatch.setattr(Defective, "capabilities", property(capabilities))
    first = night(tmp_path, scenarios=2)
    assert first.failures
    with monkeypatch.context() as patch:
        for step in ("work", "drop_explained"):  # as if the night was killed before
            patch.setattr(Shrinking, step, lambda *_: None)
        assert night(tmp_path, scenarios=3).summary.bank.unshrunk > 0
    monkeypatch.setattr(Defective, "planted", ())
    third = night(tmp_path, seed=4, scenarios=1)
    assert {one.failure: one.status for one in third.night.replays} == dict.fromkeys(first.failures, "fixed")
    assert third.exit_code == ExitCode.HELD
    assert third.summary.bank.unshrunk == 0


def test_an_interruption_keeps_what_was_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Shrinking, "_shrink", interrupted)
    done = night(tmp_path)
    assert done.exit_code == ExitCode.INTERRUPTED
    assert done.night.exit_code == ExitCode.INTERRUPTED
    assert done.summary.bank.unshrunk > 0


def test_the_same_seed_and_bank_draw_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Defective, "planted", ())
    one, other = night(tmp_path / "1", scenarios=5), night(tmp_path / "2", scenarios=5)
    assert _drawn(one.night) == _drawn(other.night)
    assert _drawn(one.night) != _drawn(night(tmp_path / "3", seed=2, scenarios=5).night)


def _drawn(done: Night) -> object:
    subject = done.subjects[0]
    return subject.targets, subject.growth, subject.left_out, subject.scenarios, subject.checkpoints_ms


def test_what_pyspark_does_not_confirm_is_no_failure_of_the_bank(tmp_path: Path) -> None:
    done = night(tmp_path, oracle=Agreeing(disagree=range(8)))
    assert done.exit_code == ExitCode.HARNESS_FAILED
    assert done.summary.scenarios.violated > 0
    with Bank(tmp_path) as bank:
        assert bank.failures == {}
        assert bank.unshrunk == {}


def test_a_replay_with_one_judge_is_no_violation(tmp_path: Path) -> None:
    class Down(Agreeing):
        def examine(self, questions: Sequence[bytes]) -> Examined:
            raise HarnessFailed("no Java")

    night(tmp_path, scenarios=1)
    with Bank(tmp_path) as bank:
        bank.add_failure(failure(subject="processes"), chain())
    done = night(tmp_path, scenarios=1, oracle=Down())
    assert done.summary.bank.still_failing > 0
    assert done.exit_code == ExitCode.HARNESS_FAILED
    assert any("no Java" in words for words in done.night.subjects[0].failures)
    assert "the night did not replay 1 failure of subjects that it does not test: processes" in done.night.words


class Lost(Here):
    """A cluster that is lost once it has run so many chunks."""

    chunks = 0
    late = False
    """nobody knows it before a request fails"""
    why = "the Spark cluster yarn ended the application"

    def __init__(self, plan: Plan, _: str) -> None:
        super().__init__(plan)
        self._left = self.chunks

    @property
    def lost(self) -> str:  # type: ignore[override]
        return "" if self._left >= (0 if self.late else 1) else self.why

    def chunk(self, first: int, end: int) -> Future[Encoded]:
        self._left -= 1
        return super().chunk(first, end) if self._left >= 0 else _done(Chunk(ended=self.why))

    def shrink(self, scenario: Scenario, invariant: str, difference: str, seen: Seen | None = None) -> Future[Shrunk]:
        self._left -= 1
        return (
            super().shrink(scenario, invariant, difference, seen) if self._left >= 0 else _done(HarnessFailed(self.why))
        )


def _done(result: Chunk | HarnessFailed) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(result) if isinstance(result, HarnessFailed) else future.set_result(result)
    return future


@pytest.mark.parametrize(("chunks", "late", "run"), [(2, True, 4), (3, False, 5), (3, True, 5)])
def test_what_a_lost_cluster_has_not_shrunk_is_left_to_the_next_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int, late: bool, run: int
) -> None:
    monkeypatch.setattr(subject_night, "SparkPool", Lost)
    monkeypatch.setattr(subject_night, "CHUNK_OF_A_TASK", 2)
    monkeypatch.setattr(Lost, "chunks", chunks)
    monkeypatch.setattr(Lost, "late", late)
    done = night(tmp_path, scenarios=5, master="yarn")
    assert done.summary.scenarios.run == run, (
        "the cluster was lost in the search, after it, or with the first shrinking"
    )
    assert done.exit_code == ExitCode.VIOLATED, "both judges saw violations before"
    assert done.summary.failures == [Lost.why]
    assert done.summary.bank.unshrunk > 0
    with Bank(tmp_path) as bank:
        assert bank.failures == {}, "none was kept as it was found"
    again = night(tmp_path, seed=2, scenarios=1)
    assert {one.shrunk for one in again.failures.values()} == {True}
    assert again.summary.bank.unshrunk == 0


def test_a_cluster_that_is_never_there_is_told_once_and_the_bank_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(Agreeing):
        def examine(self, questions: Sequence[bytes]) -> Examined:
            raise HarnessFailed(Lost.why)

    found = night(tmp_path, scenarios=2).failures
    monkeypatch.setattr(subject_night, "SparkPool", Lost)
    done = night(tmp_path, master="yarn", subjects=("simulated", DEFECTIVE), oracle=Gone())
    assert done.exit_code == ExitCode.HARNESS_FAILED
    assert done.summary.failures == [Lost.why]
    assert done.summary.bank.still_failing == len(found) > 0
    assert done.night.machine.endswith("scenarios on yarn")


def test_of_scenarios_that_fail_alike_the_first_drawn_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backwards(Here):
        """Workers of which the last are the fastest."""

        workers = 6

        def chunk(self, first: int, end: int) -> Future[Encoded]:
            return super().chunk(12 - end, 12 - first)

    def left(bank: Path) -> set[int]:
        with monkeypatch.context() as patch:
            patch.setattr(Shrinking, "work", lambda *_: None)
            done = night(bank, scenarios=12)
        with Bank(bank) as kept:
            assert len(kept.unshrunk) < done.summary.scenarios.violated
            return {one.outcome.index for one in kept.unshrunk.values()}

    monkeypatch.setattr(subject_night, "CHUNK", 1)
    monkeypatch.setitem(watch.WAITING, "unexplained", 2)
    forwards = left(tmp_path / "1")
    monkeypatch.setattr(subject_night, "Processes", lambda plan, _: Backwards(plan))
    assert left(tmp_path / "2") == forwards


def test_a_known_failure_keeps_the_night_green(tmp_path: Path) -> None:
    found = night(tmp_path / "bank", scenarios=1)
    known = tmp_path / "known.toml"
    entry = '[[failure]]\ninvariant = "{}"\nexpires = 2999-01-01\nreason = "ENGINE-1"\n'
    known.write_text("".join(entry.format(one.invariant) for one in found.failures.values()))
    again = night(tmp_path / "bank", scenarios=1, known=known)
    assert again.exit_code == ExitCode.HELD
    assert again.summary.bank.known == again.summary.bank.still_failing > 0
    assert all(one.expires is not None and "ENGINE-1" in one.known for one in again.night.replays)


def test_a_night_says_what_it_could_not_shrink_or_read_and_that_it_was_too_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Defective, "planted", ())
    with Bank(tmp_path) as bank:
        before = banks.night()
        bank.write_night(before)
        bank.add_unshrunk(banks.unshrunk(before))
    broken = tmp_path / "failures/abcdefabcdef/failure.json"
    broken.parent.mkdir()
    broken.write_text("{", encoding="utf-8")
    done = night(tmp_path, scenarios=1).night
    assert (done.unshrunk, done.unshrunk_elsewhere, done.put_aside) == (1, 1, 1)
    assert done.unjudged.startswith("The run had 1 of the ")


def test_a_subject_of_which_nothing_was_judged_makes_no_night_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(Watch):
        def _add(self, outcome: ScenarioOutcome) -> None:
            unknown = dict.fromkeys(outcome.verdicts, Unknown(reason=Reason.NOT_EXERCISED))
            super()._add(replace(outcome, verdicts=unknown) if self._subject == DEFECTIVE else outcome)

    monkeypatch.setattr(Defective, "planted", ())
    monkeypatch.setattr(subject_night, "Watch", Silent)
    done = night(tmp_path, scenarios=2, subjects=("simulated", DEFECTIVE))
    assert [one.shortfalls for one in done.night.subjects] == [[], ["none of 2 scenarios was judged"]]
    assert done.exit_code == ExitCode.FELL_SHORT
    assert night(tmp_path, scenarios=0).exit_code == ExitCode.FELL_SHORT, "no scenario was run"


def test_each_subject_is_measured_by_its_own_scenarios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Defective, "planted", ())
    few = replace(profiles.PROFILES["smoke"], scenarios=2, shares={})
    monkeypatch.setitem(profiles.PROFILES, "smoke", few)
    monkeypatch.setattr(job, "_share", _with_less_for_the_second)
    done = night(tmp_path, scenarios=2, subjects=("simulated", DEFECTIVE))
    assert done.night.unjudged.startswith("defective: The run had 1 of the 2 scenarios")


def _with_less_for_the_second(request: ChaosRequest, place: int, subject: Subject, seconds: float) -> Share:
    return replace(SHARE(request, place, subject, seconds), scenarios=2 - place)


def test_why_scenarios_could_not_be_run_is_on_the_page_and_few_of_them_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> None:
        raise SubjectFailed("no such operator")

    monkeypatch.setattr(Defective, "run", run)
    monkeypatch.setattr(watch, "NOT_RUN", 3)
    done = night(tmp_path, scenarios=5)
    assert done.exit_code == ExitCode.HARNESS_FAILED
    (why,) = done.summary.failures
    assert why == "5 scenarios could not be run, the first of them scenario 0: no such operator"
    assert f"{why}." in done.page.with_name("summary.md").read_text(encoding="utf-8").replace("\\", "")
    assert len(list(tmp_path.glob("nights/*/not-run/*"))) == 3


def test_the_wait_for_pyspark_is_no_part_of_the_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Agreeing):
        def wait(self) -> None:
            time.sleep(0.6)

    monkeypatch.setattr(Defective, "planted", ())
    done = night(tmp_path, scenarios=2, oracle=Slow())
    assert done.night.subjects[0].scenarios_per_second == done.summary.scenarios_per_second > 0


def test_bad_input_leaves_no_night(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        night(tmp_path / "bank", known=tmp_path / "nowhere.toml")
    with Bank(tmp_path / "bank") as bank:
        assert bank.nights == []
