"""Reads a pipeline's file, and says in one line why it cannot be used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...properties.model.operators import Session, Sliding, Tumbling
from ...properties.model.workload import User, problems
from ...properties.semantics.classes import FOLLOWING, class_of
from ..runtime.config import nearest
from ..runtime.exit_codes import UsageError
from ..scenario.reading import toml_of
from .description import (
    BREAKING,
    FORMAT,
    HALFWAY,
    OWN,
    RECORD,
    ROW,
    Aim,
    Commands,
    Computes,
    Feed,
    Leaks,
    Needs,
    Pipeline,
    PipelineFile,
    Program,
    Read,
    Role,
)
from .limits import column_problems, number_problems, pause_problems
from .places import NAME, NAME_IN_WORDS, PARALLELISM, PLACES, is_port, places_in
from .proxying.problems import is_port_or_its_place, proxy_problems

WHAT = "a pipeline file"
READ_FIELDS: dict[str, tuple[str, ...]] = {
    "json-lines": ("path",),
    "csv": ("path",),
    "parquet": ("path",),
    "delta": ("path",),
    "iceberg": ("path",),
    "sqlite": ("path", "query"),
    "postgres": ("dsn", "query"),
    "kafka": ("servers", "topic"),
    "command": ("command",),
}
"""what each format of the output needs"""
FEED_FIELDS: dict[str, tuple[str, ...]] = {
    "files": (),
    "kafka": ("servers",),
    "socket": ("port",),
    "table": ("database", "insert"),
}
"""what each kind of feed needs"""
PROVIDED_BY = {"venv": "python", "jars": "jars", "java_home": "java"}
"""which list of needs a place is a folder of"""
COMMANDS = "commands"
"""the name under which the commands of a job are logged, beside the processes"""
TIMES = ("value", "tag")
"""the columns of a record that may be its event time"""
MOST_RECORDS = 1_000
"""more than any profile draws; the tag of a record is its number"""
ARTIFACT = re.compile(r"[\w.{}-]+:[\w.{}-]+:[\w.{}-]+")


def read_pipeline(path: Path, parameters: Mapping[str, str] | None = None) -> Pipeline:
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
    for name in parameters or {}:
        if name not in file.parameters:
            known = ", ".join(file.parameters) or "none"
            raise UsageError(f"{path} has no parameter {name!r}{nearest(name, file.parameters)}; it has {known}")
    stand_for = {**file.parameters, **(parameters or {})}
    pipeline = Pipeline(file=file, folder=path.resolve().parent, path=path.resolve(), parameters=stand_for)
    for problem in _problems(pipeline):
        raise UsageError(f"{path}: {problem}")
    return pipeline


def _problems(pipeline: Pipeline) -> list[str]:
    file = pipeline.file
    found = [
        f"{where}: {value!r} is none of {', '.join(known)}{nearest(value, known)}"
        for where, value, known in (
            ("feed.to", file.feed.to, tuple(FEED_FIELDS)),
            ("feed.format", file.feed.format, ("json-lines", "csv")),
            ("read.format", file.read.format, tuple(READ_FIELDS)),
            ("promises.guarantee", file.promises.guarantee, ("exactly-once", "at-least-once", "at-most-once")),
            ("promises.sink", file.promises.sink, ("transactional", "idempotent", "plain")),
            ("promises.identity", file.promises.identity, ("key", "row")),
        )
        if value not in known
    ]
    found += _unknown_places(pipeline)
    found += [
        f"feed.columns.{name}: a record has {', '.join(RECORD)}" for name in file.feed.columns if name not in RECORD
    ]
    found += [
        f"feed.last_record.{name}: a record has {', '.join(RECORD)}"
        for name in file.feed.last_record
        if name not in RECORD
    ]
    found += [f"read.columns.{name}: a row has {', '.join(ROW)}" for name in file.read.columns if name not in ROW]
    found += [f"{where} is empty" for where, command in commands_of(file) if not command]
    found += _text_problems(file)
    found += number_problems(file) + pause_problems(_programs(file)) + column_problems(file)
    found += _feed_problems(file.feed) + _read_problems(file.read) + _commits_problems(file)
    found += _leaks_problems(file.leaks)
    found += _computes_problems(file.computes) + _last_record_problems(file)
    found += [
        *_name_problems(file),
        *_port_problems(file),
        *_needs_problems(file.needs),
        *_command_problems(file.commands),
    ]
    found += proxy_problems(file, _texts_of_commands(file), _texts_of_cutproof(file))
    breaks = any(kind in BREAKING for proxy in file.proxies.values() for kind in proxy.faults)
    if not breaks and not any(program.killed or program.paused for _, program in _programs(file)):
        found.append("run.killed: no process of the pipeline is killed or paused, so nothing would be tried")
    for name, aim in aims_of(file):
        found += [f"{name}{problem}" for problem in _aim_problems(aim, file.roles)]
    if found:
        return found
    if any(isinstance(step, User) for step in file.computes.steps):
        return ["computes.steps: a user's function has no place here; an operator of cutproof has"]
    workload, topology = pipeline.workload(((1, 1, 1),))
    found = [f"computes: {problem}" for problem in problems(workload, topology)]
    if not found and class_of(workload, topology) in FOLLOWING:
        found.append("computes.steps: the rows would follow an order that cannot be seen from outside")
    return found


def aims_of(file: PipelineFile) -> list[tuple[str, Aim]]:
    """Every aim and every counter of the file, with its place."""
    found = {f"aims.{name}": aim for name, aim in file.aims.items()}
    single: dict[str, Aim | None] = {"stored": file.stored, "restored": file.restored, "quiet": file.quiet}
    for where, program in _programs(file):
        single[f"{where}.busy"] = program.busy
    for name, proxy in file.proxies.items():
        single |= {f"proxies.{name}.busy": proxy.busy, f"proxies.{name}.restored": proxy.restored}
    for name, role in file.roles.items():
        single |= {f"roles.{name}.ready": role.ready, f"roles.{name}.restored": role.restored}
    found |= {f"counters.{name}": counter for name, counter in file.counters.items()}
    return [*found.items(), *((where, aim) for where, aim in single.items() if aim is not None)]


def databases_of(file: PipelineFile) -> list[tuple[str, str]]:
    """Every database that the file names, with its place."""
    found = [("read.dsn", file.read.dsn), ("feed.database", file.feed.database)]
    found += [] if file.leaks is None else [("leaks.database", file.leaks.database)]
    return [*found, *((f"{where}.database", aim.database) for where, aim in aims_of(file))]


def _programs(file: PipelineFile) -> list[tuple[str, Program]]:
    """Every process of the file, with its place."""
    return [("run", file.run), *((f"roles.{name}", role) for name, role in file.roles.items())]


def commands_of(file: PipelineFile) -> list[tuple[str, tuple[str, ...]]]:
    """Every command of the file, with its place."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for where, program in _programs(file):
        found.append((f"{where}.start", program.start))
        found += [] if program.restart is None else [(f"{where}.restart", program.restart)]
        found += [(f"{where}.before[{number}]", command) for number, command in enumerate(program.before)]
    found += [("read.command", file.read.command)] if file.read.format == "command" else []
    found += [(f"run.after[{number}]", command) for number, command in enumerate(file.run.after)]
    given = {name: getattr(file.commands, name) for name in ("stop_with_savepoint", "drain", "resume")}
    return found + [(f"commands.{name}", command) for name, command in given.items() if command]


def _texts(file: PipelineFile) -> list[tuple[str, str]]:
    """Every text of the file in which places are filled in for a run, with its place."""
    return _texts_of_commands(file) + _texts_of_cutproof(file)


def _texts_of_commands(file: PipelineFile) -> list[tuple[str, str]]:
    """The texts that commands are given."""
    texts = [(where, argument) for where, command in commands_of(file) for argument in command]
    for where, program in _programs(file):
        texts += [(f"{where}.environment.{name}", value) for name, value in program.environment.items()]
    return texts


def _texts_of_cutproof(file: PipelineFile) -> list[tuple[str, str]]:
    """The texts that say what cutproof itself feeds, reads, looks at and hits."""
    texts = [(f"{where}.port", program.port) for where, program in _programs(file)]
    texts += [(f"read.{field}", value) for field, value in _texts_of(file.read)]
    texts.append(("commits.query", file.commits.query))
    texts += [(f"feed.{field}", value) for field, value in _texts_of(file.feed)]
    if file.leaks is not None:
        texts += [("leaks.files", pattern) for pattern in file.leaks.files]
        texts += [(f"leaks.{field}", value) for field, value in _texts_of(file.leaks)]
    for where, aim in aims_of(file):
        texts += [(f"{where}.{field}", value) for field, value in _texts_of(aim) if field != "log"]
    return texts


def _text_problems(file: PipelineFile) -> list[str]:
    """Texts and names that no command can be given."""
    texts = [*_texts(file), *((f"parameters.{name}", value) for name, value in file.parameters.items())]
    return [f"{where}: a text cannot have a NUL character" for where, text in texts if "\0" in text] + [
        f"{where}.environment: {name!r} is no name of a variable: it is empty, or has = or a NUL character"
        for where, program in _programs(file)
        for name in program.environment
        if not name or "=" in name or "\0" in name
    ]


def _unknown_places(pipeline: Pipeline) -> list[str]:
    file = pipeline.file
    known = [*(place for place in PLACES if place != PARALLELISM), *pipeline.parameters]
    found = [
        f"{where}: {{{place}}} is none of {', '.join(f'{{{one}}}' for one in known)};"
        f" {{{{{place}}}}} stands for the text itself"
        for where, text in _texts(file)
        for place in places_in(text)
        if place not in known and not is_port(place) and (place, where) != (PARALLELISM, "commands.resume")
    ]
    found += [
        f"{where}: {{{place}}} is not there, since needs.{PROVIDED_BY[place]} is empty"
        for where, text in _texts(file)
        for place in places_in(text)
        if place in PROVIDED_BY and not getattr(file.needs, PROVIDED_BY[place])
    ]
    # What is needed is fetched before there is a run: nothing but parameters is known then.
    needed = (*file.needs.python, *file.needs.jars)
    return found + [
        f"needs: {{{place}}} in {text!r} is no parameter of the file"
        for text in needed
        for place in places_in(text)
        if place not in pipeline.parameters
    ]


def _texts_of(value: msgspec.Struct) -> list[tuple[str, str]]:
    """The fields of a value that are text."""
    return [(name, text) for name, text in msgspec.structs.asdict(value).items() if isinstance(text, str)]


def _name_problems(file: PipelineFile) -> list[str]:
    """Names that mean something else already, or that nothing could be filled in for."""
    found = [f"aims.{HALFWAY}: every pipeline has an aim of this name already"] if HALFWAY in file.aims else []
    found += [f"roles.{OWN}: this is the name of the pipeline's own process"] if OWN in file.roles else []
    found += [f"roles.{COMMANDS}: the commands of a job have this name"] if COMMANDS in file.roles else []
    found += [f"roles.{name}: {NAME_IN_WORDS}" for name in file.roles if not NAME.fullmatch(name)]
    for name in file.parameters:
        if name in PLACES or is_port(name):
            found.append(f"parameters.{name}: a place has this name already")
        elif not name.isidentifier():
            found.append(f"parameters.{name}: a name has letters, digits and underscores")
    return found


def _port_problems(file: PipelineFile) -> list[str]:
    """Ports of processes that are none, or at which it would not be clear who is hit."""
    found: list[str] = []
    listened: dict[str, str] = {}
    for where, program in _programs(file):
        if not program.port:
            continue
        if not is_port_or_its_place(program.port):
            found.append(
                f"{where}.port: {program.port!r} is neither the place of a port, such as {{port1}}, nor a port"
            )
        if program.port in listened:
            found.append(f"{where}.port: it is that of {listened[program.port]} already")
        listened[program.port] = where
    if file.run.port and file.run.spare:
        found.append("run.port does not go with spare: a spare takes over after a kill of the whole command")
    return found


def _needs_problems(needs: Needs) -> list[str]:
    return [f"needs.jars: {one!r} is not group:name:version" for one in needs.jars if not ARTIFACT.fullmatch(one)]


def _command_problems(commands: Commands) -> list[str]:
    """Commands of which another has no use, and places that nothing could be filled in for."""
    found = []
    stops = commands.stop_with_savepoint or commands.drain
    if commands.resume and not commands.stop_with_savepoint:
        found.append("commands.resume: no job is stopped with a savepoint that it could be resumed from")
    if stops and not commands.covers and not commands.resume:
        found.append("commands.covers is missing: nothing would say what a stopped job has to have put out")
    if commands.drain and not commands.covers:
        found.append("commands.covers is missing: nothing would say what a drained job has to have put out")
    used = any(PARALLELISM in places_in(argument) for argument in commands.resume)
    if used is not bool(commands.parallelism):
        found.append("commands.parallelism goes with {parallelism} in commands.resume, and the other way round")
    return found + [f"commands{problem}" for problem in _pattern_problems("covers", commands.covers, groups=1)]


def _pattern_problems(field: str, pattern: str, *, groups: int = 0) -> list[str]:
    """What is wrong with a regular expression that has to have so many groups at least."""
    try:
        if pattern and re.compile(pattern).groups < groups:
            return [f".{field} has no group: what is looked for has to be in parentheses"]
    except re.error as error:
        return [f".{field} is no regular expression: {error}"]
    return []


def _read_problems(read: Read) -> list[str]:
    found = _missing_and_spare("read", read, read.format, READ_FIELDS)
    if read.catalog and read.format != "iceberg":
        found.append(f"read.catalog does not go with {read.format}")
    return found


def _feed_problems(feed: Feed) -> list[str]:
    found = _missing_and_spare("feed", feed, feed.to, FEED_FIELDS)
    if feed.to != "files" and feed.format != "json-lines":
        found.append(f"feed.format does not go with {feed.to}")
    return found


def _commits_problems(file: PipelineFile) -> list[str]:
    if file.commits.query and "query" not in READ_FIELDS.get(file.read.format, ()):
        return [f"commits.query: it is asked of the database that the rows are in, and {file.read.format} is none"]
    return []


def _leaks_problems(leaks: Leaks | None) -> list[str]:
    if leaks is None:
        return []
    if not leaks.files and not leaks.query:
        return ["leaks: it takes files, or query and database"]
    if not all(leaks.files):
        return ["leaks.files: a pattern is empty"]
    if leaks.query and not leaks.database:
        return ["leaks.database is missing; query needs it"]
    return ["leaks.database goes with query"] if leaks.database and not leaks.query else []


def _computes_problems(computes: Computes) -> list[str]:
    """What does not go with a query (PySpark says later whether the query itself can be used), and no event time."""
    given = {"steps": bool(computes.steps), "time": bool(computes.time), "delay": bool(computes.delay)}
    found = [f"computes.{name} does not go with sql" for name, there in given.items() if there and computes.sql]
    if computes.time and computes.time not in TIMES:
        found.append(f"computes.time: {computes.time!r} is none of {', '.join(TIMES)}")
    return found


def _last_record_problems(file: PipelineFile) -> list[str]:
    """A last record whose own row would come out, or that would close no window of all the others."""
    computes, name = file.computes, file.computes.time
    if not file.feed.last_record:
        return []
    if computes.sql:
        return ["feed.last_record does not go with sql: the query's rows are those of the other records"]
    windows = [step for step in computes.steps if isinstance(step, Tumbling | Sliding | Session)]
    if not windows or name not in TIMES:
        return ["feed.last_record goes with a window of event time in computes.steps: other steps put out its own row"]
    longest = max(step.gap if isinstance(step, Session) else step.size for step in windows)
    least = (file.values if name == "value" else MOST_RECORDS) + longest + computes.delay
    if file.feed.last_record.get(name, 0) >= least:
        return []
    return [f"feed.last_record.{name}: it has to be {least} at least, so that it is behind every window of the others"]


def _missing_and_spare(where: str, value: Feed | Read, kind: str, fields: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Fields that a kind of feed or output needs and that are empty, and those that only other kinds have."""
    needed = fields.get(kind, ())
    others = {field for all_of_one in fields.values() for field in all_of_one} - set(needed)
    found = [f"{where}.{field} is missing; {kind} needs it" for field in needed if not getattr(value, field)]
    return found + [f"{where}.{field} does not go with {kind}" for field in sorted(others) if getattr(value, field)]


def _aim_problems(aim: Aim, roles: Mapping[str, Role]) -> list[str]:
    given = [field for field in ("files", "log", "query", "url") if getattr(aim, field)]
    if len(given) != 1:
        return [": it takes one of files, log, query and url"]
    for main, other in (("query", "database"), ("url", "json")):
        if getattr(aim, main) and not getattr(aim, other):
            return [f".{other} is missing; {main} needs it"]
        if getattr(aim, other) and not getattr(aim, main):
            return [f".{other} goes with {main}"]
    if aim.role and not aim.log:
        return [".role goes with log"]
    if aim.role and aim.role not in roles:
        return [f".role: there is no role {aim.role!r}{nearest(aim.role, roles)}"]
    return _pattern_problems("log", aim.log)
