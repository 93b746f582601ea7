"""What goes wrong in local recovery: determinants, numbers, repeats, logs (UNA-4)."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.decisions.local_recovery import Determinant, LocalRecovery, Resumption
from .registry import Defect


class OrderForgotten(LocalRecovery):
    """The output of a task does not wait for its determinants, and a replay takes channel after channel."""

    def may_leave(self, logged: int, durable: int) -> bool:
        return True

    def replayed(self, determinants: Sequence[Determinant], contained: int) -> tuple[Determinant, ...]:
        as_taken = super().replayed(determinants, contained)
        one_by_one = tuple(sorted(as_taken, key=lambda determinant: determinant[0]))
        self.reached = self.reached or one_by_one != as_taken
        return one_by_one


class RepeatsTaken(LocalRecovery):
    """A receiver that was not restarted takes every element, whatever its number."""

    def is_repeat(self, number: int, entered: int) -> bool:
        self.reached = self.reached or number < entered
        return False


class OneTooFar(LocalRecovery):
    """A replay takes the snapshot's number for that of the last element taken, and so begins one element too late."""

    def goes_on(self, taken: int) -> Resumption:
        self.reached = self.reached or taken > 0
        return super().goes_on(taken + 1 if taken else taken)


class LogNumberedFromZero(LocalRecovery):
    """A locally recovered task numbers the elements that it appends to existing logs from 0."""

    def goes_on(self, taken: int) -> Resumption:
        self.reached = self.reached or taken > 0
        return Resumption(super().goes_on(taken).takes, 0)


class ForgottenWhenReceived(LocalRecovery):
    """A sender forgets an element when it is received, though it is not durable in the log."""

    def may_forget(self, number: int, durable: int, received: int) -> bool:
        self.reached = self.reached or durable <= number < received
        return number < received


DEFECTS = (
    Defect(
        id="P05",
        upstream="FLIP-76 (local recovery)",
        title="a locally recovered task takes its inputs in another order",
        invariant="order",
        replacements=lambda: {"local_recovery": OrderForgotten()},
    ),
    Defect(
        id="P06",
        upstream="FLIP-76 (local recovery)",
        title="a receiver does not drop elements that are sent to it again",
        invariant="exactly-once",
        replacements=lambda: {"local_recovery": RepeatsTaken()},
    ),
    Defect(
        id="P07",
        upstream="FLIP-76 (local recovery)",
        title="a locally recovered task begins one element too late in its input",
        invariant="no-data-loss",
        replacements=lambda: {"local_recovery": OneTooFar()},
    ),
    Defect(
        id="P08",
        upstream="FLIP-76 (local recovery)",
        title="a locally recovered task numbers existing logs anew, so that its references are wrong",
        invariant="consistent-cut",
        replacements=lambda: {"local_recovery": LogNumberedFromZero()},
    ),
    Defect(
        id="P09",
        upstream="FLIP-76 (local recovery)",
        title="a sender forgets elements that are not durable at the receiver yet",
        invariant="order",
        replacements=lambda: {"local_recovery": ForgottenWhenReceived()},
    ),
)
