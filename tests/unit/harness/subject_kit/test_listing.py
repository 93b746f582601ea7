"""The list of subjects: all that can be named, and why one cannot run here."""

from __future__ import annotations

import pytest

from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.subject.names import BUILT
from cutproof.harness.subject_kit import listing
from cutproof.harness.subject_kit.listing import PER_MINUTE, subjects
from cutproof.harness.user_pipelines import library
from cutproof.properties.model.verdict import INVARIANTS

ENGINE = "cutproof.harness.subject_kit.template.adapter:Engine"


def test_engines_pipelines_and_an_own_subject_are_listed() -> None:
    found = subjects([ENGINE])
    assert [one.name for one in found] == [*BUILT, *(one.name for one in library.listed()), ENGINE]
    assert [one.kind for one in found[:2]] == ["engine", "engine"]
    assert {one.kind for one in found[2:-1]} == {"pipeline"}
    simulated, own = found[0], found[-1]
    assert (simulated.can_run, simulated.missing, simulated.judged) == (True, "", INVARIANTS)
    assert (own.kind, own.can_run, own.per_minute, own.judged) == ("yours", True, None, INVARIANTS)


def test_of_a_pipeline_only_what_is_seen_from_outside_is_judged() -> None:
    for one in subjects():
        if one.kind == "pipeline":
            assert {"progress", "no-data-loss"} <= set(one.judged)
            assert not {"order", "drain", "consistent-cut", "restored-state"} & set(one.judged)
            lists = one.name == "spark-foreachbatch-idempotent"
            assert ("no-leaks" in one.judged) is lists, one.name


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise UsageError(f"{name} needs something; install it")

    monkeypatch.setattr(library, "path_of", refuse)
    pipelines = [one for one in subjects() if one.kind == "pipeline"]
    assert pipelines
    assert all((one.can_run, one.missing) == (False, f"{one.name} needs something; install it") for one in pipelines)


def test_a_pipeline_whose_file_cannot_be_read_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> None:
        raise UsageError(f"{path}: it cannot be read")

    monkeypatch.setattr(listing, "PipelineSubject", refuse)
    pipelines = [one for one in subjects() if one.kind == "pipeline"]
    assert [one.name for one in pipelines] == [one.name for one in library.listed()]
    assert all(not one.can_run and one.judged == () and "cannot be read" in one.missing for one in pipelines)


def test_an_own_subject_that_cannot_be_loaded_is_listed_with_the_reason() -> None:
    (own,) = [one for one in subjects(["nowhere.at:All"]) if one.kind == "yours"]
    assert not own.can_run
    assert "nowhere" in own.missing


def test_every_figure_belongs_to_a_subject() -> None:
    assert {*BUILT, *library.SHIPPED} == set(PER_MINUTE), "each has been measured"
    assert all(listing.limit_of(name) for name in PER_MINUTE)
