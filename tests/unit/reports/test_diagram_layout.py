from __future__ import annotations

from collections import Counter

import msgspec

from cutproof.properties.model.history import FaultFired, History
from cutproof.reports.diagrams.diagram_layout import drawing_of
from cutproof.reports.diagrams.messages import MOST_OTHERS, MOST_RECORDS
from unit.reports import stories


def _without_timeline(history: History) -> History:
    return msgspec.structs.replace(history, timeline=[])


def test_lanes_run_from_the_faults_over_the_stream_to_the_store() -> None:
    drawing = drawing_of(stories.premature_snapshot())
    assert drawing.lanes == (
        "faults",
        "coordinator",
        "source-0",
        "source-1",
        "count-0",
        "sink-0",
        "snapshot store",
    )


def test_every_message_is_drawn_from_its_send_to_its_receipt() -> None:
    history = stories.premature_snapshot()
    counted = Counter(entry.what for entry in history.timeline)
    drawing = drawing_of(history)
    assert drawing.left_out == 0
    kinds = Counter(message.kind for message in drawing.messages)
    assert kinds["record"] == counted["record-sent"]
    assert kinds["barrier"] == counted["barrier-sent"]
    assert kinds["write"] == counted["snapshot-taken"]
    sources = 2
    assert kinds["control"] == counted["ack-sent"] + counted["completion-notified"] + sources
    for message in drawing.messages:
        if message.receipt:
            assert message.receipt.column > message.send.column
            assert message.receipt.entry.channel == message.send.entry.channel


def test_a_record_that_died_on_its_way_has_no_receipt() -> None:
    lost = [one for one in drawing_of(stories.premature_snapshot()).messages if one.receipt is None]
    assert [(one.kind, one.send.entry.channel) for one in lost] == [("record", "source-1>count-0")]


def test_columns_keep_the_order_of_events() -> None:
    points = drawing_of(stories.long_history()).points
    assert [one.column for one in points] == sorted(one.column for one in points)
    assert [one.entry.order for one in points] == sorted(one.entry.order for one in points)
    places = [(one.lane, one.column) for one in points]
    assert len(places) == len(set(places))


def test_the_record_that_crosses_the_cut_is_found_and_no_other() -> None:
    drawing = drawing_of(stories.premature_snapshot())
    crossing = [(one.send.entry.channel, one.crossing) for one in drawing.messages if one.crossing]
    assert crossing == [("source-0>count-0", "sent after the cut, applied before it")]
    assert [one.crossing for one in drawing_of(stories.long_history()).messages if one.crossing] == []


def test_a_record_left_in_flight_by_the_cut_is_distinguished() -> None:
    builder = stories.TimelineBuilder({"source-0": [], "count-0": ["source-0"]})
    builder.start()
    builder.send("source-0", "count-0")
    builder.snapshot("source-0", 1)
    builder.snapshot("count-0", 1)
    builder.apply("source-0", "count-0")
    (crossing,) = [one.crossing for one in drawing_of(builder.history).messages if one.crossing]
    assert crossing == "sent before the cut, applied after it"


def test_the_cut_goes_through_the_snapshots() -> None:
    drawing = drawing_of(stories.premature_snapshot())
    (cut,) = drawing.cuts
    assert (cut.checkpoint, cut.completed, drawing.main_cut) == (1, True, 1)
    taken = {(one.lane, one.column) for one in drawing.points if one.entry.what == "snapshot-taken"}
    assert set(cut.points) == taken
    assert len(taken) == 4


def test_the_story_names_its_cut_and_the_newest_stands_in() -> None:
    history = stories.long_history()
    assert drawing_of(history, checkpoint=2).main_cut == 2
    assert drawing_of(history).main_cut == 5
    assert drawing_of(history, checkpoint=99).main_cut == 5


def test_attempts_are_lives_of_their_own() -> None:
    drawing = drawing_of(stories.premature_snapshot())
    count = drawing.lanes.index("count-0")
    first, second = [one for one in drawing.segments if one.lane == count]
    assert (first.attempt, first.how, second.attempt, second.how) == (1, "killed", 2, "alive")
    assert first.last <= second.first


def test_what_is_too_much_to_read_is_left_out_and_counted() -> None:
    history = stories.long_history(400, 20)
    drawing = drawing_of(history, checkpoint=10)
    kinds = Counter(message.kind == "record" for message in drawing.messages)
    assert kinds[True] == MOST_RECORDS
    assert kinds[False] == MOST_OTHERS
    sent = sum(entry.what in ("record-sent", "barrier-sent", "ack-sent") for entry in history.timeline)
    assert drawing.left_out > sent - MOST_RECORDS - MOST_OTHERS
    assert 10 in {cut.checkpoint for cut in drawing.cuts}


def test_without_a_timeline_the_snapshots_and_failures_are_drawn() -> None:
    drawing = drawing_of(_without_timeline(stories.premature_snapshot()))
    assert drawing.coarse
    assert [cut.checkpoint for cut in drawing.cuts] == [1]
    what = Counter(point.entry.what for point in drawing.points)
    assert what["snapshot-taken"] == 4
    assert what["fault-fired"] == 1
    assert what["failed"] == 1
    assert {message.kind for message in drawing.messages} == {"write", "control"} - {"control"}


def _as_arrivals(history: History) -> History:
    """The same run, of which the time line tells elements and arrivals only, as a simulator's does."""
    renamed = {"ack-received": "ack-arrived", "completion-notified": "complete-received"}
    elements = ("record-sent", "record-applied", "barrier-sent", "barrier-received", "killed", *renamed)
    timeline = [
        msgspec.structs.replace(entry, what=renamed.get(entry.what, entry.what))
        for entry in history.timeline
        if entry.what in elements
    ]
    return msgspec.structs.replace(history, timeline=timeline)


def test_what_the_timeline_leaves_out_the_other_witnesses_report() -> None:
    whole, lean = drawing_of(stories.premature_snapshot()), drawing_of(_as_arrivals(stories.premature_snapshot()))
    assert not lean.coarse
    assert lean.cuts
    assert [len(cut.points) for cut in lean.cuts] == [len(cut.points) for cut in whole.cuts]
    counted = ("record", "barrier", "write")
    for kind in counted:
        assert sum(one.kind == kind for one in lean.messages) == sum(one.kind == kind for one in whole.messages)
    acks = [one for one in lean.messages if one.send.entry.what == "ack-sent"]
    assert [one.send.entry.task for one in acks] == ["source-0", "source-1", "count-0", "sink-0"]
    assert all(one.receipt and one.receipt.entry.peer == one.send.entry.task for one in acks)
    assert [one.crossing for one in lean.messages if one.crossing] == ["sent after the cut, applied before it"]


def test_a_history_of_nothing_is_a_picture_of_nothing() -> None:
    drawing = drawing_of(History(subject="simulated", guarantee="exactly-once", sink="plain"))
    assert drawing.lanes == ("coordinator",)
    assert drawing.messages == ()
    assert drawing.main_cut is None


def test_a_channel_that_is_hit_is_named_by_the_fault() -> None:
    history = stories.premature_snapshot()
    history.journal.append(
        FaultFired(
            order=30, at_us=3_000, fault=1, kind="cut-channel", phase="aligning", detail="source-0>count-0 breaks"
        )
    )
    hit = [one.entry.channel for one in drawing_of(history).points if one.entry.peer == "cut-channel"]
    assert hit == ["source-0>count-0"]
