"""How each planted defect shows: the difference that the violation of its invariant names."""

from __future__ import annotations

SIMULATED = {
    "A01": "sent after, applied before",
    "A03": "state differs",
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
    "E01": "snapshot missing",
    "E03": "file left",
    "E04": "unexplained failure",
    "E05": "unexplained failure",
    "E07": "command not obeyed",
    "E09": "unexplained failure",
    "E10": "command never returned",
    "E11": "input not covered",
    "E12": "nothing restored",
    "E13": "job failed",
    "F01": "another snapshot restored",
    "F03": "unexpected row",
    "F07": "unexplained failure",
    "F08": "another snapshot restored",
    "F09": "file missing",
    "F12": "file missing",
    "F13": "unexplained failure",
    "F16": "record never read",
    "H01": "state differs",
    "H04": "state differs",
    "I01": "transaction differs",
    "I03": "commit outstanding",
    "I04": "repeated row",
    "I05": "commit outstanding",
    "I06": "transaction left",
    "I09": "abort outstanding",
    "I10": "unexplained failure",
    "I11": "commit outstanding",
    "I12": "lost row",
    "I14": "half a checkpoint seen",
    "I18": "repeated row",
    "I19": "lost row",
    "I22": "commit outstanding",
    "I27": "transaction differs",
    "I32": "unexplained failure",
    "I35": "wrong row",
    "I37": "lost row",
    "I38": "unexplained failure",
    "J01": "end of data too early",
    "J02": "window left",
    "J05": "transaction left",
    "J06": "snapshot missing",
    "J07": "job never ended",
    "J08": "no rest",
    "J10": "no rest",
    "J11": "window left",
    "J17": "commit before completion",
    "J18": "no rest",
    "J21": "record never read",
    "J23": "repeated row",
    "J25": "no rest",
    "J26": "job failed",
    "J29": "input not covered",
    "K01": "split held twice",
    "K04": "repeated row",
    "K07": "repeated row",
    "K09": "record never read",
    "K10": "repeated row",
    "K11": "split held by nobody",
    "L02": "watermark differs",
    "L03": "watermark differs",
    "L06": "timer differs",
    "L07": "timer differs",
    "L08": "unexpected row",
    "L09": "idle too soon",
    "L10": "time differs",
    "M14": "sent before, applied after",
    "X03": "input not covered",
}
"""By tests/corpus/ID.json in virtual time.  What has deleted or lost a snapshot shows as the failure of the task that
misses it."""

NOT_ON_PROCESSES = ("E01", "E12", "I09", "J21", "L03", "L09")
"""Caught in virtual time, and without a scenario for processes: docs/defects.md says why."""

_OTHERWISE = {
    "A03": "sent before, applied after",
    "F03": "repeated row",
    "F09": "loaded state differs",
    "J25": "input not covered",
    "K04": "wrong row",
    "K07": "applied twice",
    "K10": "applied twice",
    "L08": "wrong row",
}

ON_PROCESSES = {
    defect: _OTHERWISE.get(defect, difference)
    for defect, difference in SIMULATED.items()
    if defect not in NOT_ON_PROCESSES
}
"""By tests/corpus/processes/ID.json, which is another scenario: some show there in another way."""
