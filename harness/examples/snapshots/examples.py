"""The examples of the proposal on checkpoints, savepoints and snapshots (FLIP-47), in the order of the proposal."""

from __future__ import annotations

from .savepoints import AB_TEST, FAILURE_AFTER_SAVEPOINT
from .shared_files import RETAINED_INCREMENTAL
from .stopping import INCREMENTAL_STOP_AND_UPGRADE
from .two_histories import TWO_HISTORIES

ABOUT_SNAPSHOTS = (
    RETAINED_INCREMENTAL,
    FAILURE_AFTER_SAVEPOINT,
    INCREMENTAL_STOP_AND_UPGRADE,
    TWO_HISTORIES,
    AB_TEST,
)
