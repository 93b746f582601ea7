"""`cutproof verify --pipeline … --vary NAME=A,B`: the same scenarios with several values of a parameter."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from ..runtime.exit_codes import ExitCode, UsageError
from .terminal.output import Output

if TYPE_CHECKING:
    from ..search.campaign import Verified

Prepare = Callable[[Iterable[str]], None]
"""fetches what subjects of these names need; raises a CutproofError for one that cannot be had"""
Verify = Callable[[argparse.Namespace, Output], "Verified"]
"""verifies the subject that its options name"""
WORST_FIRST = (
    ExitCode.VIOLATED,
    ExitCode.INTERRUPTED,
    ExitCode.HARNESS_FAILED,
    ExitCode.FELL_SHORT,
    ExitCode.HELD,
)
"""a violation stands, whatever else went wrong"""
VALUE = re.compile(r"[\w.+-]+")
PAGE, DATA = "variants.html", "variants.json"


def pipeline_called(options: argparse.Namespace, more: Mapping[str, str] | None = None) -> str:
    """The subject's name of the pipeline that the options name, with the parameters of `--set` and `more`.

    Raises UsageError for an option that does not go with a pipeline.
    """
    given = {"--subject": options.subject != "simulated", "--workload": options.workload, "--input": options.input}
    for name in [*(name for name, value in given.items() if value), *(["--tamper"] if options.tamper else [])]:
        raise UsageError(f"{name} does not go with --pipeline: the pipeline's file names the job, and cutproof runs it")
    from ..user_pipelines.library import path_of
    from ..user_pipelines.subject import name_of_pipeline

    parameters = dict(_split(one, "--set") for one in options.set)
    return name_of_pipeline(path_of(options.pipeline).resolve(), {**parameters, **(more or {})})


def verify_variants(options: argparse.Namespace, output: Output, prepare: Prepare, verify: Verify) -> ExitCode:
    """Verify the pipeline with each value, and set the runs side by side."""
    from ...reports.variants import Variants, headline, in_words, render_variants, table
    from ..runtime.version import package_version
    from ..scenario.files import write_whole
    from ..search.variants import differences, variant_of
    from ..search.verification import drawn_seed, new_folder, point_latest

    name, values = _values(options)
    seed = drawn_seed() if options.seed is None else options.seed
    out = options.out or new_folder(seed)
    subjects = {value: pipeline_called(options, {name: value}) for value in values}
    prepare(subjects.values())
    done, codes = [], []
    folders = {value: out / f"{name}={value}" for value in values}
    for value in values:
        output.say(f"{name} {value}")
        run = argparse.Namespace(**{**vars(options), "seed": seed, "out": folders[value], "subject": subjects[value]})
        verified = verify(run, output)
        done.append(variant_of(value, folders[value], int(verified.exit_code), verified.summary))
        codes.append(verified.exit_code)
        output.say()
        if verified.summary.interrupted or verified.exit_code == ExitCode.INTERRUPTED:
            break
    compared = {one.value: folders[one.value] for one in done}
    found = Variants(
        version=package_version(),
        pipeline=options.pipeline,
        parameter=name,
        seed=seed,
        variants=done,
        differences=differences(compared),
    )
    page = out / PAGE
    write_whole(page, render_variants(found).encode())
    write_whole(out / DATA, msgspec.json.format(msgspec.json.encode(found), indent=1))
    if options.out is None:
        point_latest(out)
    lines = [(invariant, *(cell.word for cell in cells)) for invariant, cells in table(found)]
    output.table((name, *(one.value for one in done)), lines)
    for one in found.differences:
        output.say(in_words(one))
    output.say(f"{headline(found)}. Side by side: {page}")
    output.result(found)
    return next(code for code in WORST_FIRST if code in codes)


def _values(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The parameter and its values; each names a folder, too."""
    name, text = _split(options.vary, "--vary")
    values = [value for value in text.split(",") if value]
    if len(values) < 2 or len(set(values)) < len(values):
        raise UsageError(f"--vary {options.vary}: it takes two values or more, such as {name}=1.0,1.1")
    for value in values:
        if not VALUE.fullmatch(value):
            raise UsageError(
                f"--vary {options.vary}: {value!r} cannot name a folder; it takes letters, digits and . _ + -"
            )
    if name in (_split(one, "--set")[0] for one in options.set):
        raise UsageError(f"--set and --vary both give values to {name}; leave one of them out")
    return name, values


def _split(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"{option} {text}: it takes NAME=VALUE")
    return name, value
