"""A grid of words as inline SVG: rows and columns have names, each cell has a text, and some cells are marked."""

from __future__ import annotations

from html import escape

from ..model import Value
from ..svg import element, label
from .plots import Plot

LEFT, COLUMN, ROW, TOP = 166, 112, 22, 22


class Cell(Value, kw_only=True):
    """The text of a cell; a marked cell also has another background."""

    text: str
    marked: bool = False


class Grid(Value, kw_only=True):
    """Rows of cells, each under its column."""

    title: str
    caption: str
    corner: str
    """the heading of the rows' names"""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def drawn(grid: Grid) -> Plot:
    """The picture of a grid; raises ValueError if a row does not have a cell for each column."""
    if not grid.rows or any(len(cells) != len(grid.columns) for _, cells in grid.rows):
        raise ValueError(f"{grid.title}: no row, or one that has not a cell for each column")
    parts = [label(grid.corner, LEFT - 8, TOP - 8, text_anchor="end")]
    parts += [label(name, LEFT + COLUMN * at + 6, TOP - 8) for at, name in enumerate(grid.columns)]
    for number, (name, cells) in enumerate(grid.rows):
        y = TOP + ROW * number
        parts.append(label(name, LEFT - 8, y + 14, text_anchor="end"))
        for at, cell in enumerate(cells):
            parts += _cell(cell, LEFT + COLUMN * at, y)
    picture = element(
        "svg",
        element("title", escape(f"{grid.title}. {grid.caption}")),
        *parts,
        viewBox=f"0 0 {LEFT + COLUMN * len(grid.columns)} {TOP + ROW * len(grid.rows) + 2}",
        class_="plot drawing grid",
        role="img",
    )
    return Plot(picture=picture, caption=grid.caption)


def _cell(cell: Cell, x: int, y: int) -> list[str]:
    ground = element(
        "rect", class_="marked" if cell.marked else "plain-cell", x=x, y=y, width=COLUMN - 2, height=ROW - 2
    )
    return [ground, label(cell.text, x + 6, y + 14, class_="cell-text")]
