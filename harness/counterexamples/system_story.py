"""The run of a system, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from ...properties.graphs.causality import GraphHistory, Taken


def sentences(history: GraphHistory) -> Iterator[str]:
    """One sentence about the run, and one about the content of each snapshot."""
    messages = sum(event.kind == "send" for event in history.events)
    yield (
        f"{len(history.processes)} processes, {len(history.events)} events, {messages} messages,"
        f" {len(history.markers)} markers."
    )
    for one in history.snapshots:
        yield from _of_snapshot(history, one)
    for process, time in history.stopped_us.items():
        if time:
            yield f"{process} stood still for {time} µs."


def _of_snapshot(history: GraphHistory, one: Taken) -> Iterator[str]:
    ended = "never complete" if one.complete_us is None else f"complete at {one.complete_us} µs"
    yield f"Snapshot {one.name}: begun at {one.begun_us} µs, {ended}."
    for part in one.parts:
        yield f"  {part.process} has done {_labels(history, part.events)}"
        for channel, held in part.channels.items():
            if held:
                yield f"  under way in {channel}: {_labels(history, held)}"


def _labels(history: GraphHistory, numbers: tuple[int, ...]) -> str:
    return f"[{', '.join(history.events[number].label for number in numbers)}]"
