"""What `verify` prints is one screen, unless --verbose asks for more; --json and --quiet are as they were."""

from __future__ import annotations

import io
from pathlib import Path

from cutproof.harness.cli import verify
from cutproof.harness.cli.terminal.options import Parser, add_common
from cutproof.harness.cli.terminal.output import Output
from cutproof.harness.cli.terminal.printing import print_summary, print_tampering
from cutproof.harness.self_check.tamper import MutationCount, TamperReport
from unit.reports import stories


def _summary(*, verbose: bool = False, json: bool = False, quiet: bool = False) -> tuple[str, str]:
    """(standard output, standard error) of a run's end."""
    stdout, stderr = io.StringIO(), io.StringIO()
    output = Output(json=json, quiet=quiet, stdout=stdout, stderr=stderr)
    print_summary(stories.summary(), Path("out/run"), output, verbose=verbose)
    output.result(stories.summary())
    return stdout.getvalue(), stderr.getvalue()


def test_verbose_adds_what_one_screen_leaves_out() -> None:
    (brief, _), (verbose, _) = _summary(), _summary(verbose=True)
    assert "Planned, but never fired" not in brief
    assert "Planned, but never fired" in verbose
    assert all(text.endswith(f"report: {Path('out/run/report.html')}\n") for text in (brief, verbose))


def test_json_is_the_same_with_and_without() -> None:
    (brief, brief_words), (verbose, words) = _summary(json=True), _summary(json=True, verbose=True)
    assert brief == verbose
    assert len(words) > len(brief_words) > 0


def test_quiet_reports_nothing_more_with_verbose() -> None:
    assert _summary(quiet=True) == _summary(quiet=True, verbose=True)
    assert _summary(quiet=True)[0] == ""


def test_the_option_is_off_unless_it_is_given() -> None:
    parser = Parser()
    verify.configure(parser)
    add_common(parser)
    assert [parser.parse_args(words).verbose for words in ([], ["--verbose"])] == [False, True]
    assert parser.format_help().count("what is printed:") == 1


def _tampering(*, verbose: bool) -> str:
    report = TamperReport(
        subject="simulated",
        seed=5,
        scenarios=40,
        held={"order": 12},
        tamperings=[
            MutationCount(name="drop a row", tried=7, caught=7, by_invariant={"exactly-once": 7}),
            MutationCount(name="move a cut", tried=2, caught=1, missed=["seed 5, number 3"]),
        ],
        caught=8,
        missed=1,
    )
    stdout = io.StringIO()
    print_tampering(report, Output(stdout=stdout), verbose=verbose)
    return stdout.getvalue()


def test_mutations_have_a_line_each_with_verbose_and_those_not_seen_always() -> None:
    brief, verbose = _tampering(verbose=False), _tampering(verbose=True)
    assert "drop a row" not in brief
    assert "drop a row  7     7     exactly-once" in verbose
    assert all("not seen: move a cut, in the scenario seed 5, number 3\n" in text for text in (brief, verbose))
    assert all("held: order 12\n" in text for text in (brief, verbose))
