"""A pipeline as a file (`cutproof-pipeline/1`, TOML): how it is started, fed, read and killed, and what it computes.

Nothing of the file is executed but the commands that its user wrote.  A command is a list of
arguments and is given to no shell.  In its arguments, and in paths, these names are filled in:
{input}, {output} and {state} are folders of their own for each run; {run} is a word of letters and
digits that no other run has, for the name of a table or a topic; {pipeline} is the folder of the
file; {python} is the interpreter that runs cutproof.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ...properties.model.workload import AnyOperator, Input, Node, Topology, User, Workload, problems
from ...properties.semantics.classes import FOLLOWING, class_of
from ..runtime.config import nearest
from ..runtime.exit_codes import UsageError
from ..scenario.reading import toml_of
from ..scenario.topologies import lay_out

FORMAT = "cutproof-pipeline/1"
WHAT = "a pipeline file"
PIPELINE = "pipeline:"
"""before the path of a pipeline's file, in a subject's name"""
PLACES = ("input", "output", "state", "run", "pipeline", "python")
RECORD = ("key", "value", "tag")
"""the columns that a record is fed with"""
ROW = ("key", "value", "tag", "tag2")
"""the columns of an output row, in the order of the workload's rows"""
SOURCE = "input"
HALFWAY = "halfway"
"""the aim that every pipeline has: some rows are visible, and others are not; it is met anew when more are visible"""


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the values of a pipeline file."""


class Run(Value, frozen=True, kw_only=True):
    """How the pipeline's process is started and stopped."""

    start: tuple[str, ...]
    restart: tuple[str, ...] | None = None
    """the command after a kill; the same as `start` if it is left out"""
    before: tuple[tuple[str, ...], ...] = ()
    """commands that are run to their end before the first start: one that makes a table, say"""
    after: tuple[tuple[str, ...], ...] = ()
    """commands that are run when the run is over"""
    restart_after_ms: int = 100
    environment: dict[str, str] = {}
    ends: bool = True
    """the process ends by itself, with exit code 0, when all input is processed; otherwise the harness stops it once
    its output is complete or `timeout_s` has passed"""
    timeout_s: float = 60.0
    """how long the pipeline may go on without a change of its output, once it is started and fed"""
    settle_s: float = 1.0
    """how long a pipeline that does not end is watched for repeated rows, once its output is complete"""


class Feed(Value, frozen=True, kw_only=True):
    """How records reach the pipeline: files that appear, whole, in {input}."""

    format: str = "json-lines"
    """json-lines or csv (with a header)"""
    columns: dict[str, str] = {}
    """other names for the columns key, value and tag; one that is named "" is not written"""
    records_per_file: int = 10
    every_ms: int = 50
    at_once: bool = False
    """all files are there before the pipeline starts"""


class Read(Value, frozen=True, kw_only=True):
    """Where the committed output is read: files, or a table of a database."""

    format: str
    """json-lines, csv, parquet, sqlite or postgres"""
    path: str = ""
    """of files: a pattern such as {output}/*.jsonl; of SQLite: the database's file"""
    query: str = ""
    """SQLite and PostgreSQL: a SELECT that gives the rows"""
    dsn: str = ""
    """PostgreSQL: how to connect; $NAME stands for a variable of the environment"""
    columns: dict[str, str] = {}
    """other names for the columns key, value, tag and tag2; one that is left out of the output is named "" """
    every_ms: int = 100
    """how often a reader reads on the way"""


class Computes(Value, frozen=True, kw_only=True):
    """What the output has to be: the operators of the workload, in order."""

    steps: tuple[AnyOperator, ...] = ()
    """operators as in a scenario file; none: the records themselves"""


class Promises(Value, frozen=True, kw_only=True):
    """What the pipeline's owner promises of its output."""

    guarantee: str = "exactly-once"
    sink: str = "transactional"
    identity: str = "key"


class Aim(Value, frozen=True, kw_only=True):
    """A moment that can be seen from outside: it is there as long as its predicate holds.

    Exactly one of `files`, `log` and `query` says what is looked at.
    """

    files: str = ""
    """a pattern: some file matches it"""
    without: str = ""
    """a pattern: for the newest file that matches `files`, no file of the same name matches this one"""
    log: str = ""
    """a regular expression: some line that the process has printed since it was started matches it"""
    query: str = ""
    """SQL: its first row's first column is true (not 0, NULL or empty)"""
    database: str = ""
    """what `query` is asked of: a file of SQLite, or the URL of a PostgreSQL (postgresql://…; $NAME stands for a
    variable of the environment)"""


class PipelineFile(Value, frozen=True, kw_only=True):
    """The whole file."""

    format: str
    name: str
    about: str = ""
    run: Run
    feed: Feed = Feed()
    read: Read
    computes: Computes = Computes()
    promises: Promises = Promises()
    aims: dict[str, Aim] = {}
    """by name; a kill waits until its aim is met"""
    stored: Aim | None = None
    """what shows that the pipeline has stored something to continue from; a kill waits for it"""
    restored: Aim | None = None
    """what shows that the process continued from a snapshot or a commit of its own after a kill; looked at when it is
    started again, and until it ends.  Without it no kill counts as exercise"""
    keys: int = 5
    """how many keys the drawn records have"""
    values: int = 100
    """values are drawn from 0 to this"""


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline file that can be used, and the folder that it is in."""

    file: PipelineFile
    folder: Path
    path: Path

    @property
    def name(self) -> str:
        return self.file.name

    def nodes(self) -> tuple[Node, ...]:
        """The workload's operators, named after their kinds."""
        found: list[Node] = []
        before = SOURCE
        for number, operator in enumerate(self.file.computes.steps):
            name = f"{operator.__struct_config__.tag}{number + 1}"
            found.append(Node(name=name, operator=operator, inputs=(before,)))
            before = name
        return tuple(found)

    def workload(self, records: tuple[tuple[int | None, int | None, int], ...]) -> tuple[Workload, Topology]:
        """The workload of one run; the harness feeds the records in their order, as one split."""
        source = Input(name=SOURCE, splits=(records,), bounded=True)
        workload = Workload(name=self.name, inputs=(source,), nodes=self.nodes())
        return workload, lay_out(workload, dict.fromkeys([SOURCE, *(node.name for node in workload.nodes), "sink"], 1))


def read_pipeline(path: Path) -> Pipeline:
    """The pipeline of a file; raises UsageError, in one line, for a file that cannot be used."""
    if not path.is_file():
        raise UsageError(f"there is no pipeline file {path}; `cutproof pipeline list` names the others")
    try:
        file = msgspec.convert(toml_of(path, WHAT), PipelineFile)
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply to be {WHAT}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} is not {WHAT}: {error}") from error
    if file.format != FORMAT:
        raise UsageError(f"{path} has the format {file.format!r}; this version reads {FORMAT}")
    pipeline = Pipeline(file=file, folder=path.resolve().parent, path=path.resolve())
    for problem in _problems(pipeline):
        raise UsageError(f"{path}: {problem}")
    return pipeline


def _problems(pipeline: Pipeline) -> list[str]:
    file = pipeline.file
    found = [
        f"{where}: {value!r} is none of {', '.join(known)}{nearest(value, known)}"
        for where, value, known in (
            ("feed.format", file.feed.format, ("json-lines", "csv")),
            ("read.format", file.read.format, ("json-lines", "csv", "parquet", "sqlite", "postgres")),
            ("promises.guarantee", file.promises.guarantee, ("exactly-once", "at-least-once", "at-most-once")),
            ("promises.sink", file.promises.sink, ("transactional", "idempotent", "plain")),
            ("promises.identity", file.promises.identity, ("key", "row")),
        )
        if value not in known
    ]
    found += _unknown_places(file)
    found += [
        f"feed.columns.{name}: a record has {', '.join(RECORD)}" for name in file.feed.columns if name not in RECORD
    ]
    found += [f"read.columns.{name}: a row has {', '.join(ROW)}" for name in file.read.columns if name not in ROW]
    found += [f"run.{name} is empty" for name, command in _commands(file) if not command]
    found += _read_problems(file.read)
    found += [f"aims.{HALFWAY}: every pipeline has an aim of this name already"] if HALFWAY in file.aims else []
    for name, aim in _aims_of(file):
        found += [f"{name}{problem}" for problem in _aim_problems(aim)]
    if found:
        return found
    if any(isinstance(step, User) for step in file.computes.steps):
        return ["computes.steps: a user's function has no place here; an operator of cutproof has"]
    workload, topology = pipeline.workload(((1, 1, 1),))
    found = [f"computes: {problem}" for problem in problems(workload, topology)]
    if not found and class_of(workload, topology) in FOLLOWING:
        found.append("computes.steps: the rows would follow an order that cannot be seen from outside")
    return found


def _aims_of(file: PipelineFile) -> list[tuple[str, Aim]]:
    """Every aim of the file, with its place."""
    found = [(f"aims.{name}", aim) for name, aim in file.aims.items()]
    found += [("stored", file.stored)] if file.stored is not None else []
    return found + ([("restored", file.restored)] if file.restored is not None else [])


def _commands(file: PipelineFile) -> list[tuple[str, tuple[str, ...]]]:
    found = [("start", file.run.start)]
    found += [] if file.run.restart is None else [("restart", file.run.restart)]
    found += [(f"before[{number}]", command) for number, command in enumerate(file.run.before)]
    return found + [(f"after[{number}]", command) for number, command in enumerate(file.run.after)]


def _unknown_places(file: PipelineFile) -> list[str]:
    texts = [(f"run.{name}", argument) for name, command in _commands(file) for argument in command]
    texts += [(f"run.environment.{name}", value) for name, value in file.run.environment.items()]
    texts += [(f"read.{field}", getattr(file.read, field)) for field in ("path", "query", "dsn")]
    for name, aim in _aims_of(file):
        texts += [(f"{name}.{field}", getattr(aim, field)) for field in ("files", "without", "query", "database")]
    return [
        f"{where}: {{{place}}} is none of {', '.join(f'{{{one}}}' for one in PLACES)}"
        for where, text in texts
        for place in re.findall(r"\{(\w+)\}", text)
        if place not in PLACES
    ]


def _read_problems(read: Read) -> list[str]:
    needed = {"sqlite": ("path", "query"), "postgres": ("dsn", "query")}.get(read.format, ("path",))
    found = [f"read.{field} is missing; {read.format} needs it" for field in needed if not getattr(read, field)]
    spare = [field for field in ("path", "query", "dsn") if field not in needed and getattr(read, field)]
    return found + [f"read.{field} does not go with {read.format}" for field in spare]


def _aim_problems(aim: Aim) -> list[str]:
    given = [field for field in ("files", "log", "query") if getattr(aim, field)]
    if len(given) != 1:
        return [": it takes one of files, log and query"]
    if aim.query and not aim.database:
        return [".database is missing; a query needs it"]
    if aim.log:
        try:
            re.compile(aim.log)
        except re.error as error:
            return [f".log is no regular expression: {error}"]
    return []


def filled(text: str, places: dict[str, str]) -> str:
    """A text with its places filled in."""
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text
