"""The stage of a job's life (`vocabulary.stages`), which is one, although several machines lead the job through it."""

from __future__ import annotations

from ..vocabulary.stages import Listing, Stage


class JobLife:
    """The life of one job; the machine that begins a stage sets it, and the stage before is over."""

    __slots__ = ("stage",)

    def __init__(self) -> None:
        self.stage: Stage = Listing()
