"""Triggers a scenario's faults, commands and schedule perturbations by the events of a run."""

from __future__ import annotations

from collections.abc import Callable

from .....faults.injectors.environment import inject
from .....faults.injectors.triggers import Triggers
from .....faults.plan import AtRest
from .....faults.plan import kind_of as fault_kind
from .....reference_impl import observed as o
from .....reference_impl.core.vocabulary.causes import NoCoordinator
from .....reference_impl.core.vocabulary.events import CommandKind
from .....reference_impl.processes.network.frames import Issue
from ....scenario.model import AnyCommand, Fork, OfASnapshot, Resume, Scenario, StopWithSavepoint, format_of, kind_of
from ...subjects.past import Past, command_in_words, fault_in_words
from ..context import Context
from ..copies import Copies
from ..jobs import Jobs
from ..layout import COORDINATOR
from .process_faults import Disturbances


class Steering:
    """The triggers of a run.  `set_out` adds them, and times count from then."""

    def __init__(
        self,
        context: Context,
        scenario: Scenario,
        environment: Disturbances,
        jobs: Jobs,
        copies: Copies,
        past: Past | None,
    ) -> None:
        self._context = context
        self._scenario = scenario
        self._environment = environment
        self._jobs = jobs
        self._copies = copies
        self._past = past
        self.triggers = Triggers(environment.now, environment.at)
        self._unapplied: dict[str, None] = {}
        self._happened: dict[str, int] = {}

    def set_out(self) -> None:
        for number, fault in enumerate(self._scenario.faults):
            name = fault_in_words(number, fault_kind(fault), self._past)
            self._unapplied[name] = None
            self.triggers.add(fault.trigger, self._injection(number, name))
        for number, command in enumerate(self._scenario.commands):
            if isinstance(command, Fork):
                if not isinstance(command.trigger, AtRest):
                    self.triggers.add(command.trigger, self._forking(number))
            elif not isinstance(command, Resume):
                name = command_in_words(number, kind_of(command), self._past)
                self._unapplied[name] = None
                self.triggers.add(command.trigger, self._issue(number, name, command))

    def _injection(self, number: int, name: str) -> Callable[[], None]:
        def act() -> None:
            if not self._jobs.is_over and inject(self._scenario.faults[number], number, self._environment):
                self._unapplied.pop(name, None)

        return act

    def _issue(self, number: int, name: str, command: AnyCommand) -> Callable[[], None]:
        kind, drain = CommandKind(kind_of(command)), isinstance(command, StopWithSavepoint) and command.drain
        how = format_of(command) or None

        def act() -> None:
            if self._jobs.is_over:
                return
            snapshot = self._jobs.meant(command.snapshot) if isinstance(command, OfASnapshot) else None
            if isinstance(command, OfASnapshot) and snapshot is None:
                return  # there is none of that name yet
            self._unapplied.pop(name, None)
            context = self._context
            context.journal.saw(o.CommandIssued(number, kind, drain, snapshot=snapshot, format=how))
            member = context.processes.current(COORDINATOR)
            if member is None or not context.facts.coordinator_lives:
                context.journal.saw(o.command_returned(number, None, NoCoordinator()))
            else:
                member.send(Issue(context.clock.tick(), self._jobs.number, number, kind, drain, how, snapshot))

        # a command acts between steps: the task that reached the point finishes its step first
        return lambda: self._context.after_real(0, act)

    def _forking(self, number: int) -> Callable[[], None]:
        return lambda: self._context.after_real(0, lambda: self._copies.request(number))

    # -- schedule perturbations ------------------------------------------------------------------

    def happened(self, what: str) -> None:
        """An event that a schedule perturbation waits for has happened once more."""
        self._happened[what] = self._happened.get(what, 0) + 1

    def perturbations(self) -> tuple[tuple[str, int, int], ...]:
        """The perturbations that have not happened yet, for the configuration of a process that starts now."""
        return tuple(
            (one.what, remaining, one.by_us)
            for one in self._scenario.deviations
            if (remaining := one.occurrence - self._happened.get(one.what, 0)) > 0
        )

    def unapplied(self) -> list[str]:
        late = [
            f"{one.what}, occurrence {one.occurrence}"
            for one in self._scenario.deviations
            if one.occurrence > self._happened.get(one.what, 0)
        ]
        return [*self._unapplied, *self._copies.unapplied(), *late, *(kind_of(one) for one in self._jobs.unapplied)]
