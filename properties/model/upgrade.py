"""What a user changes in the operators of a job on resuming it (SNAP-5): the same words in scenarios and histories."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Upgrade(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The operators of the resumed job, as its user wishes them; and apart from that, how their states are found.

    An operator's states lie in snapshots under its uid, which is its name until it is renamed.
    """

    renamed: dict[str, str] = {}
    """by operator (input, node or sink): its uid from now on"""
    retyped: dict[str, str] = {}
    """by node, which is a sum: `hundredths` if it keeps and emits its sums in hundredths from now on, `whole` if not"""
    moves: dict[str, str] = {}
    """by uid in the snapshot: the uid under which the operator is now that takes the state"""
    converts: dict[str, str] = {}
    """by uid in the snapshot: how its state is converted to the type that its operator keeps now"""
    removed: tuple[str, ...] = ()
    """nodes that the job does not have from now on"""
    added: tuple[str, ...] = ()
    """nodes that the job has from now on: `later` ones of the workload, or those that were removed"""
    begin_empty: tuple[str, ...] = ()
    """uids of operators of which the snapshot has no state: they begin without one"""
    allow_non_restored_state: bool = False
    """states in the snapshot may be dropped that no operator takes, as with Flink's option of this name"""


WHOLE, HUNDREDTHS = "whole", "hundredths"
SCALES = {WHOLE: 1, HUNDREDTHS: 100}
"""By type of a sum's state: in how many parts of a whole it is."""

CONVERSION = "whole-to-hundredths"
"""The only conversion: nothing makes whole sums of hundredths."""


def types_after(types: Mapping[str, str], upgrade: Upgrade) -> dict[str, str]:
    """The types of the states of a job's sums after an upgrade; a sum whose state is whole is left out."""
    return {name: kind for name, kind in {**types, **upgrade.retyped}.items() if kind != WHOLE}


def absent_after(absent: tuple[str, ...], upgrade: Upgrade) -> tuple[str, ...]:
    """The nodes of the workload that a job does not have after an upgrade."""
    return tuple(sorted({*absent, *upgrade.removed} - {*upgrade.added}))


def uids_after(uids: Mapping[str, str], upgrade: Upgrade) -> dict[str, str]:
    """The uids of a job's operators after an upgrade; an operator whose uid is its name is left out."""
    return {name: uid for name, uid in {**uids, **upgrade.renamed}.items() if uid != name}
