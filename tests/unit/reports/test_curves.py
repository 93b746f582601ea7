"""Curves: every one with its name and dash, on its axes; and the page that shows them."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest

from cutproof.reports.charts.curves import FLOOR, LEFT, LIFT, WIDTH, Chart, Curve, drawn
from cutproof.reports.example_report import ExampleView, Figures, Statement, render_example


def _chart(*curves: Curve, logarithmic: bool = False) -> Chart:
    return Chart(title="Taken", caption="It <grows>.", across="MB/s", up="s", curves=curves, logarithmic=logarithmic)


ONE = Curve(name="one", points=((0.0, 0.0), (10.0, 5.0)))
TWO = Curve(name="two", points=((0.0, 10.0), (10.0, 10.0)))


def _lines(chart: Chart) -> list[Xml.Element]:
    return [one for one in Xml.fromstring(drawn(chart).picture).iter("path") if one.get("class") == "curve"]


def test_each_curve_has_a_dash_and_its_name() -> None:
    lines = _lines(_chart(ONE, TWO))
    assert len(lines) == 4  # two curves, two samples
    assert len({line.get("stroke-dasharray") for line in lines}) == 2
    texts = [one.text for one in Xml.fromstring(drawn(_chart(ONE, TWO)).picture).iter("text")]
    assert {"one", "two", "MB/s", "s"} <= set(texts)


def test_the_highest_is_at_the_top_and_nothing_at_the_floor() -> None:
    line = _lines(_chart(ONE, TWO))[0]
    assert line.get("d", "").startswith(f"M{LEFT} {FLOOR}L{WIDTH} ")
    assert _lines(_chart(ONE, TWO))[1].get("d") == f"M{LEFT} 14L{WIDTH} 14"


def test_a_logarithmic_axis_begins_at_the_least_positive_value_above_the_floor() -> None:
    decades = Curve(name="it", points=((1.0, 0.0), (10.0, 0.1), (100.0, 10.0)))
    line = _lines(_chart(decades, logarithmic=True))[0]
    middle = f"{(LEFT + WIDTH) / 2:.1f}".removesuffix(".0")
    assert line.get("d") == f"M{LEFT} {FLOOR - LIFT}L{middle} {FLOOR - LIFT}L{WIDTH} 14"


def test_a_chart_states_in_words_what_it_shows() -> None:
    assert Xml.fromstring(drawn(_chart(ONE)).picture).findtext("title") == "Taken. It <grows>."


def test_no_point_no_picture() -> None:
    with pytest.raises(ValueError, match="Taken: no curve has a point"):
        drawn(_chart(Curve(name="none", points=())))


VIEW = ExampleView(
    name="it",
    about="what <it> is",
    document="the text",
    claims=(
        Statement(text="grows", shown=True, evidence="3 s"),
        Statement(text="ends", shown=False, evidence="it goes on"),
    ),
    tables=(Figures(caption="by rate", head=("rate", "s"), rows=(("10 MB/s", "3.3"),)),),
    charts=(_chart(ONE),),
)


def test_the_page_shows_claims_tables_and_curves_and_is_escaped() -> None:
    page = render_example(VIEW)
    assert "1 of 2 claims of the text showed" in page
    assert "What &lt;it&gt; is" in page
    assert "<td>NO</td><td>it goes on</td>" in page
    assert '<th scope="row">10 MB/s</th><td class="n">3.3</td>' in page
    assert drawn(_chart(ONE)).picture in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_same_view_gives_the_same_page() -> None:
    assert render_example(VIEW) == render_example(VIEW)
