"""Bars and grids: every row named and told in words, lengths in proportion, marks where they belong."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

import pytest

from cutproof.reports.charts import bars, grid
from cutproof.reports.charts.bars import LEFT, Bar, Bars
from cutproof.reports.charts.grid import Cell, Grid
from cutproof.reports.example_report import ExampleView, render_example

BARS = Bars(
    title="Held",
    caption="As <much> as there is.",
    bars=(Bar(name="one", value=2.0, text="2 GB"), Bar(name="two", value=1.0, text="1 GB"),
          Bar(name="none", value=0.0, text="nothing")),
)  # fmt: skip
GRID = Grid(
    title="Who wins",
    caption="By <rate>.",
    corner="each",
    columns=("10 MB/s", "30 MB/s"),
    rows=(("10 s", (Cell(text="first", marked=True), Cell(text="second"))),),
)


def texts(picture: str) -> list[str]:
    return [one.text or "" for one in Xml.fromstring(picture).iter("text")]


def test_each_bar_has_its_name_and_value_and_a_length_in_proportion() -> None:
    picture = bars.drawn(BARS).picture
    assert texts(picture) == ["one", "2 GB", "two", "1 GB", "none", "nothing"]
    shapes = [one.get("d", "") for one in Xml.fromstring(picture).iter("path") if one.get("class") == "columns"]
    lengths = [max(float(x) for x in re.findall(r"[ML](\S+) ", shape)) - LEFT for shape in shapes]
    assert lengths[0] > 0
    assert lengths == [lengths[0], lengths[0] / 2, 0]


@pytest.mark.parametrize("wrong", [(), (Bar(name="one", value=-1.0, text="less"),)])
def test_there_is_no_picture_of_nothing_or_less(wrong: tuple[Bar, ...]) -> None:
    with pytest.raises(ValueError, match="Held: no bar, or one that goes backwards"):
        bars.drawn(Bars(title="Held", caption="", bars=wrong))


def test_a_grid_names_rows_and_columns_and_marks_what_is_marked() -> None:
    picture = Xml.fromstring(grid.drawn(GRID).picture)
    assert [one.text for one in picture.iter("text")] == ["each", "10 MB/s", "30 MB/s", "10 s", "first", "second"]
    (marked,) = (one for one in picture.iter("rect") if one.get("class") == "marked")
    (first,) = (one for one in picture.iter("text") if one.text == "first")
    left, width = float(marked.get("x", 0)), float(marked.get("width", 0))
    assert left < float(first.get("x", 0)) < left + width


@pytest.mark.parametrize("rows", [(), (("10 s", (Cell(text="first"),)),)])
def test_a_grid_has_a_cell_for_each_column(rows: tuple[tuple[str, tuple[Cell, ...]], ...]) -> None:
    with pytest.raises(ValueError, match="Who wins: no row, or one that has not a cell for each column"):
        grid.drawn(Grid(title="Who wins", caption="", corner="", columns=GRID.columns, rows=rows))


def test_they_stand_on_the_page_in_their_order_and_are_reported_in_words() -> None:
    page = render_example(ExampleView(name="it", about="it", document="it", claims=(), charts=(GRID, BARS)))
    assert page.index("By &lt;rate&gt;.") < page.index("As &lt;much&gt; as there is.")
    assert Xml.fromstring(grid.drawn(GRID).picture).findtext("title") == "Who wins. By <rate>."
    assert Xml.fromstring(bars.drawn(BARS).picture).findtext("title") == "Held. As <much> as there is."
