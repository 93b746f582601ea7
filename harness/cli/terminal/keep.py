"""What `--out` writes for a single run."""

from __future__ import annotations

from pathlib import Path

from ....properties.model.history import History
from ...scenario.model import Scenario


def keep_run(folder: Path, scenario: Scenario, history: History) -> None:
    """Write scenario and history into one folder, so that `cutproof judge` finds both."""
    from ...scenario.files import write_history, write_scenario

    folder.mkdir(parents=True, exist_ok=True)
    write_scenario(folder / "scenario.json", scenario)
    write_history(folder / "history.json", history)
