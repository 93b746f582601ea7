"""The files of a bank besides those of the page (`reports.nights.model`), and their places in its folder."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from ...reports.nights.model import FAILURE_FORMAT, NIGHT_FORMAT, Failure, Moment, Night, Origin, Record, SubjectNight
from ..scenario import files
from ..scenario.reading import FileError, bytes_of, json_of
from ..search.coverage import in_a_table, targets_by_words
from ..search.outcome import ScenarioOutcome

BANK_FORMAT = "cutproof-bank/1"
UNSHRUNK_FORMAT = "cutproof-unshrunk/1"

BANK = "bank.json"
LOCK = "lock"
INDEX = "index.json"
FAILURES = "failures"
NIGHTS = "nights"
ASIDE = "aside"
"""what could not be read, and is not lost"""
FAILURE = "failure.json"
SCENARIO = "scenario.json"
HISTORY = "history.json"
"""in real time: the run that failed, which cannot be repeated"""
NIGHT = "night.json"
UNSHRUNK = "unshrunk"
"""in a night's folder: the failing scenarios that are still to be shrunk"""
NOT_RUN = "not-run"
"""in a night's folder: the scenarios that the subject could not run"""

LIMIT_BYTES = 128 * 1024 * 1024
ID = re.compile(r"[A-Za-z0-9-]{4,64}")
"""of a failure and of a night: it names a folder"""

T = TypeVar("T")


class BankFile(Record, frozen=True, kw_only=True):
    """What makes a folder a bank."""

    format: str = BANK_FORMAT


class Unshrunk(Record, frozen=True, kw_only=True):
    """A failing scenario that was judged by the quick checker, and is still to be shrunk."""

    format: str = UNSHRUNK_FORMAT
    night: str
    subject: str
    defect: str = ""
    found: Moment
    origin: Origin
    outcome: ScenarioOutcome
    """with the recorded history in real time, where the failure need not show again; a replay of the bank that failed
    in another way has a number below 0"""

    @property
    def name(self) -> str:
        """Of its file: unique in its night."""
        return f"{hashlib.sha256(self.subject.encode()).hexdigest()[:8]}-{self.outcome.index}.json"


class NewerFormat(FileError):
    """A file of a later version: it is neither read nor put aside."""


class _Header(msgspec.Struct):
    format: str = ""


_encoder = msgspec.json.Encoder(order="deterministic")
_banks = msgspec.json.Decoder(BankFile)
_failures = msgspec.json.Decoder(Failure)
_nights = msgspec.json.Decoder(Night)
_unshrunk = msgspec.json.Decoder(Unshrunk)


def text_of(record: Record) -> bytes:
    """The text of its file, the same for equal records."""
    data = files.encoded(record) if isinstance(record, Unshrunk) else _encoder.encode(record)
    return msgspec.json.format(data, indent=1) + b"\n"


def read_bank_file(path: Path) -> BankFile:
    """Raises FileError, and NewerFormat for the bank of a later version; so do the next."""
    return _read(path, _banks, BANK_FORMAT)


def read_failure(path: Path) -> Failure:
    return _read(path, _failures, FAILURE_FORMAT)


def read_night(path: Path) -> Night:
    night = _read(path, _nights, NIGHT_FORMAT)
    if any(one.hits for one in night.subjects):
        return replace(night, subjects=[_with_a_table(one) for one in night.subjects])
    return night


def _with_a_table(one: SubjectNight) -> SubjectNight:
    """The record with its hits in a table, where an earlier version has written each in words."""
    known = targets_by_words()
    hits = {known[words]: count for words, count in one.hits.items() if words in known}
    if not hits or one.targets.rows:
        return one
    others = {words: count for words, count in one.hits.items() if words not in known}
    return replace(one, targets=in_a_table(hits), hits=others)


def read_unshrunk(path: Path) -> Unshrunk:
    return _read(path, _unshrunk, UNSHRUNK_FORMAT)


def _read(path: Path, decoder: msgspec.json.Decoder[T], expected: str) -> T:
    data = json_of(bytes_of(path, LIMIT_BYTES), str(path))
    try:
        found = msgspec.json.decode(data, type=_Header).format
        if found != expected:
            raise _other_format(path, found, expected)
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        # msgspec has no type of its own for this; only what a person reads depends on it.
        word = "is cut off" if "truncated" in str(error) else f"cannot be read: {error}"
        raise FileError(f"{path} {word}") from None


def _other_format(path: Path, found: str, expected: str) -> FileError:
    name, _, number = expected.rpartition("/")
    if re.fullmatch(rf"{re.escape(name)}/\d{{1,9}}", found) and int(found.rpartition("/")[2]) > int(number):
        return NewerFormat(
            f"{path} is of a later version of cutproof ({found}; this version reads {expected}); update cutproof"
        )
    return FileError(f"{path}: its format is {found!r}, not {expected}")
