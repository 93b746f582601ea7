"""The loop of a process: order, scaled time, sockets."""

from __future__ import annotations

import socket

from cutproof.reference_impl.processes.loop import LATE_US, Loop, monotonic_us


def test_what_is_due_is_done_in_the_order_of_its_times() -> None:
    loop = Loop(1, monotonic_us())
    done: list[str] = []
    loop.at(loop.now + 2_000, lambda *_: done.append("later"))
    loop.at(loop.now + 1_000, lambda first, second: done.append(f"{first}{second}"), "a", "b")
    loop.at(loop.now + 1_000, lambda *_: done.append("behind it"))
    loop.at(loop.now + 3_000, lambda *_: setattr(loop, "stopped", True))
    loop.run()
    assert done == ["ab", "behind it", "later"]


def test_its_time_is_scaled() -> None:
    began = monotonic_us()
    loop = Loop(20, began)
    loop.at(1_000, lambda *_: setattr(loop, "stopped", True))
    loop.run()
    assert monotonic_us() - began >= 20_000
    assert 1_000 <= loop.now <= (monotonic_us() - began) // 20


def test_a_while_of_the_machines_clock_is_not_scaled() -> None:
    began = monotonic_us()
    loop = Loop(1_000_000, began)
    loop.after_real(2_000_000, lambda *_: None)
    assert loop.next_due is not None
    assert loop.next_due <= 2, "two of its own µs are two seconds"


def test_sockets_that_are_ready_are_served_between_actions() -> None:
    loop = Loop(1, monotonic_us())
    ours, theirs = socket.socketpair()
    arrived: list[bytes] = []

    def ready(_: int) -> None:
        arrived.append(ours.recv(16))
        loop.unwatch(ours)
        loop.stopped = True

    with ours, theirs:
        loop.watch(ours, ready)
        loop.after(1_000, lambda *_: theirs.sendall(b"now"))
        loop.run()
    assert arrived == [b"now"]


def test_before_it_waits_everything_is_let_go() -> None:
    loop = Loop(1, monotonic_us())
    calls: list[str] = []
    loop.before_wait = lambda: calls.append("flush")
    loop.after(0, lambda *_: calls.append("step"))
    loop.after(1, lambda *_: setattr(loop, "stopped", True))
    loop.run()
    assert "flush" in calls[calls.index("step") :]


def test_an_action_that_is_very_late_states_that_the_machine_is_slow() -> None:
    loop = Loop(1, monotonic_us() - 10 * LATE_US)
    late: list[int] = []
    loop.on_late = late.append
    loop.at(0, lambda *_: setattr(loop, "stopped", True))
    loop.run()
    assert late
    assert late[0] >= 10 * LATE_US


def test_a_socket_that_an_earlier_callback_of_the_same_round_has_closed_is_not_called() -> None:
    loop = Loop(1, monotonic_us())
    pairs = [socket.socketpair() for _ in range(2)]
    called = []

    def closes_the_other(own: int) -> None:
        called.append(own)
        other = pairs[1 - own][0]
        loop.unwatch(other)
        other.close()
        fresh = socket.socketpair()  # has the number of the one that was closed
        pairs.append(fresh)
        loop.watch(fresh[0], lambda _: called.append(2))
        loop.stopped = True

    for own, (here, there) in enumerate(pairs):
        loop.watch(here, lambda _, own=own: closes_the_other(own))
        there.send(b"x")
    loop.run()
    assert len(called) == 1
    for pair in pairs:
        for each in pair:
            each.close()
