"""What goes wrong in local recovery: determinants, numbers, repeats, logs (UNA-4)."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.local_recovery import Determinant, LocalRecovery
from ..core.persistent import Persisting
from .registry import Defect


class OrderForgotten(LocalRecovery):
    """The output of a task does not wait for its determinants, and a replay takes channel after channel."""

    def is_awaited(self) -> bool:
        return False

    def replayed(self, determinants: Sequence[Determinant]) -> Sequence[Determinant]:
        one_by_one = sorted(determinants, key=lambda determinant: determinant[0])
        self.reached = self.reached or one_by_one != list(determinants)
        return one_by_one


class RepeatsTaken(LocalRecovery):
    """Whoever goes on takes what comes, whatever number it has."""

    def is_repeat(self, number: int, entered: int) -> bool:
        self.reached = self.reached or number < entered
        return False


class OneTooFar(LocalRecovery):
    """A replay begins behind the number that the snapshot names, as if it were that of the last one taken."""

    def begins_at(self, taken: int) -> int:
        self.reached = self.reached or taken > 0
        return taken + 1 if taken else taken


class LogNumberedFromZero(Persisting):
    """A locally recovered task numbers the elements that it appends to existing logs from 0."""

    def resumed(self, number: int) -> int:
        self.reached = self.reached or number > 0
        return 0


class ForgottenWhenReceived(LocalRecovery):
    """A sender forgets an element when it is received, though it is not durable in the log."""

    def may_forget(self, number: int, durable: int, received: int) -> bool:
        self.reached = self.reached or durable <= number < received
        return number < received


DEFECTS = (
    Defect(
        id="P05",
        upstream="FLIP-76 (local recovery)",
        title="a task with several inputs takes them in another order when it recovers alone",
        invariant="order",
        replacements=lambda: {"local_recovery": OrderForgotten()},
    ),
    Defect(
        id="P06",
        upstream="FLIP-76 (local recovery)",
        title="those who go on do not drop what is sent to them again",
        invariant="exactly-once",
        replacements=lambda: {"local_recovery": RepeatsTaken()},
    ),
    Defect(
        id="P07",
        upstream="FLIP-76 (local recovery)",
        title="what is taken again begins one element too far",
        invariant="no-data-loss",
        replacements=lambda: {"local_recovery": OneTooFar()},
    ),
    Defect(
        id="P08",
        upstream="FLIP-76 (local recovery)",
        title="a task that recovers alone numbers its logs anew, and its snapshots refer to what lies there",
        invariant="consistent-cut",
        replacements=lambda: {"persisting": LogNumberedFromZero()},
    ),
    Defect(
        id="P09",
        upstream="FLIP-76 (local recovery)",
        title="a sender forgets what its receiver has and has not made durable",
        invariant="order",
        replacements=lambda: {"local_recovery": ForgottenWhenReceived()},
    ),
)
