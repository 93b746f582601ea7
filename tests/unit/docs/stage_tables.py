"""The transitions of a job's life as docs/protocol.md shows them.

Run as a script it writes them anew.
"""

from __future__ import annotations

import re
from typing import get_args, get_type_hints

from cutproof.reference_impl.core.lifecycle.job_life import MAY_FOLLOW
from cutproof.reference_impl.core.vocabulary.stages import Stage
from unit.docs.alignment_tables import PAGE

HEAD = "| Stage | Step | What may follow |\n|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")


def places() -> dict[type, tuple[type, type | None]]:
    """By each place in a job's life: the stage that it belongs to, and the step if the stage has steps."""
    found: dict[type, tuple[type, type | None]] = {}
    for stage in get_args(Stage):
        steps = get_args(get_type_hints(stage).get("step"))
        found |= {step: (stage, step) for step in steps} or {stage: (stage, None)}
    return found


def table() -> str:
    where = places()
    lines = []
    for place, after in MAY_FOLLOW.items():
        stage, step = where[place]
        names = ", ".join(f"`{one.__name__}`" for one in after)
        own = f"`{step.__name__}`" if step is not None else ""
        lines.append(f"| `{stage.__name__}` | {own} | {names or 'nothing'} |\n")
    return HEAD + "".join(lines)


def renewed(page: str) -> str:
    """The page with the table of the code in place of its own."""
    return TABLE.sub(lambda found: table(), page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
