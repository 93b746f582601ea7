"""What a bank holds: the failures that were found, and the nights that looked for them.

A failure is written once and never changed.  What changes about it (how often it showed, when it was fixed) stands in
the nights.  So two banks become one by taking the files of both.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

import msgspec

from ..model import ScenarioCounts, Size
from .counts import CountTable

FAILURE_FORMAT = "cutproof-failure/1"
NIGHT_FORMAT = "cutproof-night/1"

Moment = Annotated[datetime.datetime, msgspec.Meta(tz=True)]
"""in UTC; a file without the zone cannot be read, since its times could not be compared"""

Status = Literal["new", "still_failing", "flaky", "fixed", "not_reached"]
"""What a night saw of a failure.

new: it was found for the first time.  still_failing: each replay was violated.  flaky: some were.  fixed: none was,
its faults and its planted defect were reached, and its invariant held.  not_reached: none was, and nobody knows more:
what it needs was not reached, its invariant was not exercised, it was violated by another kind of difference, or in
real time all runs may have held by chance.
"""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the records of a bank.  Fields may be added, but no field changes its meaning."""


class Origin(Record, frozen=True, kw_only=True):
    """Where the failing scenario was drawn, so that it can be found again if it is no longer reached."""

    seed: int
    index: int
    """its number among the scenarios of the seed"""
    profile: str = "default"
    left_out: tuple[str, ...] = ()
    """the features that its batch left out (swarm testing)"""
    group: int | None = None
    """the number of the group of coverage targets at which it aimed; None if it aimed at none"""


class Failure(Record, frozen=True, kw_only=True):
    """A counterexample of the bank.  Failures with the same identity are one failure."""

    format: str = FAILURE_FORMAT
    id: str
    """a digest of its identity"""
    subject: str
    """as `--subject` names it"""
    defect: str = ""
    """the defect that was planted when it was found"""
    invariant: str
    difference: str
    """the kind of difference, as in `Violated`"""
    point: str
    """the protocol point, phase, aim or kind of the fault that it needs; empty if it needs none"""
    shape: str
    """the job in a word: its operators, and how it takes checkpoints"""
    found: Moment
    night: str
    """the id of the night that found it"""
    version: str
    """of cutproof"""
    origin: Origin
    scenario: str
    """its scenario file, relative to the bank"""
    shrunk: bool = False
    """false: the scenario is the one that was drawn"""
    fired: tuple[int, ...] = ()
    """the faults of the scenario that fired when it failed, by number: a replay has to reach them"""
    size: Size = Size()
    story: str = ""
    """in one sentence"""
    replay: str = ""
    """the command that runs it again, in the folder of the bank"""


class Replay(Record, frozen=True, kw_only=True):
    """What a night saw of one failure."""

    failure: str
    """the failure's id"""
    status: Status
    runs: int = 0
    violated: int = 0
    """in how many of the runs the failure's invariant was violated"""
    held: int = 0
    """in real time: in how many runs what it needs was reached, and its invariant held"""
    found_again: bool = False
    """it is no longer reached by its scenario, and was found again from its seed"""
    again: bool = False
    """it failed, and an earlier night had found it fixed; `words` begin with that, up to a semicolon"""
    known: str = ""
    """for a known failure that has not expired: why it is expected"""
    expires: datetime.date | None = None
    """the last day of a known failure"""
    words: str = ""
    """what was seen, in one sentence, if the status does not say it"""


class Growth(Record, frozen=True, kw_only=True):
    """How many coverage targets the nights of a bank had hit when so many scenarios of this night had run."""

    scenarios: int
    hit: int
    taken: int = 0
    """the transitions of the protocol's tables that they had taken"""


class SubjectNight(Record, frozen=True, kw_only=True):
    """What one night did with one subject."""

    subject: str
    defect: str = ""
    seconds: float = 0.0
    """what it took of the night's time"""
    seed: int = 0
    scenarios: ScenarioCounts = ScenarioCounts()
    scenarios_per_second: float = 0.0
    could_not_run: int = 0
    first_failure_s: float | None = None
    """when its first failure was found, since exploring began; None if there was none"""
    targets: CountTable = CountTable()
    """how often this night hit each target: by alignment, ending and point, or by snapshot format, state backend and
    action; and by fault"""
    hits: dict[str, int] = {}
    """the same by coverage target in words, as earlier versions wrote it: those that this version does not know"""
    possible: int = 0
    """coverage targets and snapshot targets that can be hit with the subject's capabilities"""
    not_hit: list[str] = []
    """some of those that no night had hit by the end of this one, in words"""
    transitions: dict[str, int] = {}
    """by transition of the protocol's tables that the subject counts: how many scenarios of this night took it"""
    transitions_with: CountTable = CountTable()
    """the same by transition and by feature of the scenarios; the row without a name counts all scenarios"""
    growth: list[Growth] = []
    checkpoints_ms: tuple[float, float, float] | None = None
    """duration of completed checkpoints: median, 95th percentile and longest; None without any"""
    recoveries_ms: tuple[float, float, float] | None = None
    batches: int = 0
    left_out: dict[str, int] = {}
    """by feature: how many batches left it out"""
    shortfalls: list[str] = []
    failures: list[str] = []
    """what went wrong in the harness or its environment, each in one sentence"""


class Night(Record, frozen=True, kw_only=True):
    """One run of the nightly job."""

    format: str = NIGHT_FORMAT
    id: str
    """sorts by time: the UTC time at which it began, and some random letters"""
    order: int = 0
    """its place among the nights of a bank: the time at which it began, in ms since 1970, but always later than the
    nights that the bank had by then, also if the clock went back"""
    began: Moment
    ended: Moment | None = None
    """None: it is under way, or was cut off"""
    version: str = ""
    machine: str = ""
    """name and cores of the machine, and the master of the Spark cluster that ran the scenarios, if one did"""
    budget_s: float = 0.0
    exit_code: int | None = None
    """as `cutproof chaos` ended; None if it did not"""
    subjects: list[SubjectNight] = []
    replays: list[Replay] = []
    """of the failures of earlier nights, and those that are new"""
    not_replayed: list[str] = []
    """the ids of failures for which the night had no time"""
    unshrunk: int = 0
    """failing scenarios that it has left to a later night, which will shrink them"""
    unshrunk_elsewhere: int = 0
    """of these: those of subjects, or of planted defects, that the night did not test"""
    put_aside: int = 0
    """files of the bank that could not be read, and that it has moved out of the way"""
    unjudged: str = ""
    """why it was not judged whether it exercised enough, in one sentence; empty if it was"""
    defects_caught: tuple[int, int] | None = None
    """of the planted defects that it tried: how many were caught, and how many there were; None if it tried none"""
    words: list[str] = []
    """what a reader of the page has to know besides: a clock that went back, a file that could not be read"""
