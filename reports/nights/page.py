"""The page of the nights as one HTML file that needs no network, no script and no other file."""

from __future__ import annotations

from functools import cache
from itertools import count

from jinja2 import Template

from ..charts.trend import drawn
from ..render import environment
from .bar import bar, nights_a_step
from .view import NightsView, lead
from .words import GROUPS, STANDINGS, Standing, name_of, subject_of

UNFOLDED = 8
"""as many failures that need somebody are shown with their story; a click unfolds the others"""
IN_SIGHT, QUIET_IN_SIGHT = 12, 4
"""failures of a group that are shown, and of one that needs nobody; a click unfolds the others"""
RECENT = 30
"""nights that are shown; a click unfolds the earlier ones"""
SUBJECTS_IN_SIGHT = 2
"""subjects whose trends are shown; a click unfolds those of the others"""

QUIET: tuple[Standing, ...] = ("known", "fixed")
"""the standings that need nobody"""

IN_WORDS = {
    "x": "it failed in each run",
    "~": "it failed in some runs",
    "o": "it held, and what it needs was reached",
    "?": "it did not show, and what it needs was not reached",
    ".": "it was not replayed",
}
"""what the parts of a bar mean, by their letter in a life"""


def render_nights(view: NightsView) -> str:
    """The whole page; the same view gives the same text."""
    number = count()
    page = _template().render(
        view=view,
        urgent=view.urgent,
        lead=lead(view),
        last=view.last,
        groups=[
            (standing, *GROUPS[standing], lives, QUIET_IN_SIGHT if standing in QUIET else IN_SIGHT)
            for standing, lives in view.groups
        ],
        unfolded={life.failure.id for life in view.lives if life.standing not in QUIET and next(number) < UNFOLDED},
        step=nights_a_step(len(view.nights)),
        names={life.failure.id: name_of(life.failure) for life in view.lives},
        recent=view.nights[:RECENT],
        earlier=view.nights[RECENT:],
        trends=[(one, [(chart.title, drawn(chart)) for chart in one.charts]) for one in view.subjects],
        subjects_in_sight=SUBJECTS_IN_SIGHT,
        defects=drawn(view.defects) if view.defects else None,
        signs={standing: sign for standing, (sign, _) in STANDINGS.items()},
        standing_words={standing: word for standing, (_, word) in STANDINGS.items()},
        bar=bar,
        key=[(bar(letter * 3), words) for letter, words in IN_WORDS.items()],
        name=lambda life: name_of(life.failure),
        subject=lambda life: subject_of(life.failure.subject, life.failure.defect),
    )
    return page.encode("utf-8", "replace").decode("utf-8")


@cache
def _template() -> Template:
    return environment().get_template("nights.html.j2")
