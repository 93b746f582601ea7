"""What the planted defects are known to show on real processes, by tests/corpus/processes/ID.json.

The files of tests/corpus were shrunk in virtual time; many aim at moments that
processes, whose pace is the machine's, pass at other moments.  These are made by
hand: a little more input, and faults at protocol points.
"""

from __future__ import annotations

from pathlib import Path

from defects.differences import ON_PROCESSES

CORPUS = Path(__file__).parents[1] / "corpus" / "processes"

TOO_LONG = ("A16", "E11", "J07", "J08", "J10", "J18", "J25", "J29", "M02", "X03")
"""Nothing ends a run of these but its bound, after half a minute: measured for docs/defects.md, not run as tests."""

ALIKE = ("B04", "B07", "B10", "B13", "C04", "C06", "J09")
"""Wrong decisions on data in flight, beside seven others on it that are run as tests: measured, not run, as each run
takes two seconds."""

IN_POSTGRESQL = ("E14", "I06", "I12", "I19", "I22", "I37")
"""Their rows are written to PostgreSQL, those of the others to files."""

TESTED = tuple(defect for defect in ON_PROCESSES if defect not in (*TOO_LONG, *ALIKE))
