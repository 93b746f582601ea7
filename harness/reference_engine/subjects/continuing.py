"""Runs that begin from a snapshot in a directory, or leave their own snapshots in one: what both subjects share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...scenario.model import Scenario

if TYPE_CHECKING:
    from ..snapshots.beginning import Beginning


class Continued:
    """A subject of the reference engine, as `subject.port.Continuing`."""

    _begins: Beginning | None = None
    _leaves: Path | None = None

    def begin_from(self, folder: Path, snapshot: str, scenario: Scenario) -> Scenario:
        from ..snapshots.beginning import beginning

        self._begins = beginning(folder, snapshot, scenario)
        return self._begins.past.scenario

    def leave_in(self, folder: Path) -> None:
        from ..snapshots.beginning import demand_new

        demand_new(folder)
        self._leaves = folder
