"""What a report is made of: the summary of a run, and the views that are drawn.

`Summary` is the file summary.json and what `verify --json` prints, a stable
format that other programs read: its fields may gain neighbours, never another
meaning.  The views hold what a reader sees of one counterexample; they are
values, so that the same run writes the same report, byte for byte.
"""

from __future__ import annotations

from typing import Literal, dataclass_transform

import msgspec

from ..properties.model.history import History
from ..properties.model.workload import Row

SUMMARY_FORMAT = "cutproof-summary/1"


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the frozen, keyword-only values of a report."""


class Counts(Value, kw_only=True):
    """How many were run of something, and how they were judged."""

    run: int = 0
    held: int = 0
    violated: int = 0
    unknown: int = 0


class ScenarioCounts(Counts, kw_only=True):
    """A scenario held when nothing in it is violated and at least one invariant holds."""


class InvariantCounts(Value, kw_only=True):
    """Scenarios by the verdict of an invariant."""

    can_show: int = 0
    """scenarios that could exercise it, decided before they ran"""
    exercised: int = 0
    """those of them in which it was: it held or was violated"""
    holds: int = 0
    violated: int = 0
    unknown: int = 0
    by_both: int = 0
    """of those that it holds or is violated in, where PySpark computed what it compares with"""
    reasons: dict[str, int] = {}
    """why it was unknown: reason and number of scenarios"""


class FaultCounts(Value, kw_only=True):
    """Faults of one kind; one that fired changed something live."""

    planned: int = 0
    fired: int = 0
    phases: dict[str, int] = {}
    """what the job was doing when they fired"""


class CommandCounts(Value, kw_only=True):
    """Commands of one kind; `drain` counts those that ended all input first."""

    planned: int = 0
    finished: int = 0
    drain: int = 0


class StopCounts(Value, kw_only=True):
    """Ends of one kind, or resumes: planned, come to their end, and hit while they were under way."""

    planned: int = 0
    finished: int = 0
    hit: int = 0
    """those during which some fault fired"""
    faults: dict[str, dict[str, int]] = {}
    """what hit them: by kind of fault, and by the phase that the job was in"""
    points: dict[str, int] = {}
    """by the protocol point that set the fault off, where one did"""
    begins_with: dict[str, int] = {}
    """of resumes: what they went on from: savepoint, checkpoint or nothing"""


class CoverageRow(Value, kw_only=True):
    """Of one alignment mode, way of ending and protocol point: how often a fault of each kind fired there.

    A kind with 0 could have fired and did not; one that is not there cannot fire.
    """

    alignment: str
    """aligned, unaligned, timeout, in-turn, unblocked (at-least-once) or none (at-most-once)"""
    ending: str
    """how the job ended that was hit: finished, drained, stopped, cancelled or failed"""
    point: str
    """the protocol point that set the fault off"""
    fired: dict[str, int] = {}


class Impossible(Value, kw_only=True):
    """A rule that makes coverage targets impossible; a target counts under the first rule that applies."""

    rule: str
    reason: str
    cells: int


class Coverage(Value, kw_only=True):
    """Protocol point x fault x way of ending x alignment: what fired, what could have, what cannot."""

    possible: int = 0
    """coverage targets that can be hit, of what the subject can do"""
    hit: int = 0
    """those of them in which something fired"""
    fired: int = 0
    """faults that hit a target"""
    outside: int = 0
    """fired faults that have none: set off by a time or a phase, or in a job that never ended"""
    rows: list[CoverageRow] = []
    impossible: list[Impossible] = []


class CheckpointCounts(Value, kw_only=True):
    completed: int = 0
    aborted: int = 0


class RestartCounts(Value, kw_only=True):
    """Recoveries in which some tasks came up and the others went on."""

    recoveries: int = 0
    tasks: dict[str, int] = {}
    """how often each task did, by its name"""


class SystemCounts(Counts, kw_only=True):
    """Companion runs of systems of processes, and the general snapshots that were taken of them;
    unknown where no snapshot had events on both of its sides."""

    snapshots: int = 0
    """that completed"""
    under_way: int = 0
    """messages that these have in channels"""


class BatchCounts(Counts, kw_only=True):
    """Jobs that were executed as a batch too, and held against what they left as a stream; unknown where the result
    depends on an order, or the stream did not finish."""


class RecordCounts(Value, kw_only=True):
    read: int = 0
    committed: int = 0


class Asked(Value, kw_only=True):
    """On how many scenarios PySpark has spoken, and why not on the others: reason and number of scenarios."""

    asked: int = 0
    not_asked: dict[str, int] = {}


class OracleCounts(Asked, kw_only=True):
    """The expected results: who computed them, in how many scenarios the expected rows, and how often the quick checker
    disagreed."""

    state: Asked = Asked()
    """the same of the keyed state expected in completed checkpoints"""
    engine: str = ""
    workloads: int = 0
    expected_rows: int = 0
    queries: int = 0
    disagreements: int = 0


class Seconds(Value, kw_only=True):
    """Where the time went; `start` is the interpreter's and Spark's."""

    total: float = 0.0
    start: float = 0.0
    draw: float = 0.0
    run: float = 0.0
    oracle: float = 0.0
    judge: float = 0.0
    report: float = 0.0


class Size(Value, kw_only=True):
    """How much a scenario has in it."""

    tasks: int = 0
    records: int = 0
    faults: int = 0

    @property
    def total(self) -> int:
        return self.tasks + self.records + self.faults


class Counterexample(Value, kw_only=True):
    """One violated invariant, shrunk, and the way back to it."""

    id: str
    invariant: str
    scenario: str
    """its scenario file, relative to the run folder"""
    story: str
    """one sentence"""
    replay: str
    """the command that runs it again"""
    size: Size = Size()
    seconds_to_find: float = 0.0
    seconds_to_shrink: float = 0.0
    difference: str = ""
    """the kind of difference, as in `Violated`"""
    scenarios: int = 1
    """how many scenarios of the run failed for the same cause"""
    known: str = ""
    """why it is expected, when it is a known failure that has not expired"""
    judges: int = 0
    """2 where PySpark, too, computed the rows or state that it differs from, else 1; 0 in what older versions wrote"""
    not_asked: str = ""
    """why PySpark was not asked, where one judge saw it; empty also where PySpark disagrees"""


class NotRun(Value, kw_only=True):
    """A scenario that the subject could not be driven through, and the way back to it."""

    number: int
    """which of the run's scenarios it is"""
    reason: str
    scenario: str = ""
    """its scenario file, relative to the run folder; empty where nothing is kept"""
    replay: str = ""
    """the command that runs it again; empty where nothing is kept"""


class Summary(Value, kw_only=True):
    """A run in numbers."""

    format: str = SUMMARY_FORMAT
    version: str = ""
    subject: str = ""
    profile: str = ""
    seed: int | None = None
    scenarios: ScenarioCounts = ScenarioCounts()
    not_run: list[NotRun] = []
    """scenarios that could not be run, which count in none of the others"""
    invariants: dict[str, InvariantCounts] = {}
    faults: dict[str, FaultCounts] = {}
    commands: dict[str, CommandCounts] = {}
    checkpoints: CheckpointCounts = CheckpointCounts()
    recoveries: int = 0
    restarts: dict[str, RestartCounts] = {}
    """the recoveries of a region, and the local recoveries, in which only the lost tasks restarted"""
    records: RecordCounts = RecordCounts()
    oracle: OracleCounts = OracleCounts()
    seconds: Seconds = Seconds()
    scenarios_per_second: float = 0.0
    """everything counted but the start of the interpreter and of Spark"""
    counterexamples: list[Counterexample] = []
    shortfalls: list[str] = []
    """what the run had to show and did not, each in one sentence"""
    not_judged_by_shares: str = ""
    """why the run was not judged by its shares, in one sentence; empty if it was"""
    interrupted: bool = False
    not_tried: list[str] = []
    """what the subject cannot do, so that it was not asked of it"""
    unapplied: dict[str, int] = {}
    """faults, commands and schedule perturbations that were planned and never applied, by kind"""
    foreign_connections: int = 0
    """to the ports of runs on processes, by somebody who is not of the run: closed unheard"""
    stops: dict[str, StopCounts] = {}
    """natural-end, stop, drain, cancel, resume and unfit-resume: every way to end a job and to go on"""
    coverage: Coverage = Coverage()
    systems: SystemCounts = SystemCounts()
    batches: BatchCounts = BatchCounts()
    failures: list[str] = []
    """what went wrong in the harness or its environment, each in one sentence"""


RowStatus = Literal["ok", "lost", "repeated", "unexpected"]


class RowPair(Value, kw_only=True):
    """An expected row and the committed one; the side that is missing is None."""

    status: RowStatus
    expected: Row | None = None
    committed: Row | None = None


class CounterexampleView(Value, kw_only=True):
    """Everything that is shown of one counterexample."""

    id: str
    invariant: str
    difference: str
    story: str
    """one sentence"""
    paragraphs: tuple[str, ...] = ()
    """the story in full: what ran, what was hit, where the cut lay, what came out"""
    witness: str = ""
    """what the invariant's checker points at; may have several lines"""
    neighbour: str = ""
    """the nearest scenario that passes, in one sentence ("holds if this ack comes first")"""
    scenario: str = ""
    """the text of the scenario file"""
    replay: str = ""
    rows: tuple[RowPair, ...] = ()
    history: History | None = None
    """with its time line for the diagram; without one a coarse diagram is drawn"""
    checkpoint: int | None = None
    """the cut that the diagram draws; None draws the last one there is"""
    size: Size = Size()
    scenarios: int = 1
    known: str = ""
    judges: int = 0
    not_asked: str = ""
    """as in `Counterexample`"""


class ViolatedScenario(Value, kw_only=True):
    """One scenario of the run in which something is violated, as it was drawn."""

    index: int
    name: str
    """of the template, or of the workload"""
    violated: dict[str, str]
    """invariant: the kind of difference"""
    judges: dict[str, int] = {}
    """invariant: how many judges saw it, as in `Counterexample`; empty in what older versions wrote"""
    replay: str
    """the command that runs it again"""


class Samples(Value, kw_only=True):
    """What was measured once a scenario or more often, for the plots; µs of the run's clock."""

    checkpoint_durations_us: list[int] = []
    recovery_times_us: list[int] = []


class ReportView(Value, kw_only=True):
    """A whole report: one HTML file."""

    summary: Summary
    counterexamples: tuple[CounterexampleView, ...] = ()
    violated: tuple[ViolatedScenario, ...] = ()
    """every violated scenario, in the order in which they were drawn"""
    samples: Samples = Samples()
