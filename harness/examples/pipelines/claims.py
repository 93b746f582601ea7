"""An example on a pipeline of bytes, and its claims."""

from __future__ import annotations

import msgspec

from ...reference_engine.pipelines.plan import Pipeline
from ...reference_engine.pipelines.run import PipelineRun
from ..claims import Claim

PipelineClaim = Claim[Pipeline, PipelineRun]
"""Its function may run the same pipeline altered."""


class PipelineExample(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example on a pipeline of bytes, and what the text says of it."""

    name: str
    about: str
    document: str
    pipeline: Pipeline
    claims: tuple[PipelineClaim, ...]
