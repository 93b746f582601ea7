"""Records that appear as files: each file is written whole elsewhere, then moved into {input}, so that no reader sees
half of one."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

from ...properties.model.workload import InputRecord
from .description import RECORD, Feed

SUFFIX = {"json-lines": "jsonl", "csv": "csv"}


class Feeder:
    """The files of one run: `give` puts the next one there."""

    def __init__(self, feed: Feed, records: Sequence[InputRecord], folder: Path) -> None:
        self._feed = feed
        self._records = records
        self._folder = folder
        self._staging = folder.with_name(f"{folder.name}.staging")
        self._staging.mkdir()
        self._files = 0
        self.given = 0
        """how many records are there"""

    @property
    def is_over(self) -> bool:
        return self.given == len(self._records)

    def give(self) -> None:
        """Put the next file there; nothing if all records are there."""
        if self.is_over:
            return
        part = self._records[self.given : self.given + self._feed.records_per_file]
        name = f"part-{self._files:05}.{SUFFIX[self._feed.format]}"
        staged = self._staging / name
        staged.write_text(self._text_of(part), encoding="utf-8")
        os.replace(staged, self._folder / name)
        self._files += 1
        self.given += len(part)

    def give_all(self) -> None:
        while not self.is_over:
            self.give()

    def _text_of(self, records: Sequence[InputRecord]) -> str:
        names = {name: self._feed.columns.get(name, name) for name in RECORD}
        rows = [
            {names[name]: value for name, value in zip(RECORD, record, strict=True) if names[name]}
            for record in records
        ]
        if self._feed.format == "json-lines":
            return "".join(json.dumps(row) + "\n" for row in rows)
        text = io.StringIO()
        writer = csv.DictWriter(text, [name for name in names.values() if name], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()
