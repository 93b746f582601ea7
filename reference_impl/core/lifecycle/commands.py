"""The commands of users that have no answer yet (FIN-4): each gets one, at the latest when the job ends."""

from __future__ import annotations

from ..protocol.checkpoints import UnderWay
from ..vocabulary.causes import AnyCause
from ..vocabulary.effects import Effect, Return
from ..vocabulary.events import Commanded


class Commands:
    """Commands that wait until the job works, and those behind pending checkpoints."""

    def __init__(self, under_way: UnderWay) -> None:
        self._under_way = under_way
        self._waiting: list[Commanded] = []

    def wait(self, event: Commanded) -> list[Effect]:
        """A command waits until the job works."""
        self._waiting.append(event)
        return []

    def take_waiting(self) -> list[Commanded]:
        """The commands that have waited; they wait no longer."""
        commands, self._waiting = self._waiting, []
        return commands

    def refuse_pending(self, cause: AnyCause) -> list[Effect]:
        """Their checkpoints are about to be aborted."""
        return [Return(command, cause=cause) for command in self._under_way.commands]

    def refuse_all(self, cause: AnyCause) -> list[Effect]:
        """The job has ended: those that have waited are refused first."""
        return [*(Return(event.command, cause=cause) for event in self.take_waiting()), *self.refuse_pending(cause)]
