"""What is left of a run when its processes are gone, kept before it is judged; and the history that it makes."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from ...faults.plan import kind_of
from ...properties.history import History, Residue
from ...properties.workload import Row
from ...reference_impl.processes.journal import CorruptJournal
from ..exit_codes import HarnessFailed, UsageError, one_line
from ..files import write_scenario, write_whole
from ..scenario import Scenario
from ..subjects.merging import journals_in, merged
from ..subjects.translation import identity

EVIDENCE = "evidence.json"
SCENARIO = "scenario.json"
"""for whoever wants to run it again; judging needs the evidence alone"""
JOURNALS = "journal"
SUBJECT = "processes"


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All but the journals."""

    scenario: Scenario
    committed: list[tuple[str, Row]]
    """as an independent reader saw it at the end"""
    residue: Residue
    quiet: bool
    unapplied: list[str]
    rolls_back: bool
    """the sinks' store ends open transactions with the sessions they live in"""
    begun: int
    """the stamp at which the first job was submitted"""
    timeline: bool


def keep(evidence: Evidence, journals: Path, folder: Path) -> Path:
    """Put what a run has left into a folder that stays, and that has the evidence when it has all.  Raises
    HarnessFailed."""
    try:
        folder.mkdir(parents=True)
        shutil.copytree(journals, folder / JOURNALS)
        write_scenario(folder / SCENARIO, evidence.scenario)
        write_whole(folder / EVIDENCE, msgspec.json.encode(evidence))
    except OSError as error:
        raise HarnessFailed(
            f"the run cannot be kept in {folder} ({one_line(error)}); name another place with XDG_STATE_HOME"
        ) from error
    return folder


def kept(folder: Path) -> tuple[Scenario, History]:
    """A run that was kept, and its history.  Raises UsageError when there is none that could be read."""
    try:
        evidence = msgspec.json.decode((folder / EVIDENCE).read_bytes(), type=Evidence)
        return evidence.scenario, history_of(evidence, folder / JOURNALS)
    except (OSError, msgspec.DecodeError, HarnessFailed) as error:
        raise UsageError(f"{folder} holds no run on processes that could be read: {one_line(error)}") from error


def history_of(evidence: Evidence, journals: Path) -> History:
    """One history of all journals.  Raises HarnessFailed when one is altered."""
    scenario = evidence.scenario
    engine = scenario.engine
    history = History(
        subject=SUBJECT,
        guarantee=engine.guarantee,
        sink=engine.sink,
        identity=identity(scenario.workload) if engine.sink == "idempotent" else "key",
        restart_attempts=engine.restart_attempts,
        snapshots=engine.snapshot_store,
        runs=[],
        channels=[],
        stored=[],
        completed=[],
        transactions=[],
        written=[],
        reads=[],
        journal=[],
        timeline=[],
        residue=evidence.residue,
        quiet=evidence.quiet,
        unapplied=list(evidence.unapplied),
    )
    try:
        found = journals_in(journals)
    except (OSError, CorruptJournal) as error:
        raise HarnessFailed(f"what the processes wrote down cannot be read: {error}") from error
    merged(
        history,
        [kind_of(fault) for fault in scenario.faults],
        found,
        evidence.timeline,
        committed=evidence.committed,
        rolls_back=evidence.rolls_back,
        epoch=evidence.begun,
    )
    return history
