"""The context of one run, shared by all parts of the orchestrator: clock, journal, processes, facts of the job."""

from __future__ import annotations

from collections.abc import Callable

from ....reference_impl import observed as o
from ....reference_impl.processes.clock import Clock
from ....reference_impl.processes.disk.journal import Journal
from ....reference_impl.processes.loop import Loop, monotonic_us
from ....reference_impl.processes.network.connections import Outbox
from .facts import Facts
from .layout import Placement, RunConfig
from .processes import Processes
from .services import Services


class Context:
    """One run.  Its loop counts µs of the machine's clock; `now` and `at` are in µs of the scenario."""

    processes: Processes
    facts: Facts

    def __init__(self, services: Services, placement: Placement, config: RunConfig, kinds: list[str]) -> None:
        self.services = services
        self.placement = placement
        self.config = config
        self.kinds = kinds
        """the kinds of the planned faults, in their order"""
        self.loop = Loop(1, 0)
        self.clock = Clock(monotonic_us)
        self.outbox = Outbox(self.loop, self.clock)
        self.journal = Journal(config.journal / "harness.0", self.clock)
        self.begun_us = 0
        """when the first job was submitted"""
        self.fired_so_far: dict[int, int] = {}
        """fault: how often it has fired"""
        self.due = 0
        """how many timed actions are pending: faults, commands, healing"""
        self.healing = 0
        """how many of the pending actions heal a fault"""
        self.lasting: list[int] = []
        """the faults that act until they are healed"""
        self.busy_us = 0
        """when the last timed action ran or the last fault fired"""
        self._on_fired: list[Callable[[int], None]] = []

    # -- time ------------------------------------------------------------------------

    def now(self) -> int:
        return (monotonic_us() - self.begun_us) // self.config.scale

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Call `action` at a time of the scenario; time 0 is the submission of the first job."""
        self._at_real(self.begun_us + time * self.config.scale, action)

    def after_real(self, delay_us: int, action: Callable[[], None]) -> None:
        self._at_real(monotonic_us() + delay_us, action)

    def _at_real(self, time_us: int, action: Callable[[], None]) -> None:
        self.due += 1

        def act(*_: object) -> None:
            self.due -= 1
            self.busy_us = monotonic_us()
            action()

        self.loop.at(time_us, act)

    # -- faults ----------------------------------------------------------------------

    def fired(
        self,
        fault: int,
        detail: str,
        attempt: int | None,
        struck: o.AnyStruck | None = None,
        *,
        stamp: int | None = None,
        phase: str | None = None,
    ) -> None:
        """Record that a fault has changed something live.  By default it fired now, in the job's current phase."""
        self.fired_so_far[fault] = self.fired_so_far.get(fault, 0) + 1
        self.busy_us = monotonic_us()
        event = o.FaultFired(fault, self.facts.phase if phase is None else phase, detail, attempt, struck)
        self.journal.saw_at(self.journal.order() if stamp is None else stamp, event)
        for listener in list(self._on_fired):
            listener(fault)

    def when_fired(self, listener: Callable[[int], None]) -> None:
        """Call `listener` for each fault that fires."""
        self._on_fired.append(listener)

    def heal_after(self, delay_us: int, fault: int, heal: Callable[[], None]) -> None:
        """Undo a fault after a while of the machine's clock."""
        self.will_heal(fault)

        def act() -> None:
            heal()
            self.has_healed(fault)

        self.after_real(delay_us, act)

    def will_heal(self, fault: int) -> None:
        """A fault acts until `has_healed`."""
        self.healing += 1
        self.lasting.append(fault)

    def has_healed(self, fault: int) -> None:
        self.healing -= 1
        self.lasting.remove(fault)
        self.journal.saw(o.FaultHealed(fault))

    def real(self, virtual_us: int) -> int:
        return virtual_us * self.config.scale
