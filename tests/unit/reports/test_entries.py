from __future__ import annotations

from collections import Counter

import msgspec

from cutproof.properties.model.history import (
    CheckpointTriggered,
    CommandIssued,
    CoordinatorDown,
    CoordinatorUp,
    FaultFired,
    History,
    JobEnded,
    Timed,
    Transaction,
)
from cutproof.reports.diagrams.entries import COORDINATOR, FAULTS, entries_of
from cutproof.reports.words import with_task
from unit.reports import stories


def _history(**parts: object) -> History:
    return msgspec.structs.replace(History(subject="s", guarantee="exactly-once", sink="plain"), **parts)


def test_what_two_witnesses_report_happens_once() -> None:
    history = _history(
        journal=[
            CheckpointTriggered(order=1, at_us=10, checkpoint=1, job=1, attempt=1),
            FaultFired(order=3, at_us=20, fault=0, kind="kill-coordinator", phase="running"),
            CoordinatorDown(order=5, at_us=20, fault=0),
            CoordinatorUp(order=7, at_us=30),
            JobEnded(order=9, at_us=40, job=1, status="finished"),
        ],
        timeline=[
            Timed(order=2, at_us=10, what="checkpoint-triggered", task=COORDINATOR, checkpoint=1),
            Timed(order=4, at_us=20, what="fault-fired", task="", detail="the coordinator is killed"),
            Timed(order=6, at_us=20, what="killed", task=COORDINATOR),
            Timed(order=8, at_us=30, what="coordinator-up", task=COORDINATOR),
            Timed(order=10, at_us=40, what="job-ended", task=COORDINATOR, detail="finished"),
        ],
    )
    assert [(entry.what, entry.task) for entry in entries_of(history)] == [
        ("checkpoint-triggered", COORDINATOR),
        ("fault-fired", FAULTS),
        ("coordinator-down", COORDINATOR),
        ("coordinator-up", COORDINATOR),
        ("job-ended", COORDINATOR),
    ]


def test_snapshots_and_completions_are_reported_once_whoever_reports() -> None:
    history = stories.premature_snapshot()
    with_timeline = Counter(entry.what for entry in entries_of(history))
    without = Counter(entry.what for entry in entries_of(msgspec.structs.replace(history, timeline=[])))
    for what in ("snapshot-taken", "snapshot-persisted", "state-loaded", "checkpoint-completed"):
        assert with_timeline[what] == without[what] > 0


def test_the_store_reports_transactions() -> None:
    sealed = Transaction(name="t1", task="sink-0", attempt=1, begun=1, checkpoint=1, prepared=3, committed=5)
    empty = Transaction(name="t2", task="sink-0", attempt=1, begun=2, aborted=6)
    aborted = Transaction(name="t3", task="sink-0", attempt=1, begun=2, aborted=7, rows=[(1, 1, 1, 0)])
    text_shown = [with_task(entry) for entry in entries_of(_history(transactions=[sealed, empty, aborted]))]
    assert text_shown == [
        "sink-0 seals its transaction for checkpoint 1",
        "sink-0 has its transaction of checkpoint 1 committed",
        "sink-0 has its transaction aborted",
    ]


def test_commands_are_reported_with_what_was_asked() -> None:
    history = _history(journal=[CommandIssued(order=1, at_us=1, command=0, kind="stop-with-savepoint", drain=True)])
    assert [with_task(entry) for entry in entries_of(history)] == [
        "coordinator receives a command (stop-with-savepoint with drain)"
    ]


def test_the_history_is_left_as_it_was() -> None:
    history = stories.premature_snapshot()
    before = msgspec.json.encode(history)
    entries_of(history)
    assert msgspec.json.encode(history) == before
