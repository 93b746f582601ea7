"""docs/defects.md tells of every known defect: planted as the registry has it, or why it is not."""

from __future__ import annotations

import re
from collections import Counter

from cutproof.properties.model.verdict import INVARIANTS
from cutproof.reference_impl.defects import DEFECTS
from defects.differences import NOT_ON_PROCESSES, ON_PROCESSES
from defects.on_processes import ALIKE, IN_POSTGRESQL, TESTED, TOO_LONG
from unit.docs.defect_rows import PAGE, as_shrunk, on_processes, planted_row, renewed, statuses

TEXT = PAGE.read_text(encoding="utf-8")
KINDS = ("*planted*: ", "*needs* ", "*not seen*: ", "*not expressible*: ")


def test_every_entry_stands_once() -> None:
    ids = [name for name, _ in statuses(TEXT)]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert len(ids) == 192
    assert ids == sorted(ids)


def test_every_entry_states_what_became_of_it() -> None:
    assert [row for row in statuses(TEXT) if not row[1].startswith(KINDS)] == []


def test_planted_are_those_of_the_registry() -> None:
    planted = [name for name, status in statuses(TEXT) if status.startswith("*planted*")]
    assert planted == sorted(DEFECTS)


def test_planted_rows_are_those_of_the_registry() -> None:
    assert [name for name in sorted(DEFECTS) if planted_row(DEFECTS[name]) not in TEXT] == []
    assert renewed(TEXT) == TEXT


def test_a_row_that_differs_from_the_registry_is_renewed() -> None:
    row = planted_row(DEFECTS["A01"])
    stale = TEXT.replace(row, row.replace("consistent-cut", "progress"))
    assert stale != TEXT
    assert renewed(stale) == TEXT


def test_the_counts_in_the_text_are_right() -> None:
    counts = Counter(status.split("*")[1] for _, status in statuses(TEXT))
    claimed = {
        kind: int(number) for number, kind in re.findall(r"^- (\d+) are marked \*([a-z ]+)\*", TEXT, flags=re.MULTILINE)
    }
    assert claimed == dict(counts)


def test_each_invariant_of_exactly_once_is_violated_by_some_defect() -> None:
    weaker = {"at-least-once", "at-most-once", "order"}
    assert {defect.invariant for defect in DEFECTS.values()} >= set(INVARIANTS) - weaker


def test_every_planted_defect_has_its_rate_on_processes_or_is_named() -> None:
    rows = on_processes(TEXT)
    assert sorted((*(defect for defect, _, _ in rows), *NOT_ON_PROCESSES)) == sorted(DEFECTS)
    assert {defect: difference for defect, _, difference in rows} == ON_PROCESSES


def test_how_many_shrunk_files_show_is_as_the_table_states_here_and_in_the_readme() -> None:
    shown = [shown for shown, _ in as_shrunk(TEXT)]
    always, never = shown.count(3), shown.count(0)
    sentence = f"{always} of the {len(shown)} show there always, {len(shown) - always - never} sometimes, {never} never"
    assert sentence in " ".join(TEXT.split())
    measured = (
        f"Of {len(shown)} files of `tests/corpus`, each run three times on processes, {always} showed every time, "
    )
    readme = " ".join((PAGE.parents[1] / "README.md").read_text(encoding="utf-8").split())
    assert f"{measured}{len(shown) - always - never} sometimes, {never} never" in readme
    assert all((otherwise == "-") is (shown == 3) for shown, otherwise in as_shrunk(TEXT))


def test_those_that_show_on_processes_almost_always_are_run_as_tests() -> None:
    reliable = [defect for defect, rate, _ in on_processes(TEXT) if rate >= 9]
    assert sorted((*TESTED, *TOO_LONG, *ALIKE)) == reliable


def test_the_page_names_those_that_are_not_run_and_those_in_a_database() -> None:
    flat = " ".join(TEXT.split())
    assert f"runs all but {', '.join(TOO_LONG[:-1])} and {TOO_LONG[-1]}." in flat
    assert f"Not run either are {', '.join(ALIKE[:-1])} and {ALIKE[-1]}," in flat
    without = re.search(r"- Without a scenario there: ([^.]*)\.", flat)
    assert without is not None
    assert re.findall(r"\b[A-Z]\d\d\b", without.group(1)) == list(NOT_ON_PROCESSES)
    assert f"{len(ON_PROCESSES)} of the {len(DEFECTS)} planted defects also show" in flat
    assert f"Rows go to PostgreSQL with {', '.join(IN_POSTGRESQL[:-1])} and {IN_POSTGRESQL[-1]}" in flat
