"""The data of a report: the summary of a run, and the views that are drawn.

`Summary` is the file summary.json and the output of `verify --json`, a stable format that
other programs read.  Fields may be added to it, but no field changes its meaning.  A view has
what a reader sees of one counterexample.  Views are values, so that the same run has the
same report, byte for byte.
"""

from __future__ import annotations

from typing import Literal, dataclass_transform

import msgspec

from ..properties.model.history import History
from ..properties.model.workload import Row
from .nights.counts import CountTable

SUMMARY_FORMAT = "cutproof-summary/1"


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the frozen, keyword-only values of a report."""


class Counts(Value, kw_only=True):
    """How many of something were run, and how they were judged."""

    run: int = 0
    held: int = 0
    violated: int = 0
    unknown: int = 0


class ScenarioCounts(Counts, kw_only=True):
    """A scenario held if no invariant is violated and at least one holds."""


class InvariantCounts(Value, kw_only=True):
    """Scenarios by the verdict of an invariant."""

    can_show: int = 0
    """scenarios that could exercise it, decided before they ran"""
    exercised: int = 0
    """of these, the scenarios that did exercise it: it held or was violated"""
    holds: int = 0
    violated: int = 0
    unknown: int = 0
    by_both: int = 0
    """exercised scenarios in which PySpark computed the expected rows or state too"""
    reasons: dict[str, int] = {}
    """by reason why it was unknown: number of scenarios"""
    not_exercised: dict[str, int] = {}
    """why it was not exercised, in words: number of scenarios; counted for pipelines"""


class FaultCounts(Value, kw_only=True):
    """Faults of one kind; a fault fired if it changed something live."""

    planned: int = 0
    fired: int = 0
    phases: dict[str, int] = {}
    """by phase of the job: how many fired in it"""


class AimCounts(Value, kw_only=True):
    """An aim of a pipeline: a moment that can be seen from outside."""

    planned: int = 0
    """faults and stops that waited for it"""
    met: int = 0
    """how often it was met while they waited, counted for each of them; one may wait for the second or third time that
    it is met"""
    fired: int = 0
    """those that struck, or were requested, at it"""


class CommandCounts(Value, kw_only=True):
    """Commands of one kind; `drain` counts stops that ended all input first."""

    planned: int = 0
    finished: int = 0
    drain: int = 0


class StopCounts(Value, kw_only=True):
    """Ends of one kind, or resumes: how many were planned, were completed, and were hit meanwhile."""

    planned: int = 0
    finished: int = 0
    hit: int = 0
    """how many during which some fault fired"""
    faults: dict[str, dict[str, int]] = {}
    """the faults that hit them, by kind and by phase of the job"""
    points: dict[str, int] = {}
    """the faults that hit them and were triggered at a protocol point, by point"""
    begins_with: dict[str, int] = {}
    """for resumes: by what they restored (savepoint, checkpoint or nothing)"""


class Impossible(Value, kw_only=True):
    """A rule that makes coverage targets impossible; a target counts under the first rule that applies."""

    rule: str
    reason: str
    cells: int


class CoverageRow(Value, kw_only=True):
    """A row of `Coverage.table`, as earlier versions wrote it."""

    alignment: str
    ending: str
    point: str
    fired: dict[str, int] = {}
    """by kind of fault, those that are 0 included"""


class SnapshotCoverage(Value, kw_only=True):
    """The snapshot targets (format x state backend x what the user did x fault): hit, possible and impossible ones."""

    possible: int = 0
    """snapshot targets that can be hit with the subject's capabilities"""
    hit: int = 0
    """possible targets that some scenario hit"""
    table: CountTable = CountTable()
    """how many scenarios hit each target: by format, backend and action, and by kind of fault; as in `Coverage`"""
    impossible: list[Impossible] = []


class Coverage(Value, kw_only=True):
    """The coverage targets (protocol point x fault x way of ending x alignment): hit, possible and impossible ones."""

    possible: int = 0
    """coverage targets that can be hit with the subject's capabilities"""
    hit: int = 0
    """possible targets at which a fault fired"""
    fired: int = 0
    """faults that hit a target"""
    outside: int = 0
    """fired faults without a target: triggered by a time or a phase, or in a job that never ended"""
    table: CountTable = CountTable()
    """how many faults fired at each target: by alignment, ending and point, and by kind of fault.  A 0 is a possible
    target that was not hit, and nothing an impossible one"""
    rows: list[CoverageRow] | msgspec.UnsetType = msgspec.UNSET
    """in place of the table in the summaries of earlier versions"""
    impossible: list[Impossible] = []
    snapshots: SnapshotCoverage = SnapshotCoverage()


class CounterCounts(Value, kw_only=True):
    """What a counter of a pipeline's own showed at the end of the runs; nobody judges it."""

    read: int = 0
    """in how many runs it could be read"""
    least: int | float | None = None
    most: int | float | None = None
    """None if it never was a number"""


class CheckpointCounts(Value, kw_only=True):
    completed: int = 0
    aborted: int = 0


class RestartCounts(Value, kw_only=True):
    """Partial failovers: recoveries in which some tasks restarted and the others went on."""

    recoveries: int = 0
    tasks: dict[str, int] = {}
    """by task: how often it restarted"""


class SystemCounts(Counts, kw_only=True):
    """Companion runs of systems of processes, and their general snapshots.  A run is unknown if no snapshot had events
    on both of its sides."""

    snapshots: int = 0
    """completed snapshots"""
    under_way: int = 0
    """messages that these snapshots have in channels"""


class BatchCounts(Counts, kw_only=True):
    """Jobs that were also executed as a batch, and compared with their streaming result.  A job is unknown if its
    result depends on an order, or the streaming job did not finish."""


class RecordCounts(Value, kw_only=True):
    read: int = 0
    committed: int = 0


class Asked(Value, kw_only=True):
    """How many scenarios PySpark has judged, and for the others by reason the number of scenarios."""

    asked: int = 0
    not_asked: dict[str, int] = {}


class OracleCounts(Asked, kw_only=True):
    """The oracle: its name, in how many scenarios it computed the expected rows, and how often the quick checker
    disagreed."""

    state: Asked = Asked()
    """the same for the expected keyed state in completed checkpoints"""
    engine: str = ""
    workloads: int = 0
    expected_rows: int = 0
    queries: int = 0
    disagreements: int = 0


class Seconds(Value, kw_only=True):
    """The time by activity; `start` is the start of the interpreter and of Spark."""

    total: float = 0.0
    start: float = 0.0
    draw: float = 0.0
    run: float = 0.0
    oracle: float = 0.0
    judge: float = 0.0
    report: float = 0.0


class Size(Value, kw_only=True):
    """The size of a scenario."""

    tasks: int = 0
    records: int = 0
    faults: int = 0

    @property
    def total(self) -> int:
        return self.tasks + self.records + self.faults


class Counterexample(Value, kw_only=True):
    """One violated invariant with its shrunk scenario, and the command that replays it."""

    id: str
    invariant: str
    scenario: str
    """its scenario file, relative to the run folder"""
    story: str
    """in one sentence"""
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
    """for a known failure that has not expired: why it is expected"""
    judges: int = 0
    """2 if PySpark too computed the expected rows or state, else 1; 0 in summaries of older versions"""
    not_asked: str = ""
    """if one judge saw it: why PySpark was not asked; empty also if PySpark disagrees"""
    repetitions: int = 0
    """how often its scenario was run again, if a run costs seconds and another one may end differently"""
    violated_again: int = 0
    """in how many of these runs it was violated in the same way"""
    kept: str = ""
    """what ended the shrinking, and how often the scenario was violated again, in words"""


class NotRun(Value, kw_only=True):
    """A scenario that the subject could not run, and the command that runs it again."""

    number: int
    """its number among the run's scenarios"""
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
    pipeline: str = ""
    """the name of the pipeline that was run from outside; its tasks and checkpoints are out of sight"""
    profile: str = ""
    seed: int | None = None
    scenarios: ScenarioCounts = ScenarioCounts()
    not_run: list[NotRun] = []
    """scenarios that could not be run, and are counted nowhere else"""
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
    """without the time for the start of the interpreter and of Spark"""
    counterexamples: list[Counterexample] = []
    shortfalls: list[str] = []
    """what the run had to show and did not show, each in one sentence"""
    not_judged_by_shares: str = ""
    """why the run was not judged by its shares, in one sentence; empty if it was"""
    interrupted: bool = False
    not_tried: list[str] = []
    """the capabilities that the subject does not have, which were not tried"""
    counters: dict[str, CounterCounts] = {}
    """of a pipeline that was run from outside: what it counts itself, by name"""
    aims: dict[str, AimCounts] = {}
    """of a pipeline that was run from outside: its aims, by name"""
    unapplied: dict[str, int] = {}
    """faults, commands and schedule perturbations that were planned and never applied, by kind"""
    why_unapplied: dict[str, dict[str, int]] = {}
    """the faults of pipelines among them: by kind, how many for each reason"""
    foreign_connections: int = 0
    """connections of other programs to the ports of runs on processes, which were refused"""
    stops: dict[str, StopCounts] = {}
    """every way to end a job or to resume it: natural-end, stop, drain, cancel, resume and unfit-resume"""
    coverage: Coverage = Coverage()
    systems: SystemCounts = SystemCounts()
    batches: BatchCounts = BatchCounts()
    failures: list[str] = []
    """what went wrong in the harness or its environment, each in one sentence"""


RowStatus = Literal["ok", "lost", "repeated", "unexpected", "changed"]


class RowPair(Value, kw_only=True):
    """An expected row and the committed row; a missing side is None."""

    status: RowStatus
    expected: Row | None = None
    committed: Row | None = None


class CounterexampleView(Value, kw_only=True):
    """Everything that a report shows of one counterexample."""

    id: str
    invariant: str
    difference: str
    story: str
    """one sentence"""
    paragraphs: tuple[str, ...] = ()
    """the full story: the job, the faults and what they hit, the closing cut, and the output"""
    witness: str = ""
    """the records and events that show the violation; may have several lines"""
    neighbour: str = ""
    """the nearest scenario that passes, in one sentence ("holds if this ack comes first")"""
    scenario: str = ""
    """the text of the scenario file"""
    replay: str = ""
    rows: tuple[RowPair, ...] = ()
    history: History | None = None
    """the history with its time line; without a time line, a coarse diagram is drawn"""
    checkpoint: int | None = None
    """the main cut of the diagram; None: the last cut"""
    size: Size = Size()
    scenarios: int = 1
    known: str = ""
    judges: int = 0
    not_asked: str = ""
    """as in `Counterexample`"""


class ShownRun(Value, kw_only=True):
    """A run of a pipeline that held, of which the report shows how it went."""

    index: int
    """the number of its scenario"""
    history: History
    rows: tuple[RowPair, ...] = ()
    replay: str = ""
    """the command that runs it again"""


class ViolatedScenario(Value, kw_only=True):
    """One violated scenario of the run, as it was drawn."""

    index: int
    name: str
    """the name of the template, or of the workload"""
    violated: dict[str, str]
    """by invariant: the kind of difference"""
    judges: dict[str, int] = {}
    """by invariant: how many judges saw it, as in `Counterexample`; empty in summaries of older versions"""
    replay: str
    """the command that runs it again"""


class Samples(Value, kw_only=True):
    """The measurements for the plots, one or several for each scenario, in µs of the run's clock."""

    checkpoint_durations_us: list[int] = []
    recovery_times_us: list[int] = []


class ReportView(Value, kw_only=True):
    """A whole report: one HTML file."""

    summary: Summary
    counterexamples: tuple[CounterexampleView, ...] = ()
    violated: tuple[ViolatedScenario, ...] = ()
    """every violated scenario, in the order in which they were drawn"""
    shown: ShownRun | None = None
    """the first run of a pipeline that recovered from a fault, and held"""
    samples: Samples = Samples()
