"""Which feed a pipeline's file names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ....properties.model.workload import InputRecord
from ..description import PipelineFile
from ..places import filled
from .feeder import Feeder
from .files import Files
from .lines import Lines
from .table import ToTable
from .topic import ToTopic


def feeder_of(file: PipelineFile, records: Sequence[InputRecord], folder: Path, places: Mapping[str, str]) -> Feeder:
    """The feed of one run; `folder` is that of {input}.  Raises SubjectFailed if it cannot be set up."""
    feed = file.feed
    servers, topic, port, database = (
        filled(text, places) for text in (feed.servers, feed.topic, feed.port, feed.database)
    )
    match feed.to:
        case "kafka":
            return ToTopic(feed, records, servers, topic)
        case "socket":
            return Lines(feed, records, port, ends=file.run.ends)
        case "table":
            return ToTable(feed, records, database, filled(feed.insert, places))
        case _:
            return Files(feed, records, folder)
