"""The commands that have no answer yet: each is refused once, or carried out when the job works."""

from __future__ import annotations

from cutproof.reference_impl.core.lifecycle.commands import Commands
from cutproof.reference_impl.core.protocol.checkpoints import PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.causes import CancelledByUser
from cutproof.reference_impl.core.vocabulary.effects import Return
from cutproof.reference_impl.core.vocabulary.events import Commanded, CommandKind
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from unit.core.coordinator_rig import TASKS

CAUSE = CancelledByUser()


def waiting(command: int) -> Commanded:
    return Commanded(command, CommandKind.SAVEPOINT)


def commands(*pending: int | None) -> Commands:
    """With one pending checkpoint for each of these commands; None: no user asked for it."""
    under_way = UnderWay()
    for number, command in enumerate(pending, 1):
        checkpoint = CheckpointId(number)
        under_way.pending[checkpoint] = PendingCheckpoint(
            checkpoint=checkpoint, attempt=AttemptId(1), expected=TASKS, command=command
        )
    return Commands(under_way)


def test_commands_that_wait_are_taken_in_their_order_and_once() -> None:
    users = commands()
    assert users.wait(waiting(2)) == users.wait(waiting(1)) == [], "no answer yet"
    assert users.take_waiting() == [waiting(2), waiting(1)]
    assert users.take_waiting() == []


def test_only_the_commands_behind_checkpoints_are_refused_when_these_are_aborted() -> None:
    users = commands(4, None, 0)
    users.wait(waiting(9))
    assert users.refuse_pending(CAUSE) == [Return(4, cause=CAUSE), Return(0, cause=CAUSE)]
    assert users.take_waiting() == [waiting(9)]


def test_at_the_end_those_that_waited_are_refused_too() -> None:
    users = commands(4)
    users.wait(waiting(9))
    assert users.refuse_all(CAUSE) == [Return(9, cause=CAUSE), Return(4, cause=CAUSE)]
    assert users.take_waiting() == []
