"""An example on a pipeline of bytes, and its claims."""

from __future__ import annotations

import msgspec

from ...reference_engine.pipelines.plan import Pipeline
from ...reference_engine.pipelines.run import PipelineRun
from ..claims import Claim

PipelineClaim = Claim[Pipeline, PipelineRun]
"""a claim about a pipeline; its function may run altered copies of the pipeline"""


class PipelineExample(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example on a pipeline of bytes, and the claims of its text."""

    name: str
    about: str
    document: str
    pipeline: Pipeline
    claims: tuple[PipelineClaim, ...]
