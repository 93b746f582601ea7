"""A pipeline of a user as a subject: its scenarios are records to be fed, and kills."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from msgspec.structs import replace

from ...faults.plan import AnyFault, AtAim, AtTime, ChannelFault, KillNode, PauseNode
from ...properties.model.history import History
from ..runtime.exit_codes import UsageError
from ..runtime.progress import Progress
from ..scenario.model import AnyCommand, Engine, Resume, Scenario, StopWithSavepoint, kind_of
from ..subject.port import Capabilities, SubjectFailed
from ..toxiproxy import program as toxiproxy
from .answers import Answers, query_of
from .description import HALFWAY, PIPELINE, Pipeline
from .library import SHIPPED, path_of
from .needs.extras import demand, modules_of
from .needs.supplies import demand_jdk, supplied
from .places import expanded, filled
from .processes.keeper import Keeper
from .proxying.drawing import breaks, drawn, kinds_of, problem_of
from .reading import commands_of, databases_of, read_pipeline
from .run import PipelineRun

if TYPE_CHECKING:
    from ...properties.spark.query import Query

SAMPLE = 60
"""records on which a query is tried before anything runs"""
MOST_KILLS = 2
AFTER_US = (0, 0, 1_000, 10_000, 50_000)
"""how long after its aim is met a kill comes"""
OCCURRENCES = (1, 1, 1, 2, 2, 3)
"""of `halfway`; an aim of the file may be met only once"""
PAUSES = 0.2
"""how often a fault is a pause, if a process may be both killed and paused"""
STOPS, RESUMES = 0.4, 0.7
"""how often the job is stopped with a savepoint, if the file says how, and how often a stopped one is resumed"""
THROUGH_PROXY = 0.5
"""how often a fault is one of a proxy, if processes may be killed or paused as well"""
AT_A_TIME, AT_OWN_AIM = 0.1, 0.5
"""how often a kill has a time, and how often the others have an aim of the file"""


def name_of_pipeline(path: Path, parameters: Mapping[str, str]) -> str:
    """A pipeline as a subject's name: `pipeline:PATH`, and its parameters behind a question mark, as in a URL.

    One of the package has its own name in place of the path: so it replays on another machine too.
    """
    called = next((name for name, shipped in SHIPPED.items() if shipped.path == path), path)
    return f"{PIPELINE}{called}" + (f"?{urlencode(parameters)}" if parameters else "")


def pipeline_called(name: str) -> PipelineSubject:
    """The pipeline of such a name, or of one in which a pipeline of the package stands in place of the path.

    Raises UsageError for a file that cannot be used.
    """
    whole = name.removeprefix(PIPELINE)
    path, sign, parameters = whole.rpartition("?")
    if not sign or Path(whole).is_file():
        return PipelineSubject(path_of(whole))
    return PipelineSubject(path_of(path), dict(parse_qsl(parameters, keep_blank_values=True)))


class PipelineSubject:
    """Runs the pipeline of a file.  The scenarios are drawn here, since the job is the pipeline's own."""

    def __init__(self, path: Path, parameters: Mapping[str, str] | None = None) -> None:
        self.pipeline: Pipeline = read_pipeline(path, parameters)
        self._given = dict(parameters or {})
        self._supplies: dict[str, str] | None = None
        self._query: Query | None = None

    @property
    def name(self) -> str:
        return name_of_pipeline(self.pipeline.path, self._given)

    @property
    def capabilities(self) -> Capabilities:
        promises, commands = self.pipeline.file.promises, self.pipeline.file.commands
        return Capabilities(
            faults=frozenset(kind for kind, hit in (("kill-node", self.killed), ("pause-node", self.paused)) if hit)
            | kinds_of(self.pipeline.file.proxies),
            commands=frozenset(
                kind for kind, given in (("stop-with-savepoint", self.stops), ("resume", commands.resume)) if given
            ),
            rescales=bool(commands.parallelism),
            sources=frozenset({"bounded"}),
            guarantees=frozenset({promises.guarantee}),
            sinks=frozenset({promises.sink}),
            real_time=True,
        )

    @property
    def killed(self) -> list[int]:
        """The numbers of the processes that are killed: places in `Pipeline.programs`."""
        return [number for number, one in enumerate(self.pipeline.programs.values()) if one.killed]

    @property
    def paused(self) -> list[int]:
        return [number for number, one in enumerate(self.pipeline.programs.values()) if one.paused]

    def check(self) -> None:
        """Raise UsageError if the program of a command, or the client of a format, is not installed, or if a variable
        of a database is not set; ServiceMissing if there is no JDK for a pipeline that needs one."""
        demand_jdk(self.pipeline)
        for where, database in databases_of(self.pipeline.file):
            try:
                expanded(database)
            except SubjectFailed as error:
                raise UsageError(f"{self.pipeline.path}: {where}: {error}") from error
        for name in modules_of(self.pipeline.file):
            demand(name)
        places = {"python": "python3", "pipeline": str(self.pipeline.folder)}
        for where, command in commands_of(self.pipeline.file):
            program = filled(command[0], places)
            if "/" in program and not program.startswith(("{", "/")):
                told = f"{where}: {program!r} is looked for in the run's own folder; a path begins with / or a place"
                raise UsageError(f"{self.pipeline.path}: {told}, such as {{pipeline}}")
            path = filled(self._environment_at(where).get("PATH", os.environ.get("PATH", os.defpath)), places)
            if not program.startswith("{") and "{" not in path and shutil.which(program, path=path) is None:
                raise UsageError(f"{self.pipeline.path}: there is no program {program!r}; {where} starts it")

    def _environment_at(self, where: str) -> dict[str, str]:
        """The variables that the file adds for a command, which has this place in it."""
        role = self.pipeline.file.roles.get(where.split(".")[1]) if where.startswith("roles.") else None
        return (role or self.pipeline.file.run).environment

    @property
    def asks_pyspark(self) -> bool:
        """Whether an SQL text says what the pipeline computes."""
        return bool(self.pipeline.file.computes.sql)

    def prepare(self, progress: Progress) -> None:
        """Fetch what the pipeline needs and is not there yet, and have PySpark check the file's SQL text.

        Raises HarnessFailed if something cannot be had, ServiceMissing if a proxy needs a Toxiproxy that cannot be had,
        and UsageError if the text cannot be used.
        """
        if self.asks_pyspark:
            progress.step("asking PySpark what the pipeline computes")
            try:
                self._answers(self.without_faults(SAMPLE))
            except SubjectFailed as error:
                raise UsageError(f"{self.pipeline.path}: {error}") from error
        self._supplies = supplied(self.pipeline, progress)
        if self.pipeline.file.proxies:
            toxiproxy.version(toxiproxy.ensure(progress))

    def _answers(self, scenario: Scenario) -> Answers | None:
        """The rows that PySpark computes of a scenario's records; None if operators say what is computed."""
        if not self.asks_pyspark:
            return None
        if self._query is None:
            self._query = query_of(self.pipeline)
        return Answers(self._query, scenario.workload.inputs[0].splits[0], self.pipeline.file.promises)

    def new_run(self, scenario: Scenario, *, watches_aims: bool = False) -> PipelineRun:
        """A run of a scenario, in a folder of its own; whoever asked for it closes it."""
        if self._supplies is None:
            self._supplies = supplied(self.pipeline)
        answers = self._answers(scenario)
        keeper = Keeper()
        try:
            return PipelineRun(
                self.pipeline, scenario, keeper, self._supplies, watches_aims=watches_aims, answers=answers
            )
        except BaseException:
            keeper.close()
            raise

    def draw(self, seed: int, index: int, *, max_records: int, max_faults: int) -> Scenario:
        """Scenario i of a seed."""
        dice = random.Random(f"{seed}/{index}")
        count = dice.randint(max(1, max_records // 2), max_records)
        kills = dice.randint(1, min(max_faults, MOST_KILLS))
        scenario = self._with_records(dice, count)
        faults = tuple(self._fault(dice, count, breaking=not number) for number in range(kills))
        return replace(scenario, faults=faults, commands=self._commands(dice, scenario), seed=f"{seed} {index}")

    def without_faults(self, records: int) -> Scenario:
        """A scenario of so many records, in which nothing is killed."""
        return self._with_records(random.Random(0), records)

    def _with_records(self, dice: random.Random, count: int) -> Scenario:
        file = self.pipeline.file
        records = tuple((dice.randrange(file.keys), dice.randint(0, file.values), tag + 1) for tag in range(count))
        workload, topology = self.pipeline.workload(records)
        engine = Engine(guarantee=file.promises.guarantee, sink=file.promises.sink)
        return Scenario(name=file.name, workload=workload, topology=topology, engine=engine, pipeline=file.name)

    def _fault(self, dice: random.Random, records: int, *, breaking: bool) -> AnyFault:
        """A kill of one of the processes, or rarely a pause, or a fault of a proxy.

        `breaking`: one that the pipeline cannot but notice, if it is a fault of a proxy.
        """
        trigger = self._trigger(dice, records)
        proxies = self.pipeline.file.proxies
        others = bool(self.killed or self.paused)
        if proxies and (breaks(proxies) or not breaking) and (not others or dice.random() < THROUGH_PROXY):
            return drawn(dice, proxies, trigger, breaking=breaking)
        if self.paused and (not self.killed or dice.random() < PAUSES):
            node = dice.choice(self.paused)
            for_ms = dice.choice([*self.pipeline.programs.values()][node].paused_for_ms)
            return PauseNode(node=node, for_us=for_ms * 1_000, trigger=trigger)
        return KillNode(node=dice.choice(self.killed) if len(self.killed) > 1 else self.killed[0], trigger=trigger)

    @property
    def stops(self) -> list[bool]:
        """The ways to stop the job, each by whether it drains."""
        commands = self.pipeline.file.commands
        return [drain for drain, given in ((False, commands.stop_with_savepoint), (True, commands.drain)) if given]

    def _can(self, command: AnyCommand) -> bool:
        """Whether the file says how a command is requested."""
        if isinstance(command, StopWithSavepoint):
            return command.drain in self.stops
        return isinstance(command, Resume) and bool(self.pipeline.file.commands.resume)

    def _commands(self, dice: random.Random, scenario: Scenario) -> tuple[AnyCommand, ...]:
        """A stop, and what comes after it: a drained job is not resumed."""
        commands = self.pipeline.file.commands
        if not self.stops or dice.random() >= STOPS:
            return ()
        records = len(scenario.workload.inputs[0].splits[0])
        stop = StopWithSavepoint(drain=dice.choice(self.stops), trigger=self._trigger(dice, records))
        resumed = bool(commands.resume) and not stop.drain and (not commands.covers or dice.random() < RESUMES)
        if not resumed:
            return (stop,)
        return stop, self.resume(scenario, dice.choice(commands.parallelism or (0,)))

    def resume(self, scenario: Scenario, subtasks: int) -> Resume:
        """The command that resumes the job at once, with so many subtasks (0: as many as it had)."""
        parallelism = dict.fromkeys(scenario.topology.parallelism, subtasks) if subtasks else {}
        return Resume(trigger=AtTime(at_us=0), parallelism=parallelism)

    def _trigger(self, dice: random.Random, records: int) -> AtTime | AtAim:
        """An aim: the aims of the file are as likely together as that of all pipelines; rarely a time."""
        feed, aims = self.pipeline.file.feed, sorted(self.pipeline.file.aims)
        if dice.random() < AT_A_TIME:
            files = -(-records // feed.records_per_file)
            return AtTime(at_us=dice.randint(0, files * feed.every_ms * 1_000 + 500_000))
        own = bool(aims) and dice.random() < AT_OWN_AIM
        aim, occurrence = (dice.choice(aims), 1) if own else (HALFWAY, dice.choice(OCCURRENCES))
        return AtAim(aim=aim, occurrence=occurrence, after_us=dice.choice(AFTER_US))

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        """Run a scenario; raises SubjectFailed if it is not one of this pipeline, or if the pipeline cannot be
        started, fed or read."""
        workload = scenario.workload
        mine = (self.pipeline.nodes(), self.pipeline.query(), [1])
        if (workload.nodes, workload.query, [len(one.splits) for one in workload.inputs]) != mine:
            raise SubjectFailed(f"the scenario is not one of {self.pipeline.path.name}: its workload is another")
        for one in (*scenario.faults, *scenario.commands):
            if isinstance(one.trigger, AtAim) and one.trigger.aim not in (HALFWAY, *self.pipeline.file.aims):
                raise SubjectFailed(f"{self.pipeline.path.name} has no aim {one.trigger.aim!r}")
        for command in scenario.commands:
            if not self._can(command):
                raise SubjectFailed(f"{self.pipeline.path.name} has no command for {kind_of(command)}")
        for fault in scenario.faults:
            if isinstance(fault, KillNode | PauseNode) and fault.node >= len(self.pipeline.programs):
                raise SubjectFailed(f"{self.pipeline.path.name} has no process {fault.node}")
            if isinstance(fault, ChannelFault) and (problem := problem_of(fault, self.pipeline.file.proxies)):
                raise SubjectFailed(f"{self.pipeline.path.name} has {problem}")
        run = self.new_run(scenario)
        try:
            return run.history()
        finally:
            run.close()
