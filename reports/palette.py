"""The report's colours, by meaning: a light and a dark set.

Colour is never the only sign: every status has a word, and every kind of line has its own
dash pattern and ends.  The contrast to the background is at least 4.5:1 for text, and 3:1
for a line with a meaning (WCAG 2.2, AA).
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
"""by background: the colours of text on it"""

LINES_ON_GROUND = ("line", "quiet", "cut", "barrier", "bad")
"""the colours of lines with a meaning in the diagrams"""

HEAT_MOST = 0.45
"""the largest share of `heat` in the background of a heat map's cell"""
