from __future__ import annotations

from xml.etree import ElementTree as Xml

from cutproof.reports.charts.plots import BINS, histogram


def test_no_sample_no_plot() -> None:
    assert histogram([], "checkpoint") is None


def test_a_plot_states_in_words_what_it_shows() -> None:
    plot = histogram([1_000, 2_000, 3_000, 9_000], "recovery")
    assert plot
    assert plot.caption == "4 recoveries: half took up to 2.5 ms, 95 % up to 9.0 ms, the longest 9.0 ms."
    picture = Xml.fromstring(plot.picture)
    assert picture.get("role") == "img"
    assert picture.findtext("title") == plot.caption


def test_every_sample_stands_in_a_column() -> None:
    plot = histogram(list(range(BINS)), "checkpoint")
    assert plot
    columns = next(one for one in Xml.fromstring(plot.picture).iter("path") if one.get("class") == "columns")
    assert columns.get("d", "").count("M") == BINS


def test_equal_samples_are_one_column() -> None:
    plot = histogram([5, 5, 5], "checkpoint")
    assert plot
    assert "half took up to 5 µs" in plot.caption
