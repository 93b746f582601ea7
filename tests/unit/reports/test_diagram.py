from __future__ import annotations

from xml.etree import ElementTree as Xml

import msgspec

from cutproof.properties.model.history import FaultFired
from cutproof.reports.diagrams.diagram import Diagram, diagram_of
from unit.reports import stories

SVG = "{http://www.w3.org/2000/svg}"


def _drawn(diagram: Diagram) -> Xml.Element:
    return Xml.fromstring(diagram.picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def _of_class(picture: Xml.Element, name: str) -> list[Xml.Element]:
    return [one for one in picture.iter(f"{SVG}g") if name in one.get("class", "").split()]


def test_each_message_is_in_the_picture_and_in_words() -> None:
    view = stories.counterexample()
    diagram = diagram_of(view)
    assert diagram
    assert view.history
    picture = _drawn(diagram)
    sent = [entry for entry in view.history.timeline if entry.what == "record-sent"]
    barriers = [entry for entry in view.history.timeline if entry.what == "barrier-sent"]
    assert len(_of_class(picture, "record")) == len(sent)
    assert len(_of_class(picture, "barrier")) == len(barriers)
    assert len(_of_class(picture, "crossing")) == 1
    text_shown = [what for _, _, what in diagram.words]
    assert sum(what.startswith("sends record") for what in text_shown) == len(sent)
    assert [who for _, who, what in diagram.words if "stored durably" in what] == [
        "source-0",
        "source-1",
        "count-0",
        "sink-0",
    ]
    assert "applies record 0:1 from source-0: sent after the cut, applied before it" in text_shown


def test_kinds_differ_in_shape_and_not_in_colour_alone() -> None:
    picture = _drawn(_diagram())
    assert all(one.find(f"{SVG}rect") is not None for one in _of_class(picture, "barrier"))
    assert all(one.find(f"{SVG}rect") is None for one in _of_class(picture, "record"))
    assert len(_of_class(picture, "killed")) == 1
    assert len(_of_class(picture, "commit-answered")) == 1


def test_it_has_a_title_and_a_description() -> None:
    picture = _drawn(_diagram())
    assert picture.get("role") == "img"
    assert picture.findtext(f"{SVG}title") == "Space-time diagram of A01-7f3a"
    assert "Record 0:1 on source-0>count-0 was sent after the cut" in (picture.findtext(f"{SVG}desc") or "")


def test_everything_stays_inside_the_picture() -> None:
    diagram = _diagram()
    picture = _drawn(diagram)
    height = float(picture.get("height", "0"))
    for circle in picture.iter(f"{SVG}circle"):
        assert 0 <= float(circle.get("cx", "-1")) <= diagram.width
        assert 0 <= float(circle.get("cy", "-1")) <= height


def test_hostile_names_are_text() -> None:
    history = stories.premature_snapshot()
    history.journal.append(
        FaultFired(order=20, at_us=2_000, fault=1, kind='<script>"', phase="running", detail="<img src=x>")
    )
    for entry in history.timeline:
        entry.detail = "</svg><script>alert(1)</script>"
    diagram = diagram_of(stories.counterexample("<b>", history))
    assert diagram
    assert "<script" not in diagram.picture
    assert "<img" not in diagram.picture
    assert _drawn(diagram) is not None


def test_no_history_no_diagram() -> None:
    assert diagram_of(msgspec.structs.replace(stories.counterexample(), history=None)) is None


def _diagram() -> Diagram:
    diagram = diagram_of(stories.counterexample())
    assert diagram
    return diagram
