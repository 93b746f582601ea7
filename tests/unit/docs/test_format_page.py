"""docs/format.md: its worked example is judged as the page says, and every field that it names is one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cutproof.faults.points import PHASES, POINTS
from cutproof.harness.scenario.files import read_history, read_scenario
from cutproof.properties.invariants.judge import Judgement, judge
from cutproof.properties.model import history as contract
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import INVARIANTS, Holds, Reason, Unknown, Violated
from cutproof.properties.model.workload import origin_of
from cutproof.properties.spark.unasked import REASONS

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "format.md").read_text(encoding="utf-8")
SCENARIO = DOCS / "examples" / "recorded" / "scenario.json"
HISTORY = DOCS / "examples" / "recorded" / "history.json"


def _judged(change: Callable[[History], None] | None = None) -> Judgement:
    scenario, history = read_scenario(SCENARIO), read_history(HISTORY)
    if change is not None:
        change(history)
    return judge(scenario.workload, scenario.topology, history)


def _run(history: History, task: str, attempt: int) -> contract.TaskRun:
    return next(run for run in history.runs if (run.task, run.attempt) == (task, attempt))


def test_the_worked_example_holds_as_the_page_states() -> None:
    verdicts = _judged().verdicts
    held = {name for name, verdict in verdicts.items() if isinstance(verdict, Holds)}
    assert held == {
        "exactly-once", "no-data-loss", "consistent-cut", "order", "restored-state", "progress", "no-leaks"
    }  # fmt: skip
    reasons = {name: verdict.reason for name, verdict in verdicts.items() if isinstance(verdict, Unknown)}
    assert reasons == {
        "restorable": "not exercised", "visibility": "not exercised", "drain": "not exercised",
        "at-least-once": "not promised", "at-most-once": "not promised",
    }  # fmt: skip


def _repeat_a_row(history: History) -> None:
    history.committed.append((1, 12, 203, 0))


def _lose_a_row(history: History) -> None:
    history.committed.remove((1, 14, 306, 0))


def _alter_a_state(history: History) -> None:
    stored = next(one for one in history.stored if (one.task, one.checkpoint) == ("sum-0", 1))
    stored.state = '{"entries":[[0,1,5,101]]}'


def _read_again(history: History) -> None:
    _run(history, "source-0", 2).reads = [(0, 1)]


def _load_nothing(history: History) -> None:
    _run(history, "sum-0", 2).loaded = None


def _commit_too_early(history: History) -> None:
    history.transactions[0].commit_requested = history.completed[0].order - 1


CHANGES = {
    "repeat the row": _repeat_a_row,
    "take the row": _lose_a_row,
    "let `sum-0` hold": _alter_a_state,
    "let the second attempt of `source-0` read": _read_again,
    "let the second attempt of `sum-0` load": _load_nothing,
    "move the commit request": _commit_too_early,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_violates_what_the_page_states(change: str) -> None:
    row = re.search(rf"^\| {re.escape(change)}.* \| ([a-z, -]+) \|$", TEXT, flags=re.MULTILINE)
    assert row is not None
    assert set(_judged(CHANGES[change]).violated) == set(row[1].split(", "))


def test_every_change_on_the_page_is_tried() -> None:
    table = TEXT.rpartition("| Change |")[2]
    assert len(re.findall(r"^\| \w", table, flags=re.MULTILINE)) == len(CHANGES)


def test_without_the_networks_log_order_is_unknown_and_the_rest_stays() -> None:
    def forget(history: History) -> None:
        history.channels = []

    whole, less = _judged().verdicts, _judged(forget).verdicts
    assert less["order"] == Unknown(reason=Reason.NOT_OBSERVABLE, detail="the sends were not recorded")
    assert {name: less[name] for name in INVARIANTS if name != "order"} == {
        name: whole[name] for name in INVARIANTS if name != "order"
    }


@pytest.mark.parametrize("part", ["loaded", "stored"])
def test_what_is_left_out_did_not_happen(part: str) -> None:
    def leave_out(history: History) -> None:
        if part == "stored":
            history.stored = []
        for run in history.runs:
            run.loaded = None if part == "loaded" else run.loaded

    assert "restored-state" in _judged(leave_out).violated


def test_what_the_page_quotes_is_in_the_example() -> None:
    quoted = [json.loads(block) for block in re.findall(r"```json\n(.+?)```", TEXT, flags=re.DOTALL)]
    history, scenario = json.loads(HISTORY.read_text()), json.loads(SCENARIO.read_text())
    outside = json.loads((DOCS / "examples" / "outside" / "history.json").read_text())
    entries = [*history["runs"], *history["stored"], *scenario["workload"]["inputs"], outside]
    assert quoted
    assert [one for one in quoted if one not in entries] == []


def test_the_history_of_twenty_lines_is_judged_as_the_page_states() -> None:
    folder = DOCS / "examples" / "outside"
    scenario, history = read_scenario(folder / "scenario.json"), read_history(folder / "history.json")
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    (found,) = [verdict for verdict in verdicts.values() if isinstance(verdict, Violated)]
    assert found.difference == "repeated row"
    reasons = [verdict.reason for verdict in verdicts.values() if isinstance(verdict, Unknown)]
    assert len([reason for reason in reasons if reason in ("not observable", "not promised")]) == 9
    assert "Nine of the twelve invariants are *unknown" in TEXT


def test_origins_are_as_the_page_computes_them() -> None:
    assert (origin_of(0, 2), origin_of(1, 0)) == (512, 1099511627776)
    assert "is 512, " in TEXT
    assert "is 1099511627776." in TEXT


@pytest.mark.parametrize(
    "entry", ["TaskRun", "Mark", "Loaded", "Channel", "Stored", "Completed", "Transaction", "Written", "Read"]
)
def test_every_field_of_an_entry_is_documented(entry: str) -> None:
    documented = set(re.findall(r"`(\w+)`", TEXT)) | {"events"}
    assert set(getattr(contract, entry).__struct_fields__) <= documented


def test_every_part_of_a_history_is_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", TEXT))
    assert set(History.__struct_fields__) - documented == set()


def test_every_event_of_the_journal_is_documented() -> None:
    known = {str(event.__struct_config__.tag) for event in contract.AnyJournalEntry.__args__}
    assert known - set(re.findall(r"`([\w-]+)`", TEXT)) == set()


def test_every_invariant_states_what_it_needs() -> None:
    table = TEXT.partition("## What each invariant needs")[2].partition("`channels`, `reads` and")[0]
    named = {name for cell in re.findall(r"^\| ([a-z, -]+) \|", table, flags=re.MULTILINE) for name in cell.split(", ")}
    assert named == set(INVARIANTS)


def test_the_reasons_for_which_pyspark_is_not_asked_are_those_of_the_page() -> None:
    section = TEXT.partition("## Two judges")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", section, re.MULTILINE)
    assert [row.strip() for row in rows if row.strip() != "Reason"] == list(REASONS)


@pytest.mark.parametrize("page", ["format.md", "pipelines.md"])
def test_a_page_for_users_of_the_package_has_no_link_into_the_source(page: str) -> None:
    links = re.findall(r"\]\((\.\./[^)]+)\)", (DOCS / page).read_text(encoding="utf-8"))
    assert [link for link in links if not link.endswith(".md")] == []


def test_the_page_names_every_phase_and_the_page_that_it_refers_to_every_point() -> None:
    assert [phase for phase in PHASES if f"`{phase}` (" not in TEXT] == []
    points = (DOCS / "your-engine.md").read_text(encoding="utf-8")
    assert [point for point in POINTS if f"| `{point}` |" not in points] == []
