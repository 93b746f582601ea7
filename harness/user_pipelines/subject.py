"""A pipeline of a user as a subject: its scenarios are records to be fed, and kills."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from msgspec.structs import replace

from ...faults.plan import AtAim, AtTime, KillNode
from ...properties.model.history import History
from ..runtime.exit_codes import UsageError
from ..scenario.model import Engine, Scenario
from ..subject.port import Capabilities, SubjectFailed
from .description import HALFWAY, PIPELINE, Pipeline, filled, read_pipeline
from .run import PipelineRun

MOST_KILLS = 2
AFTER_US = (0, 0, 1_000, 10_000, 50_000)
"""how long after its aim is met a kill comes"""
OCCURRENCES = (1, 1, 1, 2, 2, 3)
"""of `halfway`; an aim of the file may be met only once"""
AT_A_TIME, AT_OWN_AIM = 0.1, 0.5
"""how often a kill has a time, and how often the others have an aim of the file"""


class PipelineSubject:
    """Runs the pipeline of a file.  The scenarios are drawn here, since the job is the pipeline's own."""

    def __init__(self, path: Path) -> None:
        self.pipeline: Pipeline = read_pipeline(path)

    @property
    def name(self) -> str:
        return f"{PIPELINE}{self.pipeline.path}"

    @property
    def capabilities(self) -> Capabilities:
        promises = self.pipeline.file.promises
        return Capabilities(
            faults=frozenset({"kill-node"}),
            sources=frozenset({"bounded"}),
            guarantees=frozenset({promises.guarantee}),
            sinks=frozenset({promises.sink}),
            real_time=True,
        )

    def check(self) -> None:
        """Raise UsageError if the program of a command does not exist."""
        run = self.pipeline.file.run
        places = {"python": "python3", "pipeline": str(self.pipeline.folder)}
        for command in (run.start, run.restart or run.start, *run.before, *run.after):
            program = filled(command[0], places)
            if not program.startswith("{") and shutil.which(program) is None:
                raise UsageError(f"{self.pipeline.path}: there is no program {program!r}; `run` starts it")

    def draw(self, seed: int, index: int, *, max_records: int, max_faults: int) -> Scenario:
        """Scenario i of a seed."""
        dice = random.Random(f"{seed}/{index}")
        count = dice.randint(max(1, max_records // 2), max_records)
        kills = dice.randint(1, min(max_faults, MOST_KILLS))
        scenario = self._with_records(dice, count)
        return replace(scenario, faults=tuple(self._kill(dice, count) for _ in range(kills)), seed=f"{seed} {index}")

    def without_faults(self, records: int) -> Scenario:
        """A scenario of so many records, in which nothing is killed."""
        return self._with_records(random.Random(0), records)

    def _with_records(self, dice: random.Random, count: int) -> Scenario:
        file = self.pipeline.file
        records = tuple((dice.randrange(file.keys), dice.randint(0, file.values), tag + 1) for tag in range(count))
        workload, topology = self.pipeline.workload(records)
        engine = Engine(guarantee=file.promises.guarantee, sink=file.promises.sink)
        return Scenario(name=file.name, workload=workload, topology=topology, engine=engine, pipeline=file.name)

    def _kill(self, dice: random.Random, records: int) -> KillNode:
        """A kill at an aim: the aims of the file are as likely together as that of all pipelines; rarely at a time."""
        feed, aims = self.pipeline.file.feed, sorted(self.pipeline.file.aims)
        if dice.random() < AT_A_TIME:
            files = -(-records // feed.records_per_file)
            return KillNode(node=0, trigger=AtTime(at_us=dice.randint(0, files * feed.every_ms * 1_000 + 500_000)))
        own = bool(aims) and dice.random() < AT_OWN_AIM
        aim, occurrence = (dice.choice(aims), 1) if own else (HALFWAY, dice.choice(OCCURRENCES))
        return KillNode(node=0, trigger=AtAim(aim=aim, occurrence=occurrence, after_us=dice.choice(AFTER_US)))

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        """Run a scenario; raises SubjectFailed if it is not one of this pipeline, or if the pipeline cannot be
        started, fed or read."""
        workload = scenario.workload
        if workload.nodes != self.pipeline.nodes() or [len(one.splits) for one in workload.inputs] != [1]:
            raise SubjectFailed(f"the scenario is not one of {self.pipeline.path.name}: its workload is another")
        for fault in scenario.faults:
            if isinstance(fault.trigger, AtAim) and fault.trigger.aim not in (HALFWAY, *self.pipeline.file.aims):
                raise SubjectFailed(f"{self.pipeline.path.name} has no aim {fault.trigger.aim!r}")
        run = PipelineRun(self.pipeline, scenario)
        try:
            return run.history()
        finally:
            run.close()
