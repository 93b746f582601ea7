"""The transitions of barrier alignment as docs/protocol.md shows them, one table a state.

Run as a script it writes them anew.
"""

from __future__ import annotations

import re
from pathlib import Path

from cutproof.reference_impl.core.protocol.barrier_alignment import (
    TABLE,
    AbortCame,
    Aligning,
    BarrierCame,
    CancelCame,
    Counting,
    Flowing,
    OvertakingCame,
    PartitionEnded,
    TriggerCame,
    WaitedEnough,
)

PAGE = Path(__file__).parents[3] / "docs" / "protocol.md"
STATES = (Flowing, Aligning, Counting)
RELATIONS = ("new", "current", "aborted", "obsolete")
SIGNALS = {
    BarrierCame: "barrier",
    OvertakingCame: "barrier that overtakes",
    WaitedEnough: "alignment timeout",
    CancelCame: "cancel barrier",
    AbortCame: "abort",
    TriggerCame: "trigger",
}
TABLES = re.compile(r"^\| (?:\w+ \| new|What comes \| Flowing) \|.*\n(?:\|.*\n)+", flags=re.MULTILINE)


def table_of(state: type) -> str:
    """What a task in this state does with each signal, by where its checkpoint stands."""
    relations = [one for one in RELATIONS if any((state, signal, one) in TABLE for signal in SIGNALS)]
    lines = [f"| {state.__name__} | " + " | ".join(relations) + " |", "|---" * (len(relations) + 1) + "|"]
    for signal, words in SIGNALS.items():
        cells = [_move(state, signal, relation) for relation in relations]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def table_of_ends() -> str:
    """What the end of a channel does in each state."""
    cells = " | ".join(_move(state, PartitionEnded, None) for state in STATES)
    heads = " | ".join(state.__name__ for state in STATES)
    return f"| What comes | {heads} |\n|---|---|---|---|\n| end of a channel | {cells} |\n"


def tables() -> list[str]:
    return [*(table_of(state) for state in STATES), table_of_ends()]


def renewed(page: str) -> str:
    """The page with the tables that it has replaced, in order, by those of the code."""
    fresh = iter(tables())
    return TABLES.sub(lambda found: next(fresh), page)


def moves() -> set[str]:
    """The name of every move of the table."""
    return {move.__name__ for move in TABLE.values()}


def _move(state: type, signal: type, relation: str | None) -> str:
    move = TABLE.get((state, signal, relation))
    return f"`{move.__name__}`" if move is not None else ""


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
