"""The report's sentences: the promise of an invariant, an entry of a diagram in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..properties.model.history import History, Timed
from ..properties.model.words import COLUMNS, columns_of
from ..properties.model.words import plural as plural
from ..properties.model.workload import Row, copy_of, offset_of, split_of
from ..properties.spark.unasked import in_words

PROMISES: dict[str, str] = {
    "exactly-once": "Every expected row is visible, once, and no other row is.",
    "no-data-loss": "Every record that was read is reflected in the output.",
    "consistent-cut": "Each snapshot is a consistent cut: it covers a record in all tasks or in none.",
    "at-least-once": "Every expected row is visible at least once.",
    "at-most-once": "No record is applied twice, and no row shows twice.",
    "order": "Records leave a channel in the order in which they entered it.",
    "restored-state": "After a failure, each task is restored from the newest completed snapshot.",
    "restorable": "Every retained snapshot can be restored.",
    "visibility": "No reader sees a row before the snapshot that covers it is complete.",
    "drain": "A drained job has flushed all buffered rows; a job stopped without drain has flushed none too early.",
    "progress": "Once the faults are over, the job makes progress again.",
    "no-leaks": "When the job is at rest, no unneeded file and no open transaction is left.",
}

STATUS_WORDS = {
    "ok": ("=", "as expected"),
    "lost": ("−", "lost"),
    "repeated": ("+", "repeated"),
    "unexpected": ("!", "unexpected"),
    "changed": ("≠", "changed"),
}
"""by status of a row: a sign and a word, so that colour is not needed"""


def in_a_row(words: Sequence[str]) -> str:
    """Several words as a sentence names them: `a, b and c`."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def judges_in_words(judges: int, not_asked: str) -> str:
    """The judges that saw a violation, in one sentence; empty if that is not known."""
    if judges != 1:
        return "Both judges saw it." if judges else ""
    if not not_asked:
        return "One judge saw it: PySpark disagrees."
    return f"One judge saw it: {in_words(not_asked)}."


def foreign_in_words(connections: int) -> str:
    """The connections of other programs to the ports of runs on processes; empty if there were none."""
    if not connections:
        return ""
    what, was = plural(connections, "connection"), "was" if connections == 1 else "were"
    return f"{what} to the runs' ports came from another program of this machine and {was} closed without an answer."


def duration(us: float) -> str:
    """A duration with a suitable unit."""
    if us < 1_000:
        return f"{us:.0f} µs"
    if us < 1_000_000:
        return f"{us / 1_000:.1f} ms"
    return f"{us / 1_000_000:.2f} s"


def took(seconds: float) -> str:
    """A time with its two largest units: `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def cell(value: int | None) -> str:
    return "NULL" if value is None else str(value)


def row_cells(row: Row | None, columns: Sequence[str] = COLUMNS) -> tuple[str, ...]:
    """Key, value and tag of a row in words, with the second tag of a join's row; without columns that have no name."""
    if row is None:
        return ()
    key, value, tag, tag2 = row
    cells = (cell(key), cell(value), f"{tag} · {tag2}" if tag2 else str(tag))
    return tuple(text for name, text in zip(columns, cells, strict=False) if name)


def row_columns(history: History | None) -> tuple[str, ...]:
    """What the columns of a history's rows are called: key, value and tag."""
    return COLUMNS[:3] if history is None else columns_of(history)[:3]


def record_name(origin: int | None) -> str:
    """A record, by its split and offset ("0:3"), and for a copy of a flat map its number ("0:3.1")."""
    if origin is None:
        return ""
    copy = copy_of(origin)
    return f"{split_of(origin)}:{offset_of(origin)}" + (f".{copy}" if copy else "")


def with_task(entry: Timed) -> str:
    """An entry in words, with its task."""
    return f"{entry.task} {sentence(entry)}"


def sentence(entry: Timed) -> str:
    """An entry in words; the task is the subject of the sentence and is not named."""
    number = "" if entry.checkpoint is None else f" {entry.checkpoint}"
    channel = entry.channel
    peer = entry.peer or "the coordinator"
    record = f"record {record_name(entry.origin)}".strip()
    sender, _, receiver = channel.partition(">")
    known = {
        "record-sent": f"sends {record} to {receiver or peer}",
        "record-applied": f"applies {record} from {sender or peer}",
        "barrier-sent": f"sends barrier{number} to {receiver or peer}",
        "barrier-received": f"takes barrier{number} from {sender or peer}",
        "snapshot-taken": f"takes its snapshot for checkpoint{number}",
        "snapshot-persisted": f"has its snapshot for checkpoint{number} stored durably",
        "ack-sent": f"acknowledges checkpoint{number}",
        "ack-received": f"takes the acknowledgement of checkpoint{number}"
        + (f" from {entry.peer}" if entry.peer and entry.peer != entry.task else ""),
        "end-of-data-sent": f"sends the end of its data to {receiver or peer}",
        "cancel-barrier-sent": f"sends the cancel barrier of checkpoint{number} to {receiver or peer}",
        "control-received": f"receives a message from {sender or peer}",
        "trigger-received": f"receives the trigger of checkpoint{number}",
        "abort-received": f"is notified that checkpoint{number} is aborted",
        "decline-arrived": f"receives the decline of checkpoint{number} from {peer}",
        "checkpoint-triggered": f"starts checkpoint{number}",
        "checkpoint-completed": f"completes checkpoint{number}",
        "checkpoint-aborted": f"aborts checkpoint{number}",
        "completion-notified": f"is notified that checkpoint{number} is complete",
        "state-loaded": f"loads its snapshot of checkpoint{number}",
        "transaction-pre-committed": f"seals its transaction for checkpoint{number}",
        "commit-requested": f"requests the commit of its transaction of checkpoint{number}",
        "commit-answered": f"has its transaction of checkpoint{number} committed"
        if entry.detail in ("", "committed")
        else "receives the answer to its commit",
        "transaction-aborted": "has its transaction aborted",
        "snapshot-deleted": "deletes the record of a snapshot",
        "file-deleted": "deletes a file of a snapshot",
        "file-copied": "copies a file of a snapshot",
        "snapshot-copied": "copies the record of a snapshot",
        "savepoint-requested": "receives the request for a savepoint",
        "attempt-started": f"deploys attempt {entry.attempt}"
        + (f" from checkpoint{number}" if number else " from the beginning"),
        "coordinator-down": "dies",
        "coordinator-up": "is replaced by another coordinator",
        "command-issued": "receives a command",
        "job-ended": "ends the job",
        "killed": "is killed",
        "failed": "fails",
        "finished": "finishes",
        "cancelled": "is cancelled",
        "fault-fired": "fired",
        "process-started": "is started",
        "process-ready": "is ready",
        "process-killed": "is killed",
        "process-paused": "is paused",
        "process-continued": "goes on after its pause",
        "process-ended": "ends",
        "work-stored": "is seen to have stored something to continue from",
        "work-restored": "is seen to have continued from something of its own",
        "aim-met": "is met",
        "records-given": f"has given {plural(entry.position, 'record')}",
        "output-read": f"sees {plural(entry.position, 'row')}",
    }
    text = known.get(entry.what, entry.what.replace("-", " "))
    return f"{text} ({entry.detail})" if entry.detail and entry.detail != "committed" else text
