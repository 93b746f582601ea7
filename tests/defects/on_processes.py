"""What the planted defects are known to show on real processes, by tests/corpus/processes/ID.json.

The files of tests/corpus were shrunk in virtual time; many aim at moments that
processes, whose pace is the machine's, pass at other moments.  These are made by
hand: a little more input, and faults at protocol points.
"""

from __future__ import annotations

from pathlib import Path

CORPUS = Path(__file__).parents[1] / "corpus" / "processes"

DIFFERENCES = {
    "A01": "sent after, applied before",
    "A03": "sent before, applied after",
    "A05": "input before state",
    "A07": "lost row",
    "A14": "another snapshot restored",
    "A15": "snapshot missing",
    "A16": "no rest",
    "D07": "loaded state differs",
    "D09": "loaded state differs",
    "D11": "loaded state differs",
    "D14": "loaded state differs",
    "D16": "loaded state differs",
    "E03": "file left",
    "E04": "unexplained failure",
    "E05": "unexplained failure",
    "E09": "unexplained failure",
    "E10": "command never returned",
    "E11": "input not covered",
    "E13": "job failed",
    "F01": "another snapshot restored",
    "F03": "repeated row",
    "F07": "unexplained failure",
    "F08": "another snapshot restored",
    "F09": "loaded state differs",
    "F12": "file missing",
    "F13": "unexplained failure",
    "F16": "record never read",
    "H01": "state differs",
    "H04": "state differs",
    "I01": "transaction differs",
    "I03": "commit outstanding",
    "I05": "commit outstanding",
    "I06": "transaction left",
    "I10": "unexplained failure",
    "I11": "commit outstanding",
    "I12": "lost row",
    "I18": "repeated row",
    "I19": "lost row",
    "I22": "commit outstanding",
    "I27": "transaction differs",
    "I32": "unexplained failure",
    "I35": "wrong row",
    "I37": "lost row",
    "I38": "unexplained failure",
    "J05": "transaction left",
    "J06": "snapshot missing",
    "J11": "window left",
    "J17": "commit before completion",
    "J23": "repeated row",
    "J26": "job failed",
    "K10": "applied twice",
    "L02": "watermark differs",
    "L06": "timer differs",
    "L07": "timer differs",
    "L08": "wrong row",
    "L10": "time differs",
    "M14": "sent before, applied after",
}
"""How each shows, of its invariant."""

TOO_LONG = ("A16", "E11")
"""Nothing ends a run of these but its bound, after half a minute: measured for docs/defects.md, not run as tests."""

NOT_YET = ("E07", "I09", "J07", "J08", "J10", "J18", "J25", "J29", "X03")
"""Caught in virtual time, and without a scenario for processes so far."""

IN_POSTGRESQL = ("I06", "I12", "I19", "I22", "I37")
"""Their rows are written to PostgreSQL, those of the others to files."""

TESTED = tuple(defect for defect in DIFFERENCES if defect not in TOO_LONG)
