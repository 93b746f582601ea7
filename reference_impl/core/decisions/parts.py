"""The decisions of the engine, each an object of its own that can be replaced.

`Parts` gathers them for one run.  With the parts as they are here the engine is correct.
`reference_impl.defects` has variants that override one method, so that the core has no
switch that names a defect: it carries out what a decision answers, such as an order of steps.
A few arguments are there for variants alone.  A variant sets `reached` where its wrong code runs.
"""

from __future__ import annotations

from .alignment import AwaitedBarriers
from .checkpointing import CheckpointIds, Cleanup, Completion, RestoreChoice, Tolerance, Triggering
from .commits import Committing, GlobalCommitting, PreCommitting, SinkRecovery
from .enumerating import Enumerating
from .event_time import Firing, Watermarks
from .failover_strategy import FailoverStrategy
from .fencing import Fencing
from .finishing import Ending, Finishing
from .in_flight import Capture
from .local_recovery import LocalRecovery
from .part import Part
from .persisting import Persisting
from .snapshots.contents import SnapshotContents
from .snapshots.increments import Increments
from .snapshots.naming import Naming
from .snapshots.redistribution import Redistribution
from .snapshots.references import References
from .snapshots.state_files import StateFiles
from .snapshots.storing import Storing
from .snapshots.upgrading import Upgrading
from .tasks import Copying, HeldOutput, SourceCut, StartPosition, Startup


class Parts:
    """The decisions of one run; every field is the correct part unless it is replaced."""

    def __init__(self, **replaced: Part) -> None:
        self.awaited_barriers = AwaitedBarriers()
        self.startup = Startup()
        self.source_cut = SourceCut()
        self.start_position = StartPosition()
        self.enumerating = Enumerating()
        self.held_output = HeldOutput()
        self.watermarks = Watermarks()
        self.firing = Firing()
        self.copying = Copying()
        self.state_files = StateFiles()
        self.capture = Capture()
        self.local_recovery = LocalRecovery()
        self.persisting = Persisting()
        self.snapshot_contents = SnapshotContents()
        self.increments = Increments()
        self.references = References()
        self.storing = Storing()
        self.naming = Naming()
        self.pre_committing = PreCommitting()
        self.committing = Committing()
        self.global_committing = GlobalCommitting()
        self.sink_recovery = SinkRecovery()
        self.finishing = Finishing()
        self.ending = Ending()
        self.checkpoint_ids = CheckpointIds()
        self.triggering = Triggering()
        self.completion = Completion()
        self.tolerance = Tolerance()
        self.failover_strategy = FailoverStrategy()
        self.fencing = Fencing()
        self.restore_choice = RestoreChoice()
        self.upgrading = Upgrading()
        self.cleanup = Cleanup()
        self.redistribution = Redistribution()
        for name, part in replaced.items():
            if not hasattr(self, name):
                raise AttributeError(f"no decision is called {name!r}")
            setattr(self, name, part)

    @property
    def reached(self) -> bool:
        """Whether the wrong code of any replaced part has run."""
        return any(part.reached for part in vars(self).values())
