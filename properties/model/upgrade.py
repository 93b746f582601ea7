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
    moves: dict[str, str] = {}
    """by uid in the snapshot: the uid under which the operator is now that takes the state"""


def uids_after(uids: Mapping[str, str], upgrade: Upgrade) -> dict[str, str]:
    """The uids of a job's operators after an upgrade; an operator whose uid is its name is left out."""
    return {name: uid for name, uid in {**uids, **upgrade.renamed}.items() if uid != name}
