"""What `cutproof chaos` prints of a night: what changed, and commands that run where the job was started."""

from __future__ import annotations

import io
from pathlib import Path

from cutproof.harness.chaos.job import BankCounts, NightDone, NightSummary
from cutproof.harness.cli import chaos
from cutproof.harness.cli.terminal.options import Parser
from cutproof.harness.cli.terminal.output import Output
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.reports.model import Counterexample
from unit.reports.nights import banks

BANK = Path("my bank")


def printed(*words: str) -> str:
    """A night in which one failure still fails, one is fixed and one has long been."""
    parser = Parser(prog="cutproof chaos")
    chaos.configure(parser)
    failures = [banks.failure(name) for name in ("old", "now", "bad")]
    last = banks.night(2, [banks.replay("old", "o"), banks.replay("now", "o"), banks.replay("bad", "x")])
    bad = failures[2]
    shown = Counterexample(
        id=bad.id, invariant=bad.invariant, scenario=bad.scenario, story=bad.story, replay=bad.replay, size=bad.size
    )
    done = NightDone(
        night=last,
        failures={one.id: one for one in failures},
        summary=NightSummary(
            bank=BankCounts(fixed=2, still_failing=1, known=1, unshrunk=1), version="0.1.0", counterexamples=[shown]
        ),
        exit_code=ExitCode.VIOLATED,
        page=BANK / "nights.html",
        fixed_before=frozenset({"old"}),
    )
    stdout = io.StringIO()
    chaos._print(done, BANK, parser.parse_args(words), Output(stdout=stdout))
    return stdout.getvalue()


def test_a_failure_that_was_fixed_before_is_only_counted_unless_all_is_wanted() -> None:
    brief = printed()
    assert "0 new, 1 still failing, 0 flaky, 1 of these known, 1 fixed, 1 fixed before, 0 no longer reached" in brief
    assert "1 failing scenario left to be shrunk" in brief
    assert "  now  fixed: " in brief
    assert "  old  fixed: " not in brief
    assert "  old  fixed: " in printed("--verbose")


def test_a_command_names_the_scenario_from_where_the_job_was_started() -> None:
    assert "cutproof replay 'my bank/failures/bad/scenario.json'" in printed()
