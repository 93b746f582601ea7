"""docs/nightly.md names what the page of the nights says, and the files that stand beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from cutproof.harness.chaos.schedule import Job, Scheduler, schedule
from cutproof.reports.nights.files import files_of
from cutproof.reports.nights.view import view_of
from unit.reports.nights import banks

PAGE = (Path(__file__).parents[3] / "docs/nightly.md").read_text(encoding="utf-8")
CUT_OFF: dict[str, Any] = {"ended": None, "exit_code": None}
MORNINGS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"it": " n"}, {}),
    ({"it": "nox"}, {}),
    ({"it": "nx"}, {}),
    ({"it": "n~"}, {}),
    ({"it": "no"}, {"exit_code": 1, "unshrunk": 2}),
    ({"it": "no"}, {"unshrunk": 2}),
    ({"it": "no"}, {"unshrunk": 2, "unshrunk_elsewhere": 2}),
    ({"it": "no"}, {"put_aside": 1}),
    ({"it": "no"}, CUT_OFF),
    ({"it": "no"}, {"exit_code": 4}),
    ({"it": "nx "}, {}),
    ({"it": "no"}, {"exit_code": 3}),
    ({"it": "n?"}, {}),
    ({"it": "no"}, {}),
]


def headlines() -> list[str]:
    known = banks.replay("it", "x", known="a bug", expires=banks.began(0).date())
    nights = [banks.night(0, [known]), banks.night(1, [banks.replay("it", "x")])]
    expired = view_of(nights, [banks.failure("it")])
    return [*(view_of(*banks.told(lives, **last)).urgent.headline for lives, last in MORNINGS), expired.urgent.headline]


def test_each_morning_of_the_page_is_one_that_there_is_and_all_are_there() -> None:
    table = PAGE.split("| The page says | What to do |")[1].split("\n\n")[0]
    named = [row.split(" | ")[0].strip("| …") for row in table.splitlines() if row.startswith("| ")]
    said = headlines()
    assert [one for one in named if not any(one in headline for headline in said)] == []
    assert [headline for headline in said if not any(one in headline for one in named)] == []


def test_every_scheduler_and_every_file_is_named() -> None:
    for scheduler in get_args(Scheduler):
        assert f"cutproof chaos init {scheduler}`" in PAGE
        first = next(iter(schedule(scheduler, Job(folder="/srv")).files))
        assert f"`{first}`" in PAGE
    assert set(re.findall(r"^\| `([\w.]+)` \|", PAGE.split("## The files beside the page")[1], re.MULTILINE)) == set(
        files_of(view_of([], []))
    )
