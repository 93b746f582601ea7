"""The evidence of a run: what remains, besides the journals, when its processes have ended.  It is saved before the run
is judged.  The history is made from the evidence and the journals."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ....faults.plan import kind_of
from ....properties.model import history as h
from ....properties.model.history import History, Residue
from ....properties.model.workload import Row
from ....reference_impl.processes.configuration import STORE
from ....reference_impl.processes.disk.journal import CorruptJournal
from ...runtime.exit_codes import CutproofError, HarnessFailed, UsageError, one_line
from ...scenario.files import write_scenario, write_whole
from ...scenario.model import Scenario
from ...scenario.reading import bytes_of, json_of
from ..merging.merging import journals_in, merged
from ..merging.order import Journal
from ..subjects.past import Past
from ..subjects.translation import identity

EVIDENCE = "evidence.json"
SCENARIO = "scenario.json"
"""the scenario file for a replay; judging needs only the evidence"""
JOURNALS = "journal"
FORKS = "forks"
"""a folder for each job that was forked from the run, by numbers"""
LIMIT_BYTES = 256 * 1024 * 1024
"""the largest size of each saved file"""
SUBJECT = "processes"


class Copied(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the stores were copied with which a forked job began."""

    at_us: int
    retained: list[int]
    """the checkpoints that the run retained then"""
    from_copy: bool = False
    """the snapshot was a copy that a user had"""


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The evidence of a run."""

    scenario: Scenario
    committed: list[tuple[str | None, Row]]
    """the rows that an independent reader saw at the end, each with its transaction, if it was in one; in saved runs of
    former versions with "" if it was not"""
    passing: list[str] = msgspec.field(default_factory=list, name="passed")
    """committed transactions that are not part of the job's output: those of two-phase operators"""
    residue: Residue
    quiet: bool
    cut_short: bool
    """as in the history"""
    lasting: list[int]
    """the faults that still acted at the end"""
    unapplied: list[str]
    foreign: int = 0
    short_timeout: bool = False
    """as in the history"""
    rolls_back: bool
    """the sinks' store aborts an open transaction when its session ends"""
    begun: int
    """the stamp at which the first job was submitted"""
    timeline: bool
    past: Past | None = None
    """the run before, from whose snapshot the first job began"""
    copied: Copied | None = None
    """of a forked job"""


class Listed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size and checksum of a journal as its process left it, a batch at the end torn if the process was killed."""

    name: str
    length: int
    checksum: int


class Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The checksummed content of the evidence file."""

    evidence: Evidence
    journals: list[Listed]


class Sealed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The evidence file: a `Kept`, and the CRC-32 of its bytes."""

    checksum: int
    kept: msgspec.Raw


def keep(evidence: Evidence, journals: Path, folder: Path, store: Path | None = None) -> Path:
    """Save a run whose processes have all ended, with its store of snapshots.  The evidence is written last, so a
    folder that has it is complete.  Raises HarnessFailed."""
    try:
        folder.mkdir(parents=True)
        body = msgspec.json.encode(Kept(evidence=evidence, journals=_listed(journals)))
        shutil.copytree(journals, folder / JOURNALS)
        if store is not None:
            shutil.copytree(store, folder / STORE)
        write_scenario(folder / SCENARIO, evidence.scenario)
        sealed = Sealed(checksum=zlib.crc32(body), kept=msgspec.Raw(body))
        write_whole(folder / EVIDENCE, msgspec.json.encode(sealed))
    except OSError as error:
        raise HarnessFailed(
            f"the run cannot be kept in {folder} ({one_line(error)}); name another place with XDG_STATE_HOME"
        ) from error
    return folder


def kept(folder: Path) -> tuple[Scenario, History]:
    """The scenario and the history of a saved run.  Raises UsageError if the folder holds no readable run."""
    try:
        evidence = _unsealed(folder)
        scenario = evidence.scenario if evidence.past is None else evidence.past.scenario
        history = history_of(evidence, folder / JOURNALS)
        if forks := [_fork_in(one) for one in sorted((folder / FORKS).glob("*"), key=lambda one: int(one.name))]:
            history.forks = forks
        return scenario, history
    except (OSError, msgspec.DecodeError, RecursionError, CutproofError) as error:
        raise UsageError(f"{folder} holds no readable run on processes: {one_line(error)}") from error


def _fork_in(folder: Path) -> h.Forked:
    evidence = _unsealed(folder)
    return forked_of(evidence, history_of(evidence, folder / JOURNALS))


def forked_of(evidence: Evidence, history: History) -> h.Forked:
    """A forked job, from its evidence and its history."""
    past, copied = evidence.past, evidence.copied
    if past is None or copied is None:
        raise HarnessFailed(f"{EVIDENCE} is not that of a forked job")
    return h.Forked(
        command=past.command,
        at_us=copied.at_us,
        checkpoint=past.checkpoint,
        retained=copied.retained,
        history=history,
        from_copy=copied.from_copy,
    )


def _unsealed(folder: Path) -> Evidence:
    """The evidence of a saved run.  Raises if it or a journal has changed since: without one of its journals, a
    correct job would seem to have lost the records in that journal."""
    sealed = msgspec.json.decode(json_of(bytes_of(folder / EVIDENCE, LIMIT_BYTES), EVIDENCE), type=Sealed)
    if zlib.crc32(sealed.kept) != sealed.checksum:
        raise HarnessFailed(f"{EVIDENCE} is altered: its checksum is wrong")
    was = msgspec.json.decode(sealed.kept, type=Kept)
    kept, found = ({one.name: one for one in each} for each in (was.journals, _listed(folder / JOURNALS)))
    for name in sorted({*kept, *found}):
        if name not in found:
            raise HarnessFailed(f"the journal {name} is missing")
        if name not in kept:
            raise HarnessFailed(f"the journal {name} does not belong to this run")
        if found[name] != kept[name]:
            how = f"{found[name].length} bytes instead of {kept[name].length}"
            raise HarnessFailed(
                f"the journal {name} is altered: "
                + (how if found[name].length != kept[name].length else "its checksum is wrong")
            )
    return was.evidence


def _listed(journals: Path) -> list[Listed]:
    contents = [(path.name, bytes_of(path, LIMIT_BYTES)) for path in sorted(journals.iterdir())]
    return [Listed(name=name, length=len(data), checksum=zlib.crc32(data)) for name, data in contents]


def history_of(evidence: Evidence, journals: Path) -> History:
    """The history of a run, from its evidence and journals.  Raises HarnessFailed if a journal cannot be read."""
    scenario = evidence.scenario
    engine = scenario.engine
    history = History(
        subject=SUBJECT,
        guarantee=engine.guarantee,
        sink=engine.sink,
        identity=identity(scenario.workload) if engine.sink == "idempotent" else "key",
        restart_attempts=engine.restart_attempts,
        tolerated_failures=engine.tolerated_failures,
        short_timeout=evidence.short_timeout or msgspec.UNSET,
        retained_checkpoints=engine.retained_checkpoints,
        snapshots=engine.snapshot_store,
        savepoints=engine.savepoints if engine.savepoints != "snapshots" else msgspec.UNSET,
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
        cut_short=evidence.cut_short,
        unapplied=list(evidence.unapplied),
        foreign_connections=evidence.foreign,
    )
    try:
        found = journals_in(journals)
    except (OSError, CorruptJournal) as error:
        raise HarnessFailed(f"the journals of the processes cannot be read: {error}") from error
    _check_faults(found, len(scenario.faults))
    past = evidence.past
    if past is not None:
        past.into(history)
    merged(
        history,
        [kind_of(fault) for fault in scenario.faults],
        found,
        evidence.timeline,
        committed=[(name or None, row) for name, row in evidence.committed],
        passing=evidence.passing,
        rolls_back=evidence.rolls_back,
        lasting=evidence.lasting,
        epoch=evidence.begun,
        past=past,
    )
    if past is not None:
        past.end(history)
    return history


def _check_faults(journals: Sequence[Journal], planned: int) -> None:
    """Raise HarnessFailed if a journal reports a fault that the scenario does not have."""
    for process, incarnation, entries in journals:
        for entry in entries:
            fault = getattr(entry.event, "fault", None)
            if fault is not None and not 0 <= fault < planned:
                raise HarnessFailed(
                    f"the journal {process}.{incarnation} reports fault {fault}, which the scenario does not have"
                )
