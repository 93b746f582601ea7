"""A pipeline of tasks as data: rates, bounded channels in bytes, nodes with a store, and when everything fails."""

from __future__ import annotations

import msgspec

from ...core.extensions.in_flight_data.spilling import ALIGNED, Way

MB = 1_000_000
"""bytes; rates are in bytes a second, times in whole µs"""


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task; one without inputs is a source, the one that no other task reads is the sink."""

    name: str
    rate: int
    """bytes a second that it processes, or that a source reads"""
    inputs: tuple[str, ...] = ()
    node: str = "node"
    arrives: int | None = None
    """for a source: bytes a second by which its log grows; None: all data is there from the start"""
    sync_us: int = 0
    """the synchronous part of its snapshot, in which it does nothing else"""
    state_bytes: int = 0
    """written to the node's store after the synchronous part"""


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node's store: one write, flush or read after another, at a rate.

    files: each channel writes a file until it is flushed, which closes the file.  To open the next file takes time, for
    writing as for reading.  A file is deleted when nothing in it is needed.  log: all channels append to one log; a
    flush makes durable what was appended before it.
    """

    kind: str = "log"
    rate: int = 30 * MB
    read_rate: int = 100 * MB
    open_us: int = 0
    """to open a file (files)"""
    flush_us: int = 5_000
    """to flush the log, or to close a file"""


DEVICES = ("files", "log")


class Pipeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks that end in one sink, the data that goes through them, and the way in which checkpoints are taken."""

    stages: tuple[Stage, ...]
    way: Way = ALIGNED
    device: Device = Device()
    buffer_bytes: int = MB
    channel_bytes: int = 100 * MB
    """for each channel, at its receiver: bytes that were neither processed nor, if they are spilled, written"""
    interval_us: int | None = None
    """between the beginnings of two checkpoints, of which one is pending at a time; None: none is taken"""
    first_us: int | None = None
    """when the first checkpoint begins, after a start or a restart; None: after an interval"""
    crashes_us: tuple[int, ...] = ()
    """when all tasks die at once, with everything that was not flushed; sorted"""
    restart_us: int = 1_000_000
    """from a crash until the tasks are up again, with their state, and begin to read in-flight data"""
    until_us: int = 60_000_000
    most_checkpoints: int | None = None
    """the run ends when this many are complete"""
    slice_us: int = 1_000_000
    """the slice of the series of bytes written and processed"""


def faults_of(pipeline: Pipeline) -> list[str]:
    """What keeps the pipeline from running, a line each."""
    found = list(_stage_faults(pipeline))
    numbers = {
        "buffer_bytes": pipeline.buffer_bytes,
        "slice_us": pipeline.slice_us,
        "until_us": pipeline.until_us,
        "the store's rate": pipeline.device.rate,
        "the store's read_rate": pipeline.device.read_rate,
        "interval_us": 1 if pipeline.interval_us is None else pipeline.interval_us,
    }
    found += [f"{name} is not positive" for name, value in numbers.items() if value <= 0]
    if pipeline.channel_bytes < pipeline.buffer_bytes:
        found.append("a channel has no room for one buffer")
    if pipeline.device.kind not in DEVICES:
        found.append(f"store {pipeline.device.kind!r}: one of {', '.join(DEVICES)}")
    if list(pipeline.crashes_us) != sorted(pipeline.crashes_us):
        found.append("the crashes are not in order")
    return found


def _stage_faults(pipeline: Pipeline) -> list[str]:
    names = [stage.name for stage in pipeline.stages]
    read = [name for stage in pipeline.stages for name in stage.inputs]
    found = [f"stage {name!r} is named twice" for name in names if names.count(name) > 1]
    found += [f"stage {name!r} is read twice" for name in names if read.count(name) > 1]
    found += [f"there is no stage {name!r}" for name in read if name not in names]
    found += [f"the rate of {stage.name!r} is not positive" for stage in pipeline.stages if stage.rate <= 0]
    seen: list[str] = []
    for stage in pipeline.stages:
        found += [f"{stage.name!r} reads {name!r}, which comes after it" for name in stage.inputs if name not in seen]
        seen.append(stage.name)
    ends = [name for name in names if name not in read]
    if len(ends) != 1:
        found.append(f"there is one sink, not {len(ends)}")
    if len(names) == 1:
        found.append("the sink reads nothing")
    return found
