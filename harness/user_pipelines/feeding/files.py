"""Records that appear as files: each file is written whole elsewhere, then moved into {input}, so that no reader sees
half of one."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....properties.model.workload import InputRecord
from ..description import Feed
from .feeder import Feeder

SUFFIX = {"json-lines": "jsonl", "csv": "csv"}


class Files(Feeder):
    """The files of one run: `give` puts the next one there.

    Each was last changed at least a millisecond after the one before it, also if all are given at once: Spark, for one,
    reads files in the order of these times.
    """

    def __init__(self, feed: Feed, records: Sequence[InputRecord], folder: Path) -> None:
        super().__init__(feed, records)
        self._folder = folder
        self._staging = folder.with_name(f"{folder.name}.staging")
        self._staging.mkdir()
        self._files = 0
        self._changed_ms = 0

    def _put(self, rows: Sequence[dict[str, Any]]) -> bool:
        name = f"part-{self._files:05}.{SUFFIX[self._feed.format]}"
        staged = self._staging / name
        staged.write_text(self._text_of(rows), encoding="utf-8")
        self._changed_ms = max(int(time.time() * 1e3), self._changed_ms + 1)
        os.utime(staged, ns=(self._changed_ms * 1_000_000,) * 2)
        os.replace(staged, self._folder / name)
        self._files += 1
        return True

    def _text_of(self, rows: Sequence[dict[str, Any]]) -> str:
        if self._feed.format == "json-lines":
            return "".join(json.dumps(row) + "\n" for row in rows)
        text = io.StringIO()
        writer = csv.DictWriter(text, [name for name in self._names.values() if name], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()
