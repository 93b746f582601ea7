"""The page that sets variants of one pipeline side by side: the same scenarios, each with another version, say."""

from __future__ import annotations

from functools import cache

import msgspec
from jinja2 import Template

from ..properties.model.verdict import INVARIANTS, Reason
from .model import InvariantCounts, ScenarioCounts
from .render import environment
from .words import in_a_row, plural

VARIANTS_FORMAT = "cutproof-variants/1"
HELD, VIOLATED = 0, 1
"""exit codes"""
OUTCOMES = {"violated": "violated with", "short": "not shown with", "held": "held with"}
"""the worst first"""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A run with one value of the parameter."""

    value: str
    folder: str
    """the run's own folder, below that of all variants"""
    exit_code: int
    scenarios: ScenarioCounts
    invariants: dict[str, InvariantCounts] = {}
    violated: list[str] = []
    """the invariants that are violated, each with what was found first, in one sentence"""
    replays: list[str] = []
    """for each counterexample, the command that runs it again"""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that violates an invariant with some values of the parameter, and not with others."""

    index: int
    """its number among the scenarios of the seed"""
    invariant: str
    violated: list[str]
    held: list[str]
    """the values with which it held; with values that are in neither list it was unknown, or was not run"""


class Variants(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of all values, with the same seed."""

    format: str = VARIANTS_FORMAT
    version: str = ""
    """of cutproof"""
    pipeline: str
    parameter: str
    seed: int
    variants: list[Variant]
    differences: list[Difference] = []


class Cell(msgspec.Struct, frozen=True):
    """What a table says of one invariant with one value: a word, and a mark for its colour."""

    word: str
    mark: str


def outcome(one: Variant) -> str:
    """held, violated, or short: nothing was violated, and not all was shown that had to be."""
    if one.exit_code == VIOLATED:
        return "violated"
    return "held" if one.exit_code == HELD and one.scenarios.held else "short"


def headline(found: Variants) -> str:
    """What one value violates and another does not, in one sentence."""
    by_outcome = {word: [one.value for one in found.variants if outcome(one) == word] for word in OUTCOMES}
    said = [f"{OUTCOMES[word]} {in_a_row(values)}" for word, values in by_outcome.items() if values]
    return f"{found.parameter}: {'; '.join(said)}"


def worst(found: Variants) -> str:
    """The outcome of all: held only if each value held."""
    words = {outcome(one) for one in found.variants}
    return next(word for word in OUTCOMES if word in words)


def table(found: Variants) -> list[tuple[str, list[Cell]]]:
    """For each invariant that was exercised or violated with any value: how often, with each value."""
    lines = []
    for name in INVARIANTS:
        counts = [one.invariants.get(name, InvariantCounts()) for one in found.variants]
        if any(one.holds or one.violated for one in counts):
            lines.append((name, [_cell(one) for one in counts]))
    return lines


def _cell(counts: InvariantCounts) -> Cell:
    if counts.violated:
        return Cell(f"violated in {counts.violated} of {counts.holds + counts.violated}", "violated")
    return Cell(f"holds in {counts.holds}", "held") if counts.holds else Cell(Reason.NOT_EXERCISED, "unknown")


def in_words(one: Difference) -> str:
    """A difference in one sentence."""
    return f"scenario {one.index}: {one.invariant} is violated with {in_a_row(one.violated)}" + (
        f", and holds with {in_a_row(one.held)}" if one.held else ""
    )


def render_variants(found: Variants) -> str:
    """The whole page."""
    page = _template().render(
        found=found,
        headline=headline(found),
        outcome=worst(found),
        lines=table(found),
        differences=[in_words(one) for one in found.differences],
        ran=[plural(one.scenarios.run, "scenario") for one in found.variants],
    )
    return page.encode("utf-8", "replace").decode("utf-8")


@cache
def _template() -> Template:
    return environment().get_template("variants.html.j2")
