"""What the worlds of all processes share: the loop, the journal, supervision, the stores."""

from __future__ import annotations

import os
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import observed as o
from ..core.vocabulary.causes import AnyCause
from ..core.vocabulary.events import CompletedCheckpoint
from ..core.vocabulary.ids import AttemptId, TaskId
from ..core.vocabulary.transactions import AnyRequest, Outcome
from ..driver.arms import Arms
from ..driver.durable.sessions import Sessions
from ..driver.durable.spills import Spills
from ..driver.perturbations import Perturbations
from ..driver.points import Points
from ..driver.ports import Attempt, External
from ..trace import ProcessObserver
from .clock import Clock
from .configuration import JOURNAL, SINK, STORE, Configuration, job_of
from .disk.files import DiskFiles, DiskJobs
from .disk.journal import Journal
from .disk.logs import DiskLogs
from .loop import Loop, monotonic_us
from .network.connections import Outbox
from .network.frames import Arm, Close, Disarm, Echo, Fired, Foreign, Happened, SupervisionFrame
from .stores.sinks import SinkPlace, visible_transactions
from .supervision import Supervision

CRASHED = 70
"""exit code of a process that an exception ended (EX_SOFTWARE)"""


class Journalled:
    """The external store; each request is in the journal before it is sent, since its answer may never come."""

    def __init__(self, store: External, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    def handle(self, request: AnyRequest) -> Outcome:
        self._journal.saw(o.Transacting(request))
        self._journal.flush()
        return self._store.handle(request)


class NotedFiles(DiskFiles):
    """The snapshot store; the journal has an entry before a checkpoint's record is written, since the writer may die
    in between."""

    def __init__(self, root: Path, journal: Journal) -> None:
        super().__init__(root)
        self._journal = journal

    def store(self, snapshot: CompletedCheckpoint) -> None:
        self._journal.saw(o.CheckpointCompleting.of(snapshot))
        self._journal.flush()
        super().store(snapshot)


class ProcessWorld(ABC):
    """The world of one process: what a node's and the coordinator's have in common."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.place = SinkPlace(
            store=configuration.store, folder=self._path(SINK), dsn=configuration.dsn, run=configuration.run
        )
        self.place.check()  # before anything is opened
        self.job = job_of(configuration)
        self.config = self.job.config
        self.parts = self.job.parts
        self.settings = configuration.settings
        self.detailed = configuration.detailed
        self.points = Points()
        self.points.watch(frozenset(configuration.points), self._announce)
        self.loop = Loop(configuration.scale, configuration.epoch_us)
        self.clock = Clock(monotonic_us)
        self.outbox = Outbox(self.loop, self.clock, configuration.secret)
        self.journal = Journal(self._path(JOURNAL) / self._own_name(), self.clock)
        self.observer: ProcessObserver = self.journal
        self.supervision = Supervision(configuration.supervision, self.outbox, self._supervised)
        self.supervision.flush_all = self.flush
        self.perturbations = Perturbations(configuration.perturbations, self._happened)
        self.arms = Arms()
        self.files = NotedFiles(self._path(STORE), self.journal)
        self.jobs = DiskJobs(self._path(STORE))
        by_itself = self.config.spill_store == "log"
        self.logs = DiskLogs(self._path(STORE), whole_files=not by_itself)
        self.spills = Spills(self, self.logs, self.arms, by_itself=by_itself)
        self._reader = self.place.reader()
        self.sessions = Sessions(self, Journalled(self.place.external(self.job.passing), self.journal), self.arms)
        self.loop.before_wait = self._before_wait
        self.loop.on_late = lambda by_us: self.journal.saw(o.Lagged(by_us))
        self._defect_reported = False
        self._foreigner_reported = 0
        self._orders: dict[type, Callable[[Any], None]] = {
            Arm: lambda order: self.arms.arm(order.kind, order.target, order.fault, order.times),
            Disarm: lambda order: self.arms.disarm(order.fault),
            Echo: lambda order: self.supervision.send(Echo(self.clock.tick(), order.number)),
            Close: lambda order: self._close(),
        }

    def _path(self, name: str) -> Path:
        return Path(self.configuration.folder) / name

    def _own_name(self) -> str:
        return f"{self.configuration.process}.{self.configuration.incarnation}"

    # -- rounds of the loop ----------------------------------------------------------------

    def _before_wait(self) -> None:
        """Every due action is done: report what changed, then write the journal, then send."""
        self.report_facts()
        if not self._defect_reported and self.parts.reached:
            self._defect_reported = True
            self.journal.saw(o.DefectReached())
        if self.outbox.foreign > self._foreigner_reported:
            self.supervision.send(Foreign(self.clock.tick(), self.outbox.foreign - self._foreigner_reported))
            self._foreigner_reported = self.outbox.foreign
        self.flush()

    def flush(self) -> None:
        """Write what was observed before what was sent can have an effect."""
        self.journal.flush()
        self.outbox.flush()

    @abstractmethod
    def report_facts(self) -> None:
        """Report the changed facts on which the phase of the job depends."""

    def _close(self) -> None:
        self.shut_down()
        self.loop.stopped = True
        self.flush()

    @abstractmethod
    def shut_down(self) -> None:
        """End in order what runs in this process."""

    def _supervised(self, frame: SupervisionFrame) -> None:
        self._orders[type(frame)](frame)

    def _happened(self, what: str) -> None:
        self.supervision.send(Happened(self.clock.tick(), what))

    # -- observation ---------------------------------------------------------------------

    def _announce(self, point: str, task: TaskId | None, side: str) -> None:
        """Announce a point that the harness waits for, and stand still there; a fault there kills the whole process."""
        self.report_facts()
        self.supervision.announce(point, task, side)

    def fired(self, fault: int, detail: str, attempt: int | None, struck: o.AnyStruck | None = None) -> None:
        self.supervision.send(Fired(self.clock.tick(), fault, detail, AttemptId(attempt) if attempt else None, struck))

    def read_sink(self) -> None:
        """Record what an independent reader sees now; a reader that cannot read has seen nothing."""
        began = self.clock.tick()
        seen = visible_transactions(self._reader)
        if seen is not None:
            self.journal.saw(o.Seen(began, tuple(seen)))

    def expire(self, fault: int, name: str, attempt: int | None) -> bool:
        """Have the harness abort a transaction in the store: this process may not, an administrator of the store
        may."""
        return self.supervision.expire(fault, name, attempt)

    def kill(self, attempt: Attempt, cause: AnyCause, fault: int) -> bool:
        """A fault kills the whole process; the harness reports whose attempts died with it."""
        self.supervision.die()


def live(world: ProcessWorld) -> None:
    """Announce the process and run its loop; an exception ends the process, with its traceback in the log."""
    try:
        world.supervision.ready(world.configuration.process, world.configuration.incarnation)
        world.loop.run()
    except Exception:  # whatever it is, the process dies of it: the harness sees its exit code
        traceback.print_exc()
        world.journal.flush()
        sys.stderr.flush()
        os._exit(CRASHED)
