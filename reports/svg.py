"""Elements of SVG as text, each value escaped."""

from __future__ import annotations

from html import escape

Attribute = str | int | float


def element(name: str, *content: str, **attributes: Attribute) -> str:
    """One element; `content` is markup, and attribute names have `_` for `-`."""
    text = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{text}>{''.join(content)}</{name}>" if content else f"<{name}{text}/>"


def title(text: str) -> str:
    """The title of an element: its meaning in words."""
    return element("title", escape(text))


def label(text: str, x: float, y: float, **attributes: Attribute) -> str:
    """A line of text at a position."""
    return element("text", escape(text), x=x, y=y, **attributes)


def path(points: list[tuple[float, float]]) -> str:
    """The `d` of straight lines through points."""
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _value(value: Attribute) -> str:
    return escape(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
