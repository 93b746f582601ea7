"""CSV according to RFC 4180; every field is read as its text.

A quote within quotes is doubled; delimiters and line ends within quotes are data;
lines end with LF or CRLF; a byte order mark is ignored.  The first record names the
columns; a column without a name is called `_c0`, with the number of its place.  An
unquoted field is NULL if it is one of the texts for NULL (by default the empty text).
A quoted field is never NULL, except in a file of one column: there writers quote NULL,
because an empty line is no record.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from ..arrays import TEXT
from ..errors import CheckInputError, error_text, shown

WHOLE_BYTES = 256 << 20
"""Files up to this size are read in one piece, by all cores."""
BLOCK_BYTES = 4 << 20
LARGEST_BLOCK = 256 << 20
CHUNK = 1 << 20


def header(path: Path, delimiter: str) -> list[str]:
    """The names of the columns; raises CheckInputError if there are none."""
    return _header(path, delimiter)[0]


def _header(path: Path, delimiter: str) -> tuple[list[str], int]:
    """The names of the columns, and how many empty lines are before them."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = enumerate(csv.reader(file, delimiter=delimiter))
            empty, names = next(((place, row) for place, row in rows if row), (0, None))
    except UnicodeDecodeError:
        raise CheckInputError(_no_utf8(path)) from None
    except csv.Error as error:
        raise CheckInputError(f"{path}: line 1: {error_text(error)}") from None
    if names is None:
        raise CheckInputError(f"{path} is empty; its first line has to name the columns")
    return [name or f"_c{place}" for place, name in enumerate(names)], empty


def batches(path: Path, columns: Sequence[str], delimiter: str, nulls: Sequence[str]) -> Iterator[Any]:
    """The columns as texts; raises CheckInputError with the file and the line that is not valid CSV."""
    names, empty = _header(path, delimiter)
    if _quotes_are_odd(path, delimiter) and (problem := _problem(path, delimiter)):
        raise CheckInputError(problem)
    how = {
        "parse_options": pcsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, TEXT),
            include_columns=list(columns),
            strings_can_be_null=True,
            null_values=list(nulls),
            quoted_strings_can_be_null=len(names) == 1,
        ),
    }
    block = BLOCK_BYTES
    size = path.stat().st_size
    while True:
        reading = pcsv.ReadOptions(column_names=names, skip_rows=empty, skip_rows_after_names=1, block_size=block)
        given = False
        try:
            if size <= WHOLE_BYTES:
                yield pcsv.read_csv(path, read_options=reading, **how)
            else:
                for batch in pcsv.open_csv(path, read_options=reading, **how):
                    given = True
                    yield pa.Table.from_batches([batch])
            return
        except pa.ArrowInvalid as error:
            if problem := _problem(path, delimiter):
                raise CheckInputError(problem) from None
            if given or block >= min(size, LARGEST_BLOCK):
                raise CheckInputError(f"{path} cannot be read as CSV: {error_text(error)}") from None
            block = min(8 * block, LARGEST_BLOCK)  # a record may be longer than a block


def _quotes_are_odd(path: Path, delimiter: str) -> bool:
    """Whether a quote is at a place where RFC 4180 allows none.

    The parser silently accepts a quote that is never closed, and a field that continues after its closing quote.  In a
    valid file the quotes open and close in turn.  An opening quote is at the start of a field, or right after a
    closing one (a doubled quote).  A closing quote is at the end of a field, or right before another quote.
    """
    before = np.zeros(256, bool)
    before[list(b'",\r\n'.replace(b",", delimiter.encode()))] = True
    opens, last, start = True, b"\n", 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if start == 0 and chunk.startswith(b"\xef\xbb\xbf"):
                chunk = chunk[3:]
            start += 1
            if last != b'"' and b'"' not in chunk:
                last = chunk[-1:] or last
                continue
            ahead = file.peek(1)[:1] or b"\n"
            data = np.frombuffer(last + chunk + ahead, np.uint8)
            places = np.flatnonzero(data[1:-1] == ord('"')) + 1
            first = 0 if opens else 1
            if not (before[data[places[first::2] - 1]].all() and before[data[places[1 - first :: 2] + 1]].all()):
                return True
            opens = opens == (len(places) % 2 == 0)
            last = chunk[-1:] or last
    return not opens


def _problem(path: Path, delimiter: str) -> str:
    """Where the file is not valid CSV, found record by record; empty if nothing is wrong."""
    csv.field_size_limit(sys.maxsize)
    line, fields = 1, 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            records = csv.reader(file, delimiter=delimiter, strict=True)
            for record in records:
                fields = fields or len(record)
                if record and len(record) != fields:
                    return f"{path}: line {line}: {_count(len(record))}, where the header has {fields}{_hint(record)}"
                line = records.line_num + 1
    except UnicodeDecodeError:
        return _no_utf8(path)
    except csv.Error as error:  # one type for all errors; what a person reads depends on which one it is, nothing else
        if "unexpected end of data" in str(error):
            return f"{path}: line {line}: a quote is opened in this record and never closed"
        if "expected after" in str(error):
            return f"{path}: line {line}: a field goes on after its closing quote; a quote within quotes is doubled"
        return f"{path}: line {line}: {error_text(error)}"
    return ""


def _count(fields: int) -> str:
    return f"{fields} field{'s' * (fields != 1)}"


def _hint(record: list[str]) -> str:
    return f" (it begins with {shown(record[0])})"


def _no_utf8(path: Path) -> str:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return f"{path}: line {number}: byte 0x{byte:02x} is no UTF-8; write the file in UTF-8"
    return f"{path} is no UTF-8"
