"""Virtual time: order is (time, sequence), and nothing runs past its limit."""

from __future__ import annotations

from cutproof.reference_impl.simulated.loop import Loop


def test_things_happen_in_the_order_of_their_times_then_of_their_entry() -> None:
    loop, seen = Loop(), []
    for time, name in ((30, "late"), (10, "first"), (20, "second"), (20, "third")):
        loop.at(time, lambda name, _: seen.append((loop.now, name)), name)
    assert loop.run(100) is True
    assert seen == [(10, "first"), (20, "second"), (20, "third"), (30, "late")]
    assert (loop.now, loop.steps) == (30, 4)


def test_what_is_entered_on_the_way_waits_behind_what_is_due_then() -> None:
    loop, seen = Loop(), []

    def outer(*_: object) -> None:
        seen.append("outer")
        loop.after(0, lambda *_: seen.append("inner"))

    loop.at(5, outer)
    loop.at(5, lambda *_: seen.append("beside"))
    loop.run(5)
    assert seen == ["outer", "beside", "inner"]


def test_after_counts_from_now() -> None:
    loop, seen = Loop(), []
    loop.at(10, lambda *_: loop.after(7, lambda first, second: seen.append((loop.now, first, second)), 1, 2))
    loop.run(100)
    assert seen == [(17, 1, 2)]


def test_a_limit_leaves_the_rest_for_later() -> None:
    loop, seen = Loop(), []
    for time in (10, 11):
        loop.at(time, lambda time, _: seen.append(time), time)
    assert loop.run(10) is False
    assert seen == [10]
    assert loop.run(11) is True
    assert seen == [10, 11]


def test_it_can_be_stopped() -> None:
    loop, seen = Loop(), []
    loop.at(1, lambda *_: setattr(loop, "stopped", True))
    loop.at(2, lambda *_: seen.append("never"))
    assert loop.run(10) is True
    assert seen == []
