"""`cutproof chaos init`: write the files with which a scheduler runs the nightly job."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ..runtime.config import nearest
from ..runtime.exit_codes import ExitCode, UsageError
from .terminal.output import Output

if TYPE_CHECKING:
    from ..chaos.schedule import Job

FORMAT = "cutproof-schedule/1"


def init(words: list[str], options: argparse.Namespace, output: Output) -> ExitCode:
    """Write a scheduler's files into the working folder; none of them if one is there already."""
    from ..chaos.schedule import Schedule, Scheduler, schedule
    from ..scenario.files import write_whole

    schedulers = get_args(Scheduler)
    if len(words) != 1 or words[0] not in schedulers:
        if len(words) == 1:
            raise UsageError(f"chaos init does not know the scheduler {words[0]!r}{nearest(words[0], schedulers)}")
        raise UsageError(f"chaos init takes one scheduler: {', '.join(schedulers)}")
    scheduler: Scheduler = words[0]  # type: ignore[assignment]
    found: Schedule = schedule(scheduler, job_of(scheduler, options))
    there = next((name for name in found.files if Path(name).exists()), None)
    if there is not None:
        raise UsageError(f"{there} is there already; remove it first, or keep it")
    for name, text in found.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(Path(name), text.encode())
        output.say(f"written: {name}")
    output.say("What remains to be done:")
    for one in found.then:
        output.say(f"  {one}")
    output.result({"format": FORMAT, "files": list(found.files), "then": list(found.then)})
    return ExitCode.HELD


def job_of(scheduler: str, options: argparse.Namespace) -> Job:
    """What a scheduler has to run; raises UsageError for options that a schedule cannot have."""
    from ..chaos.schedule import Job

    if options.seed is not None:
        raise UsageError("a seed is given, but each night of a schedule draws its own; leave out --seed")
    bank, out = options.bank or Path(Job().bank), options.out or Path(Job().out)
    hosted = scheduler in ("github", "gitlab")
    for name, folder in (("--bank", bank), ("--out", out)):
        if hosted and (folder.is_absolute() or ".." in folder.parts):
            raise UsageError(f"{folder} is not in the repository; name a folder relative to it with {name}")
    return Job(
        bank=str(bank),
        out=str(out),
        budget_s=options.time or Job().budget_s,
        options=tuple(_passed_on(options)),
        folder=str(Path.cwd()),
        program="cutproof" if hosted else _program(),
    )


def _passed_on(options: argparse.Namespace) -> list[str]:
    """The options of the night that were given, as words."""
    given: list[tuple[str, object]] = [
        *(("--subject", one) for one in options.subjects),
        *(("--pipeline", one) for one in options.pipelines),
        ("--defect", options.defect),
        *(("--function", one) for one in options.functions),
        ("--workload", options.workload),
        ("--known-failures", options.known_failures),
        ("--profile", options.profile if options.profile != "nightly" else None),
        ("--workers", options.workers),
        ("--master", options.master),
    ]
    return [word for name, value in given if value is not None for word in (name, str(value))]


def _program() -> str:
    """This command's path: a scheduler of the machine has another PATH."""
    beside = Path(sys.executable).with_name("cutproof")
    return str(beside) if beside.exists() else shutil.which("cutproof") or "cutproof"
