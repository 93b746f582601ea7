"""The same scenarios with several values of one parameter of a pipeline: what one does and the other does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...properties.model.verdict import INVARIANTS
from ...reports.model import Summary
from ...reports.variants import Difference, Variant

LINES = "scenarios.jsonl"


class _Word(msgspec.Struct):
    verdict: str


class _Line(msgspec.Struct):
    """What is read of a line of scenarios.jsonl."""

    type: str
    index: int = 0
    verdicts: dict[str, _Word] = {}


def variant_of(value: str, folder: Path, exit_code: int, summary: Summary) -> Variant:
    """The run of one value."""
    return Variant(
        value=value,
        folder=folder.name,
        exit_code=exit_code,
        scenarios=summary.scenarios,
        invariants={name: summary.invariants[name] for name in INVARIANTS if name in summary.invariants},
        violated=[f"{one.invariant}: {one.story}" for one in summary.counterexamples],
        replays=[one.replay for one in summary.counterexamples],
    )


def differences(folders: Mapping[str, Path]) -> list[Difference]:
    """By the verdicts that each run has written: the scenarios that violate an invariant with some of the values, and
    not with all of those with which they were run.  `folders` has the run's folder for each value."""
    verdicts = {value: _verdicts(folder) for value, folder in folders.items()}
    found = []
    for index in sorted({index for one in verdicts.values() for index in one}):
        for name in INVARIANTS:
            words = {value: one[index].get(name, "unknown") for value, one in verdicts.items() if index in one}
            violated = _with(words, "violated")
            if violated and len(violated) < len(words):
                held = _with(words, "holds")
                found.append(Difference(index=index, invariant=name, violated=violated, held=held))
    return found


def _with(words: Mapping[str, str], word: str) -> list[str]:
    return [value for value, said in words.items() if said == word]


def _verdicts(folder: Path) -> dict[int, dict[str, str]]:
    """By number of a scenario: each invariant's verdict in a word."""
    lines: Sequence[bytes] = (folder / LINES).read_bytes().splitlines()
    read = (msgspec.json.decode(line, type=_Line) for line in lines)
    return {
        one.index: {name: said.verdict for name, said in one.verdicts.items()} for one in read if one.type == "scenario"
    }
