"""`verify --vary`: each value is verified with the same seed, in a folder of its own, and the worst ending is the exit
code."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from cutproof.harness.cli import vary
from cutproof.harness.cli.terminal.output import Output
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.search.campaign import Verified
from cutproof.reports.model import ReportView, ScenarioCounts, Summary
from unit.harness.user_pipelines.toys import toy

PARAMETER = ('name = "toy"', 'name = "toy"\n[parameters]\nhow = "careful"')


def options(tmp_path: Path, *, vary: str | None, values: tuple[str, ...] = ()) -> argparse.Namespace:
    path = toy(tmp_path, PARAMETER, ('"careful"]', '"{how}"]'))
    return argparse.Namespace(
        pipeline=str(path),
        vary=vary,
        set=list(values),
        subject="simulated",
        workload=None,
        input=None,
        tamper=False,
        seed=None,
        out=tmp_path / "out",
    )


def nothing(names: Iterable[str]) -> None:
    """Nothing is needed."""


class Verifying:
    """Ends with a given code for each value, and writes the verdicts that go with it."""

    def __init__(self, **codes: ExitCode) -> None:
        self.codes = codes
        self.runs: list[argparse.Namespace] = []
        self.interrupted = False

    def __call__(self, options: argparse.Namespace, output: Output) -> Verified:
        self.runs.append(options)
        code = self.codes[options.subject.rpartition("=")[2]]
        options.out.mkdir(parents=True)
        word = "violated" if code == ExitCode.VIOLATED else "holds"
        line = {"type": "scenario", "index": 0, "verdicts": {"exactly-once": {"verdict": word}}}
        (options.out / "scenarios.jsonl").write_text(json.dumps(line) + "\n")
        counts = ScenarioCounts(run=1, violated=int(word == "violated"), held=int(word == "holds"))
        return Verified(
            view=ReportView(summary=Summary(scenarios=counts, interrupted=self.interrupted)),
            findings=(),
            exit_code=code,
        )


def test_both_values_get_the_same_seed_and_folders_of_their_own(tmp_path: Path) -> None:
    verify = Verifying(careful=ExitCode.HELD, losing=ExitCode.VIOLATED)
    code = vary.verify_variants(options(tmp_path, vary="how=careful,losing"), Output(quiet=True), nothing, verify)
    assert code == ExitCode.VIOLATED
    assert len({run.seed for run in verify.runs}) == 1
    assert [run.out.name for run in verify.runs] == ["how=careful", "how=losing"]
    assert [run.subject.partition("?")[2] for run in verify.runs] == ["how=careful", "how=losing"]
    kept = json.loads((tmp_path / "out" / "variants.json").read_text())
    assert [one["exit_code"] for one in kept["variants"]] == [0, 1]
    assert kept["differences"] == [
        {"index": 0, "invariant": "exactly-once", "violated": ["losing"], "held": ["careful"]}
    ]
    assert "how: violated with losing; held with careful" in (tmp_path / "out" / "variants.html").read_text()


def test_an_interruption_leaves_out_the_values_that_follow(tmp_path: Path) -> None:
    verify = Verifying(careful=ExitCode.INTERRUPTED, losing=ExitCode.VIOLATED)
    code = vary.verify_variants(options(tmp_path, vary="how=careful,losing"), Output(quiet=True), nothing, verify)
    assert code == ExitCode.INTERRUPTED
    assert len(verify.runs) == 1


def test_an_interruption_behind_a_violation_ends_it_too_and_the_violation_stands(tmp_path: Path) -> None:
    verify = Verifying(careful=ExitCode.VIOLATED, losing=ExitCode.HELD)
    verify.interrupted = True
    code = vary.verify_variants(options(tmp_path, vary="how=careful,losing"), Output(quiet=True), nothing, verify)
    assert (code, len(verify.runs)) == (ExitCode.VIOLATED, 1)


def test_all_is_there_before_anything_is_verified(tmp_path: Path) -> None:
    def prepare(names: Iterable[str]) -> None:
        raise HarnessFailed(" ".join(name.partition("?")[2] for name in names))

    verify = Verifying()
    with pytest.raises(HarnessFailed, match="how=careful how=losing"):
        vary.verify_variants(options(tmp_path, vary="how=careful,losing"), Output(quiet=True), prepare, verify)
    assert verify.runs == []


@pytest.mark.parametrize("text", ["how", "how=", "how=one", "how=one,one", "=one,two", "how=1/0,2"])
def test_too_few_values_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="--vary"):
        vary.verify_variants(options(tmp_path, vary=text), Output(quiet=True), nothing, Verifying())


def test_a_parameter_has_one_value_at_a_time(tmp_path: Path) -> None:
    chosen = options(tmp_path, vary="how=careful,losing", values=("how=repeating",))
    with pytest.raises(UsageError, match="both give values to how"):
        vary.verify_variants(chosen, Output(quiet=True), nothing, Verifying())


def test_a_parameter_that_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    from cutproof.harness.subject.names import subject_called

    name = vary.pipeline_called(options(tmp_path, vary=None, values=("who=losing",)))
    with pytest.raises(UsageError, match="has no parameter 'who'"):
        subject_called(name)


def test_a_value_that_is_set_is_filled_in(tmp_path: Path) -> None:
    from cutproof.harness.subject.names import subject_called

    name = vary.pipeline_called(options(tmp_path, vary=None, values=("how=a b",)))
    subject = subject_called(name)
    assert subject.name == name
    assert subject.pipeline.parameters == {"how": "a b"}  # type: ignore[attr-defined]
