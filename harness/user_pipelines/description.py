"""A pipeline as a file (`cutproof-pipeline/1`, TOML): how it is started, fed, read and killed, and what it computes.

Nothing of the file is executed but the commands that its user wrote.  A command is a list of
arguments and is given to no shell.  In its arguments, in paths and in what is read, places are
filled in: `places` lists them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from ...faults.plan import (
    ChannelFault,
    CutChannel,
    DelayChannel,
    LimitChannel,
    ResetChannel,
    SliceChannel,
    StallChannel,
    TimeoutChannel,
    kind_of_class,
)
from ...properties.model.workload import AnyOperator, Input, Node, Topology, Workload
from ..scenario.topologies import lay_out

FORMAT = "cutproof-pipeline/1"
PIPELINE = "pipeline:"
"""before the path of a pipeline's file, in a subject's name"""
LAST_RECORDS = 2
"""how many times the last record is given"""
RECORD = ("key", "value", "tag")
"""the columns that a record is fed with"""
ROW = ("key", "value", "tag", "tag2")
"""the columns of an output row, in the order of the workload's rows"""
SOURCE = "input"
OWN = "pipeline"
"""the name of the pipeline's own process, beside those of its roles"""
CLIENT = "client"
"""the end of a proxied connection that connects to the proxy; the other end has the proxy's name"""
BREAKING: dict[str, type[ChannelFault]] = {
    kind_of_class(fault): fault for fault in (CutChannel, ResetChannel, LimitChannel, TimeoutChannel)
}
"""the faults of a proxy that break connections, by their kind"""
LOSSLESS: dict[str, type[ChannelFault]] = {
    kind_of_class(fault): fault for fault in (StallChannel, DelayChannel, SliceChannel)
}
"""those after which every byte arrives in the end"""
HALFWAY = "halfway"
"""the aim that every pipeline has: some rows are visible, and others are not; it is met anew when more are visible"""


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the values of a pipeline file."""


class Aim(Value, frozen=True, kw_only=True):
    """A moment that can be seen from outside: it is there as long as its predicate holds.

    Exactly one of `files`, `log`, `query` and `url` says what is looked at.
    """

    files: str = ""
    """a pattern: some file matches it"""
    without: str = ""
    """a pattern: for the newest file that matches `files`, no file of the same name matches this one"""
    log: str = ""
    """a regular expression: some line that the process has printed since it was started matches it"""
    role: str = ""
    """whose lines `log` reads: those of this role; without it those of the pipeline's own process"""
    query: str = ""
    """SQL: its first row's first column is true (not 0, NULL or empty)"""
    database: str = ""
    """what `query` is asked of: a file of SQLite, or the URL of a PostgreSQL (postgresql://…; $NAME stands for a
    variable of the environment)"""
    url: str = ""
    """an http URL that answers with JSON"""
    json: str = ""
    """what of the answer has to be true: names and positions, with dots between them (`counts.restored`)"""


class Needs(Value, frozen=True, kw_only=True):
    """What the pipeline's commands use.  It is fetched once, into the cache of the user."""

    python: tuple[str, ...] = ()
    """packages of PyPI, with their versions, for a virtual environment of their own: {venv}"""
    jars: tuple[str, ...] = ()
    """artifacts of Maven Central (group:name:version), with all that they depend on, in one folder: {jars}"""
    java: tuple[int, ...] = ()
    """releases of Java, one of which is at {java_home}: the machine's, or else the first of them, from PyPI"""
    jdk: bool = False
    """that Java has to have a compiler; PyPI has none"""


class Program(Value, frozen=True, kw_only=True):
    """A process of a pipeline: how it is started, and what may happen to it."""

    start: tuple[str, ...]
    restart: tuple[str, ...] | None = None
    """the command after a kill; the same as `start` if it is left out"""
    restart_after_ms: int = 100
    before: tuple[tuple[str, ...], ...] = ()
    """commands that are run to their end before the first start: one that makes a table, say"""
    environment: dict[str, str] = {}
    """variables for all of its commands"""
    port: str = ""
    """a place such as {port1}, or a number: a fault hits those processes of the run that listen there, in place of all
    those of the command"""
    killed: bool = True
    """scenarios kill it"""
    paused: bool = False
    """scenarios stop it for a while (SIGSTOP), and let it go on"""
    paused_for_ms: tuple[int, ...] = (200, 1000, 4000)
    """for how long"""
    busy: Aim | None = None
    """what shows that this process has a part in the work just now; a fault of it waits for that"""


class Role(Program, frozen=True, kw_only=True):
    """A process beside the pipeline's own, such as a broker; it is started before the pipeline, and runs until the end.

    If it ends by itself it is started again.
    """

    ready: Aim | None = None
    """what shows that it can be used; the next process is started then"""
    ready_within_s: float = 60.0
    restored: Aim | None = None
    """what shows that the pipeline continued after this role was killed; without it, that of the file"""


class Proxy(Value, frozen=True, kw_only=True):
    """A port on which Toxiproxy listens and forwards to another port of this machine, and what scenarios do to the
    connections through it."""

    listen: str
    """the place of its port, such as {port2}: what connects to it goes through the proxy"""
    upstream: str
    """the port that it forwards to: a place such as {port1}, or a number"""
    faults: tuple[str, ...] = (*BREAKING, *LOSSLESS)
    for_ms: tuple[int, ...] = (200, 1000, 4000)
    """how long a fault lasts"""
    busy: Aim | None = None
    """what shows that a connection through it has a part in the work just now; a fault of it waits for that"""
    restored: Aim | None = None
    """what shows that the pipeline continued after a connection was broken or stalled; without it, that of the file"""


class Run(Program, frozen=True, kw_only=True):
    """How the pipeline's own process is started and stopped."""

    after: tuple[tuple[str, ...], ...] = ()
    """commands that are run when the run is over"""
    spare: bool = False
    """while the process runs, another one is started with the command that follows a kill; it comes up, and waits for a
    line of its standard input.  The next kill gives it this line.  The process itself waits for such a line too"""
    ends: bool = True
    """the process ends by itself, with exit code 0, when all input is processed; otherwise the harness stops it once
    its output is complete or `timeout_s` has passed"""
    timeout_s: float = 60.0
    """how long the pipeline may go on without a change of its output, once it is started and fed"""
    settle_s: float = 1.0
    """how long a pipeline that does not end is watched for repeated rows, once its output is complete"""


class Commands(Value, frozen=True, kw_only=True):
    """What a user can request of the pipeline's job while it runs: each a command that is run to its end.

    Once the job has been stopped, the pipeline's own process ends by itself (if `run.ends`) or is stopped.
    """

    stop_with_savepoint: tuple[str, ...] = ()
    """stops the job with a savepoint"""
    drain: tuple[str, ...] = ()
    """stops it with a savepoint before which all input ends, so that windows are emitted"""
    resume: tuple[str, ...] = ()
    """in place of `run.start`, starts the pipeline from its savepoint"""
    parallelism: tuple[int, ...] = ()
    """the numbers of subtasks that jobs are resumed with: {parallelism} in `resume`"""
    covers: str = ""
    """a regular expression with one group: how many records, in the order in which they were given, the stopped job
    had processed, in a line that a command which stops it prints.  Without it each stopped job is resumed"""


class Feed(Value, frozen=True, kw_only=True):
    """How records reach the pipeline."""

    to: str = "files"
    """files (that appear, whole, in {input}), kafka, socket or table"""
    format: str = "json-lines"
    """of files: json-lines or csv (with a header)"""
    servers: str = ""
    """Kafka: where its brokers listen"""
    topic: str = "input"
    """Kafka: where the records are written, as JSON"""
    port: str = ""
    """socket: where cutproof listens; each connection gets all records from the first, as JSON lines"""
    database: str = ""
    """table: a file of SQLite, or the URL of a PostgreSQL, as in an aim"""
    insert: str = ""
    """table: the INSERT of one record, with :key, :value and :tag for what it has"""
    columns: dict[str, str] = {}
    """other names for the columns key, value and tag; one that is named "" is not written"""
    last_record: dict[str, int] = {}
    """a record that is given twice behind all others, and is no part of the workload; what it lacks is 0.  Its event
    time is one at which every window of the others is over: an engine such as Spark puts out no window without it"""
    records_per_file: int = 10
    every_ms: int = 50
    at_once: bool = False
    """all records are there before the pipeline starts"""


class Read(Value, frozen=True, kw_only=True):
    """Where the committed output is read: files, or a table of a database."""

    format: str
    """json-lines, csv, parquet, delta, iceberg, sqlite, postgres, kafka or command"""
    path: str = ""
    """of files: a pattern such as {output}/*.jsonl; of SQLite: the database's file; of Delta and of Iceberg: the
    table's folder"""
    catalog: str = ""
    """Iceberg: the file of SQLite that has the table's catalog.  Without it the newest metadata of the folder is read,
    as in a Hadoop catalog"""
    query: str = ""
    """SQLite and PostgreSQL: a SELECT that gives the rows"""
    dsn: str = ""
    """PostgreSQL: how to connect; $NAME stands for a variable of the environment"""
    servers: str = ""
    """Kafka: where its brokers listen"""
    topic: str = ""
    """Kafka: whose values are the rows, as JSON; what transactions have not committed is not read"""
    command: tuple[str, ...] = ()
    """command: it prints the rows, as JSON lines"""
    columns: dict[str, str] = {}
    """other names for the columns key, value, tag and tag2; one that is left out of the output is named "" """
    every_ms: int = 100
    """how often a reader reads on the way"""


class Commits(Value, frozen=True, kw_only=True):
    """What the pipeline itself has recorded as committed, in the database of its output."""

    query: str = ""
    """SQL that yields one number n, asked in the snapshot in which the rows are read: visible rows may come only from
    the first n records"""


class Leaks(Value, frozen=True, kw_only=True):
    """What must not be left once the pipeline is at rest."""

    files: tuple[str, ...] = ()
    """patterns: no file and no folder may match one of them"""
    query: str = ""
    """SQL: it may have no row"""
    database: str = ""
    """what `query` is asked of, as in an aim"""


class Computes(Value, frozen=True, kw_only=True):
    """What the output has to be: the operators of the workload, in order, or a query."""

    sql: str = ""
    """a query that PySpark runs on the view `input`; its columns are those of `feed`, and it yields those of `read`"""

    steps: tuple[AnyOperator, ...] = ()
    """operators as in a scenario file; none: the records themselves"""
    time: str = ""
    """the column of a record, value or tag, that is its event time; windows need one"""
    delay: int = 0
    """the watermark is the greatest event time so far, minus this, minus 1"""


class Promises(Value, frozen=True, kw_only=True):
    """What the pipeline's owner promises of its output."""

    guarantee: str = "exactly-once"
    sink: str = "transactional"
    identity: str = "key"


class PipelineFile(Value, frozen=True, kw_only=True):
    """The whole file."""

    format: str
    name: str
    about: str = ""
    parameters: dict[str, str] = {}
    """names that are filled in like places, with what they stand for; `--vary` gives them other values"""
    needs: Needs = Needs()
    roles: dict[str, Role] = {}
    """the processes beside the pipeline's own, in the order in which they are started"""
    proxies: dict[str, Proxy] = {}
    """what goes through Toxiproxy"""
    run: Run
    commands: Commands = Commands()
    feed: Feed = Feed()
    read: Read
    commits: Commits = Commits()
    leaks: Leaks | None = None
    """without it nobody looks for what is left, and no-leaks is not judged"""
    computes: Computes = Computes()
    promises: Promises = Promises()
    aims: dict[str, Aim] = {}
    """by name; a kill waits until its aim is met"""
    stored: Aim | None = None
    """what shows that the pipeline has stored something to continue from; a kill waits for it"""
    restored: Aim | None = None
    """what shows that the process continued from a snapshot or a commit of its own after a kill; looked at when it is
    started again, and until it ends.  Without it no kill counts as exercise"""
    quiet: Aim | None = None
    """what shows that the pipeline has nothing left to do; no run ends before it is met and the output is complete,
    unless `run.timeout_s` has passed"""
    counters: dict[str, Aim] = {}
    """by name: what the pipeline counts itself, written like an aim; its value is kept, and nobody judges it"""
    keys: int = 5
    """how many keys the drawn records have"""
    values: int = 100
    """values are drawn from 0 to this"""


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline file that can be used, and the folder that it is in."""

    file: PipelineFile
    folder: Path
    path: Path
    parameters: dict[str, str]
    """what the file's parameters stand for in this use of it"""

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def programs(self) -> dict[str, Program]:
        """Every process, by name: its place among them is the number of the node that a fault hits."""
        return {OWN: self.file.run, **self.file.roles}

    def nodes(self) -> tuple[Node, ...]:
        """The workload's operators, named after their kinds."""
        found: list[Node] = []
        before = SOURCE
        for number, operator in enumerate(self.file.computes.steps):
            name = f"{operator.__struct_config__.tag}{number + 1}"
            found.append(Node(name=name, operator=operator, inputs=(before,)))
            before = name
        return tuple(found)

    def query(self) -> str | msgspec.UnsetType:
        """The digest of the query; unset if operators say what is computed."""
        text = self.file.computes.sql
        return f"sha256 {hashlib.sha256(text.encode()).hexdigest()}" if text else msgspec.UNSET

    def workload(self, records: tuple[tuple[int | None, int | None, int], ...]) -> tuple[Workload, Topology]:
        """The workload of one run; the harness feeds the records in their order, as one split."""
        computes = self.file.computes
        times = (tuple(record[RECORD.index(computes.time)] or 0 for record in records),) if computes.time else ()
        source = Input(name=SOURCE, splits=(records,), bounded=True, times=times, delay=computes.delay)
        workload = Workload(name=self.name, inputs=(source,), nodes=self.nodes(), query=self.query())
        return workload, lay_out(workload, dict.fromkeys([SOURCE, *(node.name for node in workload.nodes), "sink"], 1))
