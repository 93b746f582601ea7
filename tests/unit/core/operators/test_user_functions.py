"""A user's function in the engine: its rows, its timers, its state, and state that it is not given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from cutproof.reference_impl.core.decisions.snapshots.redistribution import Redistribution, Share
from cutproof.reference_impl.core.extensions.rescaling.rescale import redistributed
from cutproof.reference_impl.core.job.topology import key_group, owner
from cutproof.reference_impl.core.operators.user_functions import (
    Context,
    Declared,
    Function,
    Out,
    Place,
    Taken,
    UserOperator,
    items_of,
    list_of,
    map_of,
    union_of,
    value_of,
)
from cutproof.reference_impl.core.operators.windows import PANE
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.events import Arrived, Received
from cutproof.reference_impl.core.vocabulary.formats import decode, encode
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Deploy, Piece, Record, Watermark
from cutproof.reference_impl.core.vocabulary.state import TaskState
from unit.core import machines
from unit.core.machines import opened

END = 1 << 62


class Waits(Function):
    """Emits what it has gathered ten after a key's latest record, and what is left at the end."""

    timed = True
    states: ClassVar = {"seen": list_of(int), "last": value_of(int)}

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        last = context.get("last")
        if last is not None:
            context.drop_timer(last + 10)
        context.put("seen", [*context.get("seen"), record.value])
        context.put("last", record.time)
        context.set_timer(record.time + 10)
        yield from ()

    def on_timer(self, time: int, context: Context) -> Iterator[Out]:
        yield sum(context.get("seen")), time, context.watermark
        context.clear("seen")
        if context.get("last") == 0:
            context.put("last", 1)
            context.set_timer(time)

    def on_end(self, context: Context) -> Iterator[Out]:
        yield len(context.get("seen")), -1, 0


class Keeps(Function):
    owns_state = True

    def __init__(self) -> None:
        self.kept: dict[int | None, list[int]] = {}

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        self.kept.setdefault(record.key, []).append(record.tag)
        yield len(self.kept[record.key]), record.tag, record.tag2

    def snapshot(self) -> Mapping[int | None, Any]:
        return self.kept

    def restore(self, state: Mapping[int | None, Any]) -> None:
        self.kept = dict(state)


def operator(function: type[Function]) -> UserOperator:
    return opened(UserOperator("mine", function))


def at(key: int | None, time: int, value: int = 1, offset: int = 0) -> Record:
    return Record(key, value, 7, 0, offset << 8, time)


def take(worker: UserOperator, *records: Record) -> list[Record]:
    return [row for record in records for row in worker.apply(record, 0)]


def advance(worker: UserOperator, time: int) -> list[Record]:
    return list(worker.on_watermark(time, worker.timers.take(time)))


def state_of(worker: UserOperator, watermark: int = 0) -> TaskState:
    """As it is written to a store, and read again."""
    state = TaskState(watermark=watermark, timers=worker.timers.pending())
    state.held, state.declared = [*worker.held(), *worker.state.snapshot().held()], worker.declared()
    state.listed, state.shared = worker.listed(), worker.shared()
    return decode(encode(state))


def test_a_timer_yields_rows_of_its_key_once_the_watermark_is_there() -> None:
    worker = operator(Waits)
    assert take(worker, at(1, 5, value=3), at(2, 6, value=4), at(1, 8, value=5, offset=9)) == []
    assert advance(worker, 15) == []
    assert advance(worker, 17) == [Record(2, 4, 16, 17, PANE, 17)]
    assert advance(worker, 18) == [Record(1, 8, 18, 18, 9 << 8 | PANE, 18)]
    assert worker.timers.pending() == []


def test_a_timer_may_set_another_that_is_due_already() -> None:
    worker = operator(Waits)
    take(worker, at(1, 0, value=3))
    assert [(row.value, row.tag) for row in advance(worker, 12)] == [(3, 10), (0, 10)]


def test_the_end_comes_once_after_the_timers_for_every_key() -> None:
    worker = operator(Waits)
    take(worker, at(None, 5), at(3, 5), at(-1, 5))
    assert [(row.key, row.value, row.tag) for row in advance(worker, END)] == [
        *((None, 1, 15), (-1, 1, 15), (3, 1, 15)),
        *((None, 0, -1), (-1, 0, -1), (3, 0, -1)),
    ]
    assert advance(worker, END) == []


def test_a_restored_function_goes_on_as_if_nothing_had_happened() -> None:
    through, first, second = operator(Waits), operator(Waits), operator(Waits)
    for worker in (through, first):
        take(worker, at(1, 5, value=3), at(None, 6, value=4))
    take(second, at(8, 1))
    second.resume(state_of(first))
    for worker in (through, second):
        take(worker, at(1, 7, value=5, offset=4))
    assert advance(second, END) == advance(through, END)


def test_state_of_its_own_is_handed_over_and_taken_back() -> None:
    first, second = operator(Keeps), operator(Keeps)
    assert [row.value for row in take(first, at(1, 0), at(None, 0), at(1, 0))] == [1, 1, 2]
    state = state_of(first)
    take(first, at(1, 0))  # what was handed over does not change any more
    second.resume(state)
    assert [row.value for row in take(second, at(1, 0), at(None, 0))] == [3, 2]


def changed(**states: Declared) -> type[Function]:
    declared = states

    class Changed(Waits):
        states: ClassVar = declared

    return Changed


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (changed(last=value_of(int)), "the snapshot of mine holds the state 'seen', list of int, which it does not"),
        (changed(seen=list_of(str), last=value_of(int)), "'seen', list of int; it declares list of str now"),
        (changed(seen=map_of(int), last=value_of(int)), "'seen', list of int; it declares map of int now"),
        (Keeps, "holds the state 'last', value of int, which it does not declare"),  # the first by name
    ],
)
def test_a_state_that_is_not_declared_or_not_so_is_refused_by_name(function: type[Function], words: str) -> None:
    worker = operator(Waits)
    take(worker, at(1, 5))
    with pytest.raises(Refused, match=words):
        operator(function).resume(state_of(worker))


def test_another_parallelism_redistributes_what_is_held_by_key() -> None:
    first = operator(Waits)
    for number, key in enumerate((None, 1, 2, 3, 4, 5, 6, 7)):
        take(first, at(key, number, value=number + 1))
    piece = Piece(gates=(0,))
    rows = []
    for subtask in range(2):
        share = Share(subtask=subtask, parallelism=2, key_groups=16, gates=(0,))
        second = operator(Waits)
        second.resume(redistributed([(piece, state_of(first))], share, Redistribution()))
        part = advance(second, END)
        assert {owner(key_group(row.key, 16), 16, 2) for row in part} == {subtask}
        rows += part
    assert Counter(rows) == Counter(advance(first, END))


def test_a_task_whose_function_changed_fails_with_the_reason() -> None:
    worker = operator(Waits)
    take(worker, at(1, 5))
    task = machines.operator(operator(changed(last=value_of(int))))
    effects = task.step(
        Received(Deploy(job=1, attempt=machines.ATTEMPT, checkpoint=CheckpointId(4), state=state_of(worker)))
    )
    assert machines.reason(effects) == (
        "op-0 cannot go on from its snapshot: the snapshot of mine holds the state 'seen', list of int, "
        "which it does not declare"
    )
    assert not task.has_started


def test_a_timer_that_raises_fails_its_task() -> None:
    class Raises(Waits):
        def on_timer(self, time: int, context: Context) -> Iterator[Out]:
            raise ValueError("no such thing")

    task = machines.up(machines.operator(operator(Raises)))
    machines.take(task, at(1, 5))
    effects = task.step(Arrived(0, Watermark(15)))
    assert machines.reason(effects[1:]) == "the user function mine of op-0 raised ValueError: no such thing"


def test_own_state_is_refused_by_a_function_that_has_none() -> None:
    with pytest.raises(Refused, match="holds state of its own, which it does not declare"):
        operator(Waits).resume(state_of(operator(Keeps)))


def test_a_state_that_is_new_begins_empty() -> None:
    worker = operator(changed(seen=list_of(int), last=value_of(int), more=map_of(str)))
    worker.resume(state_of(operator(Waits)))
    assert Context(worker, 1).get("more") == {}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("other", 1, "mine has no state 'other'; it declares seen, last"),
        ("last", "text", "mine declares 'last' as value of int, and puts 'text' into it"),
        ("last", True, "as value of int, and puts True into it"),
        ("seen", [1, None], "as list of int"),
        ("seen", 3, "as list of int"),
    ],
)
def test_nothing_but_what_is_declared_can_be_put(name: str, value: object, words: str) -> None:
    with pytest.raises(Refused, match=words):
        Context(operator(Waits), 1).put(name, value)


def test_what_is_got_is_a_copy() -> None:
    context = Context(operator(Waits), 1)
    context.put("seen", [1])
    context.get("seen").append(2)
    assert context.get("seen") == [1]


def test_a_function_that_is_not_timed_has_no_timers_and_no_end() -> None:
    worker = operator(Keeps)
    with pytest.raises(Refused, match="mine sets a timer, and is not declared as `timed`"):
        Context(worker, 1).set_timer(4)
    take(worker, at(1, 0))
    assert advance(worker, END) == []


def test_a_state_is_of_a_plain_type() -> None:
    with pytest.raises(Refused, match="a state can be of int, str, bool, float, not of dict"):
        list_of(dict)


# -- of no key ---------------------------------------------------------------------------------------------------


class Crowd(Function):
    """Remembers values in a list, and whose they are in a union; lets the list out at the end."""

    timed = True
    states: ClassVar = {"values": items_of(int), "keys": union_of(int)}

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        context.put("values", [*context.get("values"), record.value])
        context.put("keys", sorted({*context.get("keys"), record.key}))
        yield len(context.get("keys")), 0, 0

    def on_close(self, context: Context) -> Iterator[tuple[int | None, int | None, int, int]]:
        yield from ((None, value, 0, 0) for value in context.get("values"))

    def keeps(self, name: str, item: Any, place: Place) -> bool:
        return place.owns(item) and name == "keys"


def crowds(wide: int) -> list[UserOperator]:
    found = [operator(Crowd) for _ in range(wide)]
    for subtask, one in enumerate(found):
        one.place = Place(subtask, wide, 16)
    return found


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (7, 2)])
def test_what_is_of_no_key_is_redistributed_and_kept_by_the_functions_rule(before: int, after: int) -> None:
    old, new = crowds(before), crowds(after)
    for number in range(24):
        owned = next(one for one in old if one.place.owns(number % 12))
        take(owned, at(number % 12, number, value=number))
    pieces = [(Piece(gates=(0,)), state_of(one)) for one in old]
    for subtask, one in enumerate(new):
        share = Share(subtask=subtask, parallelism=after, key_groups=16, gates=(0,))
        state = redistributed(pieces, share, Redistribution())
        state.shared = [item for item in state.shared if one.keeps(item)]
        one.resume(state)
    kept = [Context(one, None).get("keys") for one in new]
    assert sorted(key for keys in kept for key in keys) == list(range(12))
    assert all(one.place.owns(key) for one, keys in zip(new, kept, strict=True) for key in keys)
    assert sorted(row.value or 0 for one in new for row in advance(one, END)) == list(range(24))


def test_a_union_without_a_rule_is_refused() -> None:
    class Lawless(Crowd):
        keeps = Function.keeps

    with pytest.raises(Refused, match="mine declares a union, and no rule by which it keeps items of it"):
        operator(Lawless)


def test_a_rule_that_raises_is_reported_by_name() -> None:
    class Raises(Crowd):
        def keeps(self, name: str, item: Any, place: Place) -> bool:
            raise KeyError(item)

    with pytest.raises(Refused, match="`keeps` of mine raised KeyError: 3"):
        operator(Raises).keeps(("keys", "3"))


def test_what_is_of_no_key_is_put_and_cleared_as_a_list_of_its_type() -> None:
    crowd = operator(Crowd)
    context = Context(crowd, 1)
    assert context.get("values") == []
    context.put("values", [1, 2])
    assert Context(crowd, 2).get("values") == [1, 2], "whatever the key"
    with pytest.raises(Refused, match="mine declares 'keys' as union of int, and puts 'text' into it"):
        context.put("keys", "text")
    context.clear("values")
    assert context.get("values") == []


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"values": items_of(int), "keys": list_of(int)}, "'keys', union of int; it declares list of int now"),
        ({"values": items_of(int)}, "'keys', union of int, which it does not declare"),
        ({"values": items_of(str), "keys": union_of(int)}, "'values', items of int; it declares items of str now"),
    ],
)
def test_items_that_are_declared_otherwise_now_are_refused_by_name(states: dict[str, Declared], words: str) -> None:
    declared = states

    class Changed(Crowd):
        states: ClassVar = declared

    worker, other = operator(Crowd), operator(Changed)
    take(worker, at(1, 5))
    state = state_of(worker)
    assert all(other.keeps(item) for item in state.shared), "who refuses says what was held"
    with pytest.raises(Refused, match=words):
        other.resume(state)


def test_an_item_of_a_union_is_kept_by_a_rule_or_refused() -> None:
    """Who asks the base for a rule is told that there is none, as whoever declares a union without one is."""

    class Unruled(Keeps):
        def keeps(self, name: str, item: Any, place: Place) -> bool:
            return super().keeps(name, item, place)

    with pytest.raises(Refused, match=r"Unruled has no rule by which it keeps items of the union 'turns' \(`keeps`\)"):
        Unruled().keeps("turns", 1, Place(0, 2))
