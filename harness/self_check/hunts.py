"""The templates that are drawn when a planted defect is hunted.

A defect without templates of its own is hunted with all that `verify` draws.
"""

from __future__ import annotations

from ..generate.situations.templates import SHARES

HINTS: dict[str, tuple[str, ...]] = {
    "A05": ("slow-restore",),
    "A14": ("late-acknowledgement",),
    "A16": ("crash-after-reuse",),
    "B10": ("S5",),
    **dict.fromkeys(("B02", "B15", "C01", "C04", "C08"), ("S3",)),
    "B04": ("declined-upstream",),
    "B09": ("given-up-meanwhile",),
    "B07": ("overlapping",),
    **dict.fromkeys(("P01", "P02", "P03", "P04"), ("S3",)),
    "C06": ("handed-over",),
    **dict.fromkeys(("C07", "D01"), ("S4",)),
    "B13": ("S5",),
    **dict.fromkeys(("D07", "D08"), ("laid-out-sparsely",)),
    **dict.fromkeys(("D09", "D11", "D14"), ("laid-out-anew",)),
    "E01": ("regional",),
    "E05": ("slow-record",),
    "E07": ("S9",),
    "E09": ("slow-record",),
    "E12": ("regional",),
    "E13": ("last-restart",),
    "E14": ("timed-out",),
    "F01": ("unreadable-record",),
    "F03": ("crash-after-savepoint",),
    "F08": ("crash-after-savepoint",),
    **dict.fromkeys(("G02", "G03", "G13", "G18"), ("shared-files",)),
    "G07": ("inherited-files",),
    "G08": ("claimed",),
    "G09": ("declined-first",),
    "H06": ("kept-to-the-end",),
    "I04": ("crash-after-reuse",),
    "I05": ("S7",),
    "I09": ("S7", "S9", "crash-before-commit"),
    **dict.fromkeys(("I10", "I11"), ("S7",)),
    "I12": ("crash-before-commit",),
    "I32": ("slow-record",),
    "I35": ("zombie-upsert",),
    "J02": ("S9",),
    "J06": ("S8",),
    "J07": ("S8", "S9"),
    "J08": ("ended-unheard",),
    "J09": ("ended-in-flight",),
    "J10": ("S8",),
    "J18": ("S8", "S9"),
    "J21": ("partly-stopped",),
    "J25": ("S8",),
    "J26": ("S8",),
    "J29": ("S9",),
    "K01": ("given-meanwhile",),
    "K04": ("S10",),
    "K07": ("S10",),
    "K09": ("S10",),
    "K11": ("S10",),
    "K12": ("general",),
    "L03": ("idle-and-back",),
    "L09": ("S11",),
    "M02": ("late-cancel",),
    **dict.fromkeys(("P05", "P06", "P07", "P08", "P09"), ("local",)),
    "P10": ("begun-as-another",),
    **dict.fromkeys(("P11", "P12", "P13"), ("retained",)),
    **dict.fromkeys(("P14", "P15", "P16"), ("forked-increments",)),
    **dict.fromkeys(("P21", "P22", "P23", "P24"), ("deleted",)),
    **dict.fromkeys(("P25", "P26", "P27"), ("claimed",)),
    **dict.fromkeys(("P35", "P36", "P37", "P49"), ("copied",)),
    **dict.fromkeys(("P28", "P29", "P30"), ("referred",)),
    **dict.fromkeys(("D17", "P41", "P42", "P43", "P44"), ("upgraded",)),
    **dict.fromkeys(("P45", "P46", "P47", "P48"), ("other-operators",)),
    "P50": ("overtaken",),
    **dict.fromkeys(("P31", "P32", "P33"), ("failing-store",)),
    "P34": ("undeleted-record",),
    "X03": ("S8",),
}
"""by defect: the templates that have what its bug needs, if the others seldom have it"""


def templates_for(defect: str) -> tuple[str, ...]:
    """The names of the templates with which a defect is hunted, each drawn as often as its share says."""
    return HINTS.get(defect, tuple(SHARES))
