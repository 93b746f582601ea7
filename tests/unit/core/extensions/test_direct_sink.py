"""Plain and idempotent sinks; messages repeated to any sink."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.extensions.sinks.direct_sink import Identity
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import Persist, SnapshotTaken
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.transactions import (
    Append,
    Denied,
    Fence,
    Flush,
    Upsert,
)
from unit.core.machines import (
    abort,
    ack,
    answered,
    barrier,
    complete,
    deliver,
    deploy,
    direct,
    finished,
    only,
    reason,
    row,
    running,
    take,
    terminate,
    transactional,
    up,
)
from unit.core.sinks import (
    BY,
    asked,
    give,
    number,
)

# -- direct sinks ------------------------------------------------------------------------------------------------


def test_a_plain_sink_appends() -> None:
    sink = direct()
    assert asked(deliver(sink, deploy())) == [Fence(**BY)]
    assert answered(sink, 1) == running("sink-0")
    assert asked(take(sink, row(1, 2, tag=3, tag2=4))) == [Append(**BY, row=(1, 2, 3, 4))]


@pytest.mark.parametrize(("identity", "wanted"), [(Identity.key, (1,)), (Identity.row, (1, 2, 3, 4))])
def test_an_idempotent_sink_replaces_by_identity(identity: Identity, wanted: tuple[int, ...]) -> None:
    effects = take(up(direct(identity)), row(1, 2, tag=3, tag2=4))
    assert asked(effects) == [Upsert(**BY, identity=wanted, row=(1, 2, 3, 4))]


def test_a_direct_sink_acknowledges_once_all_its_rows_are_in() -> None:
    sink = up(direct())
    give(sink, 1)
    effects = take(sink, barrier(5))
    assert effects[0] == SnapshotTaken(5)
    assert asked(effects) == [Flush(**BY)]
    assert len(effects) == 2
    persist = only(Persist, answered(sink, number(effects, Flush)))
    assert persist.then == (ack("sink-0", 5),)
    assert persist.snapshot.materialise() == TaskState()


def test_a_direct_sink_has_nothing_to_commit() -> None:
    assert deliver(up(direct()), complete(5)) == []


def test_a_direct_sink_finishes_when_its_rows_are_in() -> None:
    sink = up(direct())
    give(sink, 1)
    flush = deliver(sink, terminate(5))
    assert asked(flush) == [Flush(**BY)]
    assert deliver(sink, terminate(5)) == []
    assert answered(sink, number(flush, Flush)) == finished("sink-0")
    assert deliver(sink, terminate(5)) == finished("sink-0")


def test_a_direct_sink_asked_to_finish_amid_a_snapshot_does_both() -> None:
    sink = up(direct())
    snapshot = take(sink, barrier(5))
    last = deliver(sink, terminate(5))
    assert [type(effect) for effect in answered(sink, number(snapshot, Flush))] == [Persist]
    assert answered(sink, number(last, Flush)) == finished("sink-0")


def test_a_direct_sinks_refused_row_fails_it() -> None:
    sink = up(direct())
    assert "fenced" in reason(answered(sink, number(give(sink, 1), Append), Denied(reason="fenced")))


# -- repeated messages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sink", [transactional(), direct()], ids=["transactional", "plain"])
def test_messages_repeated_change_nothing(sink: InputTask) -> None:
    up(sink)
    give(sink, 1)
    before = sink.current_snapshot().materialise()
    for message in (deploy(), deploy(), complete(1), complete(1), abort(1), abort(1)):
        assert deliver(sink, message) == []
    assert sink.current_snapshot().materialise() == before
