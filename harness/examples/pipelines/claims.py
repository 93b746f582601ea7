"""What an example in bytes claims, and how it is looked up in a run."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...reference_engine.pipelines.plan import Pipeline
from ...reference_engine.pipelines.run import NotConserved, PipelineRun
from ..claims import NotShown, Shown


class PipelineClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the text, and the function that finds it in a run, or in runs of the same pipeline altered.

    The function returns its evidence in words, or raises NotShown.
    """

    text: str
    look: Callable[[PipelineRun], str]
    assumes: str = ""
    """why no run of this pipeline could show otherwise; the claim is reported as an assumption then"""


class PipelineExample(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example on a pipeline of bytes, and what the text says of it."""

    name: str
    about: str
    document: str
    pipeline: Pipeline
    claims: tuple[PipelineClaim, ...]


def show(example: PipelineExample, run: PipelineRun) -> list[Shown]:
    """Look every claim of an example up in a run."""
    return [_look(claim, run) for claim in example.claims]


def _look(claim: PipelineClaim, run: PipelineRun) -> Shown:
    try:
        evidence = claim.look(run)
    except (NotShown, NotConserved) as instead:
        return Shown(text=claim.text, shown=False, evidence=str(instead))
    if claim.assumes:
        return Shown(text=claim.text, shown=False, assumed=True, evidence=f"{evidence}: {claim.assumes}")
    return Shown(text=claim.text, shown=True, evidence=evidence)
