"""The capabilities that a subject does not have, in words.  They were not tried, so nothing is known about them."""

from __future__ import annotations

from collections.abc import Iterator

from .abilities import RETRACTIONS, VOCABULARIES, operators_of
from .port import Capabilities, Subject

ABILITIES = {
    "rescales": "a resume at another parallelism",
    "resumes_older": "a resume from an older snapshot",
    "claims_snapshots": "a resume that says whose the snapshot is",
    "forks_memory": "a fork from a snapshot in memory",
    "forks_by_reference": "a fork that refers to the files of its origin",
    "upgrades": "a resume with an upgrade of the job",
    "changes_operators": "a resume that adds or removes operators",
    "refuses_incompatible": "a resume with an incompatible snapshot",
    "regional_recovery": "the recovery of one region",
    "local_recovery": "local recovery",
    "two_phase": "two-phase operators",
    "pooled_ids": "transactional ids that are reused",
    "concurrent_checkpoints": "several checkpoints in progress at a time",
    "final_checkpoint_alone": "no checkpoint but the final one once some input has ended",
    "trims_logs": "source logs that are trimmed",
    "file_faults": "names of files that are lost, and deletes that fail",
    "local_channels": "local channels within a node",
    "enumerators": "splits that an enumerator assigns on request",
    "deviations": "schedule perturbations",
}
"""the phrase for each capability that is either present or absent"""


def not_tried(subject: Subject) -> list[str]:
    """The capabilities that the subject does not have, and that were not tried."""
    capabilities = subject.capabilities
    return [
        *(phrase for field in VOCABULARIES for phrase in _names(field, capabilities)),
        *(phrase for name, phrase in ABILITIES.items() if not getattr(capabilities, name)),
    ]


def _names(field: str, capabilities: Capabilities) -> Iterator[str]:
    what, names = VOCABULARIES[field]
    declared = getattr(capabilities, field)
    match field:
        case "local_spilling":  # reported with local recovery
            return
        case "operators":
            declared = operators_of(capabilities)
            names = tuple(name for name in names if name != RETRACTIONS and _kind(name) in declared | {name})
        case "spill_stores" if not capabilities.spilling - {"at-once"}:
            return
        case _:
            pass
    yield from (f"{what} {name}" for name in names if name not in declared)


def _kind(name: str) -> str:
    """An operator's name without its flag."""
    return name.partition(":")[0]
