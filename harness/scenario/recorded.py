"""A recorded history and the scenario of its run, read from two files that may come from anybody."""

from __future__ import annotations

import textwrap
from pathlib import Path

from ...properties.model.history import History
from ..runtime.exit_codes import UsageError
from .files import read_history, read_scenario
from .history_checks import history_problems, in_one_line, spelt_empty
from .history_witnesses import missing_parts
from .model import Scenario

LINE = 280
"""how many characters a line about a wrong history has"""


def read_recorded(recorded: Path, named: Path) -> tuple[Scenario, History]:
    """Raises UsageError for a file that cannot be read, for a history that lacks a required part, and for one that
    names what does not exist."""
    history = read_history(recorded)
    scenario = read_scenario(named)
    data = recorded.read_bytes()
    problem = missing_parts(data) or in_one_line(history_problems(scenario, history, spelt_empty(data)))
    if problem:
        raise UsageError(textwrap.shorten(f"{recorded}: {problem}", LINE, placeholder=" ..."))
    return scenario, history
