"""What the planted defects are known to show on real processes, by tests/corpus/processes/ID.json.

The files of tests/corpus were shrunk in virtual time; many aim at moments that
processes, whose pace is the machine's, pass at other moments.  These are made by
hand: a little more input, and faults at protocol points.
"""

from __future__ import annotations

from pathlib import Path

from defects.differences import ON_PROCESSES

CORPUS = Path(__file__).parents[1] / "corpus" / "processes"

TOO_LONG = ("A16", "E11", "J07", "J08", "J10", "J18", "J25", "J29", "X03")
"""Nothing ends a run of these but its bound, after half a minute: measured for docs/defects.md, not run as tests."""

IN_POSTGRESQL = ("I06", "I12", "I19", "I22", "I37")
"""Their rows are written to PostgreSQL, those of the others to files."""

TESTED = tuple(defect for defect in ON_PROCESSES if defect not in TOO_LONG)
