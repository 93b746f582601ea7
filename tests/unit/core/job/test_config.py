"""Settings that would weaken a promise silently are refused (ABS-16, ABS-17)."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.lifecycle.coordinator import Coordinator
from cutproof.reference_impl.core.vocabulary.errors import Refused
from unit.core.coordinator_rig import CoordinatorRig


@pytest.mark.parametrize(
    ("settings", "reason_text"),
    [
        ({"guarantee": "maybe-once"}, "unknown guarantee 'maybe-once'"),
        ({"sink": "kitchen"}, "unknown sink 'kitchen'"),
        ({"guarantee": "at-most-once"}, "needs a plain sink"),
        ({"guarantee": "at-most-once", "sink": "idempotent"}, "needs a plain sink"),
        ({"retained_checkpoints": 0}, "at least one checkpoint must be retained"),
        ({"concurrent_checkpoints": 0}, "at least one allowed in progress"),
    ],
)
def test_refused(settings: dict[str, object], reason_text: str) -> None:
    with pytest.raises(Refused, match=reason_text):
        Config(**settings).check()


def test_a_coordinator_does_not_start_with_settings_that_are_refused() -> None:
    with pytest.raises(Refused, match="unknown sink"):
        CoordinatorRig(sink="kitchen")


@pytest.mark.parametrize(
    ("job", "numbers", "refused"),
    [
        (0, {}, "not job 0, attempt 1, checkpoint 1"),
        (-1, {}, "not job -1, attempt 1, checkpoint 1"),
        (1, {"first_attempt": 0}, "not job 1, attempt 0, checkpoint 1"),
        (1, {"first_checkpoint": 0}, "not job 1, attempt 1, checkpoint 0"),
    ],
)
def test_jobs_attempts_and_checkpoints_are_numbered_from_one_on(
    job: int, numbers: dict[str, int], refused: str
) -> None:
    with pytest.raises(Refused, match=f"^jobs, attempts and checkpoints are numbered from 1 on: {refused}$"):
        CoordinatorRig(job=job, coordinator=numbers)


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("sink", ["transactional", "idempotent", "plain"])
def test_accepted(guarantee: str, sink: str) -> None:
    config = Config(guarantee=guarantee, sink=sink)
    config.check()
    assert config.takes_checkpoints
    assert config.blocking == (guarantee == "exactly-once")


def test_at_most_once_into_a_plain_sink_is_accepted_and_neither_blocks_nor_rewinds() -> None:
    config = Config(guarantee="at-most-once", sink="plain", retained_checkpoints=1, concurrent_checkpoints=1)
    config.check()
    assert not config.takes_checkpoints
    assert not config.blocking


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_sources_that_cannot_rewind_are_refused_by_name(guarantee: str) -> None:
    with pytest.raises(Refused) as refused:
        Config(guarantee=guarantee).check(["socket", "radio"])
    assert str(refused.value) == (
        f"socket, radio cannot rewind, so {guarantee} cannot be kept: "
        "use a source that can, or lower the guarantee to at-most-once"
    )


@pytest.mark.parametrize(("guarantee", "accepted"), [("exactly-once", False), ("at-most-once", True)])
def test_a_job_with_such_a_source_runs_at_most_once_or_not_at_all(guarantee: str, accepted: bool) -> None:
    graph = JobGraph(
        (
            OperatorSpec(name="log", parallelism=1, splits=(0,), role="source"),
            OperatorSpec(name="socket", parallelism=1, splits=(1,), role="source", rewindable=False),
            OperatorSpec(
                name="sink",
                parallelism=1,
                inputs=tuple(EdgeSpec(sender=name, partitioning="hash") for name in ("log", "socket")),
                role="sink",
            ),
        ),
        16,
    )
    config = Config(guarantee=guarantee, sink="plain")
    if accepted:
        assert Coordinator(1, graph, config, Parts()).newest_attempt is None
    else:
        with pytest.raises(Refused, match=r"^socket cannot rewind"):
            Coordinator(1, graph, config, Parts())
