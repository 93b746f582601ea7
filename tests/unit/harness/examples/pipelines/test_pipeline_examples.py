"""The examples in bytes: what the text says shows, and on another pipeline it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.harness.cli import main
from cutproof.harness.examples.claims import look_up
from cutproof.harness.examples.example_report import REPORT
from cutproof.harness.examples.pipelines.arithmetic import SPILLING_ARITHMETIC
from cutproof.harness.examples.pipelines.examples import PIPELINE_EXAMPLES
from cutproof.harness.examples.pipelines.overtaking import BARRIER_BEFORE_SNAPSHOT, JOINED, VICIOUS_CIRCLE
from cutproof.harness.examples.run import run_pipeline_example
from cutproof.harness.reference_engine.pipelines.measures import MINUTE, SECOND
from cutproof.harness.reference_engine.pipelines.run import judged
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.properties.model.verdict import Holds
from cutproof.reference_impl.core.extensions.in_flight_data.spilling import ALIGNED, CONTINUOUS, overtaking_after
from cutproof.reference_impl.simulated.pipelines.plan import MB, Device, Pipeline

CIRCLE = VICIOUS_CIRCLE.pipeline


@pytest.mark.parametrize("name", PIPELINE_EXAMPLES)
def test_it_holds_and_all_that_the_text_states_shows_or_is_assumed(name: str) -> None:
    example_run = run_pipeline_example(PIPELINE_EXAMPLES[name])
    assert [claim for claim in example_run.claims if not claim.shown and not claim.assumed] == []
    assert isinstance(example_run.verdicts["exactly-once"], Holds)
    assert example_run.exit_code == ExitCode.HELD


def _slower_source(pipeline: Pipeline) -> Pipeline:
    """Nothing is queued anywhere."""
    (left, *rest) = pipeline.stages
    return replace(pipeline, stages=(replace(left, arrives=MB), *rest))


@pytest.mark.parametrize(
    ("pipeline", "lacking"),
    [
        (replace(JOINED, way=ALIGNED), [0, 1, 2, 3]),
        (replace(JOINED, way=overtaking_after(5 * SECOND)), [0, 1, 3]),
        (_slower_source(JOINED), [2, 3]),
        (replace(JOINED, interval_us=None), [0, 1, 2, 3]),
    ],
)
def test_without_overtaking_or_backpressure_it_does_not(pipeline: Pipeline, lacking: list[int]) -> None:
    shown = look_up(BARRIER_BEFORE_SNAPSHOT.claims, pipeline, judged(pipeline))
    assert [number for number, claim in enumerate(shown) if not claim.shown] == lacking


@pytest.mark.parametrize(
    ("pipeline", "lacking"),
    [
        (replace(CIRCLE, way=CONTINUOUS), [0, 1, 2]),
        (replace(CIRCLE, crashes_us=()), [0, 1, 2, 3]),
        (replace(CIRCLE, channel_bytes=100 * MB), [0, 1, 2]),
        (replace(CIRCLE, device=Device(rate=3 * MB)), [3]),
    ],
)
def test_where_nothing_turns_there_is_no_circle(pipeline: Pipeline, lacking: list[int]) -> None:
    shown = look_up(VICIOUS_CIRCLE.claims, pipeline, judged(pipeline))
    assert [number for number, claim in enumerate(shown) if not claim.shown] == lacking


def test_with_another_store_the_figures_are_others() -> None:
    """At 60 MB/s the ratio is not 3.3; at 8 continuous spilling is not cheap, and keeps up with nothing."""
    claims = {number: SPILLING_ARITHMETIC.claims[number] for number in (0, 2, 3)}
    for rate, lacking in ((60 * MB, [0]), (8 * MB, [0, 2, 3])):
        run = judged(replace(SPILLING_ARITHMETIC.pipeline, device=Device(rate=rate), until_us=MINUTE))
        shown = look_up(claims.values(), run.pipeline, run)
        assert [
            number for number, claim in zip(claims, shown, strict=True) if not (claim.shown or claim.assumed)
        ] == lacking


def test_what_no_run_could_show_otherwise_is_called_an_assumption(capsys: pytest.CaptureFixture[str]) -> None:
    """Store and task share nothing here, so that spilling slows no task while the store keeps up."""
    example_run = run_pipeline_example(SPILLING_ARITHMETIC)
    assumed = [claim for claim in example_run.claims if claim.assumed]
    assert [claim.text.split(",")[-1].strip() for claim in assumed] == [
        "overhead of continuous spilling is relatively low",
        "steady records throughput",
    ]
    assert all("share nothing" in claim.evidence and not claim.shown for claim in assumed)
    assert main(["verify", "--workload", "spilling-arithmetic"]) == ExitCode.HELD
    assert 'assumed    "steady records throughput"' in capsys.readouterr().out


def test_it_runs_by_name_and_keeps_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--workload", "barrier-before-snapshot", "--out", str(tmp_path / "kept")]) == ExitCode.HELD
    assert "right>join was blocked for" in capsys.readouterr().out
    assert (tmp_path / "kept" / REPORT).exists()


@pytest.mark.parametrize("words", [("--subject", "processes"), ("--defect", "A01"), ("--tamper",)])
def test_what_means_another_world_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--workload", "vicious-circle", *words]) == ExitCode.USAGE
    assert f"is a pipeline of bytes, to which {words[0]} does not apply; leave it out" in capsys.readouterr().err
