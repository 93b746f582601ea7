"""The witnesses of a history: those that it names report, each in its own fields, and no others do."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping

import msgspec

from ...properties.model.history import WITNESSES, History, JobEnded
from ...properties.reconstruct.commands import STOPS

REQUIRED = {
    "tasks": ("runs",),
    "journal": ("journal",),
    "snapshots": ("stored", "completed"),
    "reader": ("committed",),
    "listing": ("residue",),
}
"""By witness, the fields that its history has, even if they are empty."""
OF_SINK = {"transactional": "transactions", "idempotent": "written", "plain": "written"}


def missing_parts(data: bytes) -> str:
    """The parts that a history's file must have and does not have, in one line; empty if none is missing."""
    parts = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=dict[str, msgspec.Raw])
    sink = msgspec.json.decode(parts.get("sink", msgspec.Raw(b'""')))
    seen = msgspec.json.decode(parts.get("witnesses", msgspec.Raw(msgspec.json.encode(list(WITNESSES)))))
    demanded = [name for witness, names in REQUIRED.items() if witness in seen for name in names]
    demanded += filter(None, [OF_SINK.get(sink, "") if "store" in seen else ""])
    missing = [name for name in demanded if name not in parts]
    residue = msgspec.json.decode(parts.get("residue", msgspec.Raw(b"{}")), type=dict[str, msgspec.Raw])
    in_memory = bytes(parts.get("snapshots", b"")) == b'"memory"'
    for name, other in (("files", "retained"), ("retained", "files")):
        if name not in residue and bytes(residue.get(other, b"")).strip(b"[] \n\r\t") and not in_memory:
            missing.append(f"residue.{name}")
    if not missing:
        return ""
    names, verb = ", ".join(f"`{name}`" for name in missing), "is" if len(missing) == 1 else "are"
    empty = {"residue": "{}"}.get(missing[0], "[]") if len(missing) == 1 else "[], and `residue` {}"
    return f"{names} {verb} missing; a history in which there was nothing of it says so: {empty}"


def witness_problems(history: History) -> Iterator[str]:
    """Witnesses that there are not, and reports of witnesses that the history does not name."""
    if isinstance(history.witnesses, msgspec.UnsetType):
        return
    for place, name in enumerate(history.witnesses):
        if name not in WITNESSES:
            yield f"witnesses[{place}]: {name!r} is none of {', '.join(WITNESSES)}"
    empty = History(subject="", guarantee="", sink="")
    for witness in history.lacks(WITNESSES):
        for field in WITNESSES[witness]:
            if getattr(history, field) != getattr(empty, field):
                yield f"{field}: `witnesses` does not name {witness!r}, which reports here"


def commit_problems(history: History, lengths: Mapping[int, int]) -> Iterator[str]:
    """What is wrong with the markers and reads of a run that was seen from outside; `lengths` are those of splits."""
    outside = bool(history.lacks(WITNESSES))
    before: dict[int, int] = {}
    commits = [] if isinstance(history.commits, msgspec.UnsetType) else history.commits
    marks = [(f"commits[{place}]", "positions", commit.positions) for place, commit in enumerate(commits)]
    for place, entry in enumerate(history.journal):
        if isinstance(entry, JobEnded) and entry.covers is not None:
            marks.append((f"journal[{place}]", "covers", entry.covers))
            if entry.status not in STOPS:
                yield f"journal[{place}].covers: a job that is {entry.status} covers all of its input, or nothing"
    for where, field, positions in marks:
        if not outside:
            yield f"{where}: {field} are seen from outside, and `witnesses` lacks none"
        for split, offset in positions.items():
            if split not in lengths or not 0 <= offset <= lengths[split]:
                yield f"{where}.{field}: the scenario has no offset {offset} of split {split}"
        back = [split for split, offset in before.items() if positions.get(split, 0) < offset]
        if back:
            yield f"{where}.{field}: split {back[0]} goes back; commits are in order, each with all records before"
        before = positions
    for place, read in enumerate(history.reads):
        if read.seen is not None and not outside:
            yield f"reads[{place}].seen: in a history with all witnesses a read counts its `rows`"


def computed_problems(history: History, lengths: Mapping[int, int], *, has_query: bool) -> Iterator[str]:
    """What is wrong with the expected rows of a workload with a query, which nobody but its pipeline can compute."""
    if isinstance(history.computed, msgspec.UnsetType):
        if has_query:
            yield "computed is missing: the scenario's workload has a query, and only its pipeline's file has the text"
        return
    if not has_query:
        yield "computed: the scenario's workload has no query, so its rows are computed here"
    elif not history.lacks(WITNESSES):
        yield "computed: what a query yields is judged from outside, and `witnesses` lacks none"
    given = [_whole(one.positions, lengths) for one in history.computed.until]
    commits = [] if isinstance(history.commits, msgspec.UnsetType) else history.commits
    covers = [one.covers for one in history.journal if isinstance(one, JobEnded) and one.covers is not None]
    # Where more records may replace rows, no read on the way is compared with them.
    commits = commits if history.computed.by_record else commits[-1:]
    for positions in (dict(lengths), *(one.positions for one in commits), *covers):
        if _whole(positions, lengths) not in given:
            yield f"computed.until: the rows of the records below {positions} are missing"


def _whole(positions: Mapping[int, int], lengths: Mapping[int, int]) -> dict[int, int]:
    return {split: positions.get(split, 0) for split in lengths}
