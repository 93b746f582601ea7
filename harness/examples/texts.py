"""The texts whose examples run by name, each with its one name in code and documents."""

from __future__ import annotations

COURSE = "the course on consistent snapshots"
DESCRIPTION = "Flink's first description of its checkpointing"
POST = "the post on checkpoints after tasks finished, FLIP-147"
PROPOSAL = "the proposal on checkpoints, savepoints and snapshots, FLIP-47"
