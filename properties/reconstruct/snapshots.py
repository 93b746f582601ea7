"""What the completed checkpoints of a history hold: by task the stored snapshot, decoded, with positions and in-flight
data.

A task that had finished has no snapshot of its own in a checkpoint: the last one that it took counts, on the lineage of
the checkpoint that has the task as finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from ..model.history import Completed, History, Stored, StoredState, TaskRun
from .attempts import Attempts
from .in_flight import InFlight, channels_of


class Snapshots:
    """The completed checkpoints of a history; each is read once."""

    def __init__(self, history: History, attempts: Attempts) -> None:
        self.completed: dict[int, Completed] = {entry.checkpoint: entry for entry in history.completed}
        self.handles: dict[str, Stored] = {entry.handle: entry for entry in history.stored}
        self._attempts = attempts
        self._entries = history.stored
        self._stored: dict[int, dict[str, Stored]] = {}
        self._decoded: dict[str, StoredState | None] = {}
        self._finished: dict[int, frozenset[str]] = {}
        self._states: dict[int, dict[str, StoredState]] = {}
        self._states_of: dict[int, dict[str, dict[str, StoredState]]] = {}
        self._positions: dict[int, dict[int, int]] = {}
        self._in_flight: dict[int, dict[str, InFlight]] = {}

    def stored(self, checkpoint: int) -> dict[str, Stored]:
        """The store's entries of a completed checkpoint, by task; a task whose handle refers to no stored snapshot is
        left out.

        A task that had finished has the last snapshot that it took, whether or not the checkpoint still refers to it.
        """
        known = self._stored.get(checkpoint)
        if known is None:
            completed = self.completed[checkpoint]
            found = {task: self.handles.get(handle) for task, handle in completed.handles.items()}
            found |= self._last_of_finished(completed)
            known = self._stored[checkpoint] = {task: entry for task, entry in found.items() if entry is not None}
        return known

    def _last_of_finished(self, completed: Completed) -> dict[str, Stored | None]:
        """The last snapshots of the finished tasks for which a checkpoint has no handle.

        If the whole operator had finished before its job began, they are taken from the snapshot that the job began
        with, since the job may have been rescaled.
        """
        tasks = [task for task in completed.finished if task not in completed.handles]
        began = self._began_with(completed) if tasks else None
        finished: set[str] = set()
        if began is not None:
            going_on = {_operator(task) for task in self.completed[began].handles}
            had_finished = {_operator(task) for task in self.completed[began].finished} - going_on
            finished = {_operator(task) for task in tasks} & had_finished
        found = {task: self._last_stored(task, completed) for task in tasks if _operator(task) not in finished}
        inherited = self.stored(began).items() if began is not None else ()
        return found | {task: entry for task, entry in inherited if _operator(task) in finished}

    def _began_with(self, completed: Completed) -> int | None:
        """The snapshot, of another job, from which the job of a checkpoint was resumed."""
        before = self._restored_by(completed.attempt)
        while before is not None and before.job == completed.job:
            before = self._restored_by(before.attempt)
        return None if before is None else before.checkpoint

    def _restored_by(self, attempt: int) -> Completed | None:
        """The checkpoint that an attempt restored, if an earlier attempt completed it.

        A broken engine may use the number of a checkpoint twice, and then an attempt seems to restore a checkpoint of
        its own.  A walk back from attempt to attempt would then never end.
        """
        restored = self._attempts.starts[attempt].restores if attempt in self._attempts.starts else None
        found = None if restored is None else self.completed.get(restored)
        return found if found is not None and found.attempt < attempt else None

    def _last_stored(self, task: str, completed: Completed) -> Stored | None:
        """The newest snapshot of a finished task on the lineage of the checkpoint that counts the task as finished."""
        attempt: int | None = self._attempts.serving(task, completed.attempt)
        while attempt is not None:
            last = self.last_of(task, attempt)
            if last is not None:
                return last
            before = self._restored_by(attempt)
            attempt = None if before is None else self._attempts.serving(task, before.attempt)
        return None

    def last_of(self, task: str, attempt: int) -> Stored | None:
        """The snapshot that an attempt of a task took last: snapshots may become durable out of order."""
        of_attempt = self._stored_of.get((task, attempt))
        return max(of_attempt, key=lambda entry: entry.checkpoint) if of_attempt else None

    @cached_property
    def _stored_of(self) -> dict[tuple[str, int], list[Stored]]:
        """By task and attempt, its stored snapshots."""
        found: dict[tuple[str, int], list[Stored]] = {}
        for entry in sorted(self._entries, key=lambda entry: entry.checkpoint):  # they may be stored out of order
            found.setdefault((entry.task, entry.attempt), []).append(entry)
        return found

    def finished(self, task: str, checkpoint: int) -> bool:
        """Whether a completed checkpoint counts a task as finished."""
        return task in self.finished_at(checkpoint)

    def finished_at(self, checkpoint: int) -> frozenset[str]:
        """The tasks that a completed checkpoint counts as finished."""
        known = self._finished.get(checkpoint)
        if known is None:
            completed = self.completed[checkpoint]
            last = (task for task in self.stored(checkpoint) if task not in completed.handles)
            known = self._finished[checkpoint] = frozenset([*completed.finished, *last])
        return known

    def decoded(self, text: str) -> StoredState | None:
        """`decode_state`, once for each text: what a task loads is mostly the text that the store has."""
        if text not in self._decoded:
            self._decoded[text] = decode_state(text)
        return self._decoded[text]

    def loaded(self, run: TaskRun) -> StoredState | None:
        """What a run loaded; None when it loaded nothing, or text that is no snapshot."""
        return self.decoded(run.loaded.state) if run.loaded is not None else None

    def states(self, checkpoint: int) -> dict[str, StoredState]:
        """The decoded snapshots of a completed checkpoint, by task; those that are not valid JSON are left out."""
        known = self._states.get(checkpoint)
        if known is None:
            decoded = {task: self.decoded(entry.state) for task, entry in self.stored(checkpoint).items()}
            known = self._states[checkpoint] = {task: state for task, state in decoded.items() if state is not None}
        return known

    def states_of(self, operator: str, checkpoint: int) -> Mapping[str, StoredState]:
        """Those of `states` that are of an operator's tasks."""
        known = self._states_of.get(checkpoint)
        if known is None:
            known = self._states_of[checkpoint] = {}
            for task, state in self.states(checkpoint).items():
                known.setdefault(_operator(task), {})[task] = state
        return known.get(operator, _NO_STATES)

    def in_flight(self, checkpoint: int) -> dict[str, InFlight]:
        """By channel, the in-flight data of a completed checkpoint; an empty channel has no entry."""
        known = self._in_flight.get(checkpoint)
        if known is None:
            known = channels_of(self.stored(checkpoint), self.states(checkpoint), self._attempts.runs)
            self._in_flight[checkpoint] = known
        return known

    def positions(self, checkpoint: int) -> dict[int, int]:
        """The next offset of each split according to the snapshots of a completed checkpoint."""
        merged = self._positions.get(checkpoint)
        if merged is None:
            merged = self._positions[checkpoint] = {}
            for enumerated in self.completed[checkpoint].enumerators.values():
                merged.update(enumerated.unassigned)
            for state in self.states(checkpoint).values():
                if state.positions:
                    merged.update(state.positions)
        return merged


_state_decoder = msgspec.json.Decoder(StoredState)


def decode_state(text: str) -> StoredState | None:
    """The engine-neutral part of a snapshot; None when the text is no snapshot."""
    if not text:
        return StoredState()
    try:
        return _state_decoder.decode(text)
    except msgspec.DecodeError:
        return None


def _operator(task: str) -> str:
    return task.rpartition("-")[0]


_NO_STATES: Mapping[str, StoredState] = {}
