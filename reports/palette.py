"""The report's colours: two sets, light and dark, by what they mean.

Colour is never the only sign: every status has its word, every kind of line
its own dash and its own ends.  Each text colour keeps at least 4.5:1, and each
line that carries meaning 3:1, against the ground it stands on (WCAG 2.2, AA).
"""

from __future__ import annotations

LIGHT: dict[str, str] = {
    "ground": "#fcfbf8",
    "raised": "#f4f1ea",
    "ink": "#1d1b18",
    "quiet": "#5f5a52",
    "rule": "#ddd7cb",
    "line": "#85807a",
    "bad": "#9c2318",
    "bad-ground": "#f9e9e4",
    "good": "#1f6140",
    "unsure": "#7a5000",
    "cut": "#1d4f8f",
    "barrier": "#6b3fa0",
    "heat": "#c8742a",
}

DARK: dict[str, str] = {
    "ground": "#171614",
    "raised": "#211f1c",
    "ink": "#ebe7df",
    "quiet": "#aaa397",
    "rule": "#3a3732",
    "line": "#8a8478",
    "bad": "#f08a7b",
    "bad-ground": "#3a1f1a",
    "good": "#82c8a0",
    "unsure": "#dcb264",
    "cut": "#86b4ec",
    "barrier": "#c0a0ea",
    "heat": "#a05a1c",
}

TEXT_ON: dict[str, tuple[str, ...]] = {
    "ground": ("ink", "quiet", "bad", "good", "unsure", "cut", "barrier"),
    "raised": ("ink", "quiet", "bad", "good", "unsure", "cut"),
    "bad-ground": ("ink", "bad"),
}
"""By ground, the colours that the report sets text in upon it."""

LINES_ON_GROUND = ("line", "quiet", "cut", "barrier", "bad")
"""The colours that the diagrams draw meaning in."""

HEAT_MOST = 0.45
"""The largest share of `heat` that is mixed into the ground of a heat map's cell."""
