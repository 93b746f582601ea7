"""Which attempt made each taken record, if some records were in flight at a checkpoint: for `questions`.

For PySpark, an input or a node with state makes a row, in some attempt, and the row
passes the stateless nodes downstream at once.  In a run each of these nodes takes and
sends the row, and each time the row may be in flight at a checkpoint.  A later attempt
then continues with the row: it was restored as `queued` in its own input, or as `unsent`
of a task upstream.

So each application is followed back to the attempt that made the row.  The n-th row of
an origin that came through a channel is the n-th among the rows with which the receiver
was restored and then those that the sender sent.  A checkpoint holds those rows of a
channel that follow the last row taken by the receiver at its mark, in the receiver's
attempt.  A row sent by a stateless node has the attempt of the row that the node took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import msgspec

from ..model.history import StoredState, TaskRun
from ..model.workload import STATEFUL
from ..quick_checker.case import Case
from ..reconstruct.in_flight import origins

Attempts = dict[int, list[int]]
"""By origin, for each record with this origin, in order, the attempt that made it."""


class Coming(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a channel in their order: first those of `restored`, then those of `sent`."""

    restored: Mapping[int, list[int]]
    sent: Mapping[int, list[int]]
    attempt: int
    """the attempt that made all other records"""

    def made_by(self, origin: int, nth: int) -> int:
        """The attempt that made the `nth` (from 0) record of an origin; a record too many counts as the last one."""
        known: list[int] = [*self.restored.get(origin, ()), *self.sent.get(origin, ())]
        if nth < len(known):
            return known[nth]
        return known[-1] if origin in self.sent else self.attempt


class Senders:
    """The attempts of one case's records."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._lineages = case.lineages
        self._replay = case.expected.replay
        self._makers = {source.name for source in case.workload.inputs}
        self._makers |= {node.name for node in case.workload.nodes if isinstance(node.operator, STATEFUL)}
        self._taken: dict[tuple[str, int], list[int]] = {}
        self._sent: dict[tuple[str, int], Coming] = {}
        self._held: dict[tuple[int, str], Attempts] = {}

    def of(self, run: TaskRun) -> list[int]:
        """For each record that a run took, the attempt that made it."""
        if not self._any:
            return [run.attempt] * len(run.applies)
        known = self._taken.get((run.task, run.attempt))
        if known is None:
            known = self._taken[run.task, run.attempt] = self._follow(run)
        return known

    @cached_property
    def _any(self) -> bool:
        """Whether any completed checkpoint has in-flight data."""
        return any(self._lineages.snapshots.in_flight(number) for number in self._lineages.completed)

    def _follow(self, run: TaskRun) -> list[int]:
        coming = [self._coming(run, channel) for channel in run.inputs]
        counts: Counter[tuple[int, int]] = Counter()
        found = []
        for channel, origin in run.applies:
            found.append(coming[channel].made_by(origin, counts[channel, origin]))
            counts[channel, origin] += 1
        return found

    def _coming(self, run: TaskRun, channel: str) -> Coming:
        """The records of one of a run's inputs: first the restored ones, then those that the sender sent."""
        sent = self._from(channel.partition(">")[0], run.attempt)
        restored = self._restored(run, channel)
        for origin, known in sent.restored.items():
            restored[origin] = restored.get(origin, []) + known
        return Coming(restored=restored, sent=sent.sent, attempt=sent.attempt)

    def _from(self, task: str, attempt: int) -> Coming:
        """The records that an attempt of a task sent: first the unsent ones of its snapshot."""
        known = self._sent.get((task, attempt))
        if known is None:
            run = self._lineages.runs.get((task, attempt))
            restored = self._unsent(run) if run is not None else {}
            made = self._passed_on(run) if run is not None and run.operator not in self._makers else {}
            known = self._sent[task, attempt] = Coming(restored=restored, sent=made, attempt=attempt)
        return known

    def _passed_on(self, run: TaskRun) -> Attempts:
        """The records that a run of a stateless node emitted."""
        taken = self.of(run)
        found: Attempts = {}
        for count, origin, _ in self._replay.run(run.task, run.attempt).emitted:
            found.setdefault(origin, []).append(taken[count - 1])
        return found

    def _restored(self, run: TaskRun, channel: str) -> Attempts:
        """The queued records that a run was restored with in one of its inputs."""
        checkpoint, state = self._loaded(run)
        passing = state.queued.get(run.inputs.index(channel)) if state.queued else None
        if not passing:
            return {}
        queued = Counter(origins(passing))
        rescaled = self._case.rescaled(run.attempt, checkpoint)
        held = self._held_between(checkpoint, channel) if rescaled else self._held_of(checkpoint, channel)
        return {origin: held.get(origin, [])[:count] for origin, count in queued.items()}

    def _unsent(self, run: TaskRun) -> Attempts:
        """The unsent records that a run was restored with: they are the last in-flight records of their channels."""
        checkpoint, state = self._loaded(run)
        found: Attempts = {}
        for number, passing in state.unsent.items():
            if number < len(run.outputs):
                held = self._held_of(checkpoint, run.outputs[number])
                for origin, count in Counter(origins(passing)).items():
                    found.setdefault(origin, []).extend(held.get(origin, [])[-count:])
        return found

    def _loaded(self, run: TaskRun) -> tuple[int, StoredState]:
        """(checkpoint, state) that a run loaded; an empty state if it loaded no completed checkpoint."""
        if run.loaded is None or run.loaded.checkpoint not in self._lineages.completed:
            return 0, _EMPTY
        return run.loaded.checkpoint, self._lineages.snapshots.loaded(run) or _EMPTY

    def _held_of(self, checkpoint: int, channel: str) -> Attempts:
        """The in-flight records that a completed checkpoint holds of a channel."""
        known = self._held.get((checkpoint, channel))
        if known is None:
            known = self._held[checkpoint, channel] = {}
            held = self._lineages.snapshots.in_flight(checkpoint).get(channel)
            receiver = channel.partition(">")[2]
            stored = self._lineages.snapshots.stored(checkpoint).get(receiver)
            attempt = stored.attempt if stored else self._lineages.completed[checkpoint].attempt
            run = self._lineages.runs.get((receiver, attempt))
            if held is not None and run is not None and channel in run.inputs:
                counts = self._taken_before(run, channel, checkpoint)
                coming = self._coming(run, channel)
                for origin in held.origins:
                    known.setdefault(origin, []).append(coming.made_by(origin, counts[origin]))
                    counts[origin] += 1
        return known

    def _held_between(self, checkpoint: int, channel: str) -> Attempts:
        """The in-flight records that a completed checkpoint holds of all channels between two operators.

        A rescaled job has other channels.  Rows of one origin have one key: they are in one old and one new channel.
        """
        known: Attempts = {}
        for before in self._lineages.snapshots.in_flight(checkpoint):
            if _operators(before) == _operators(channel):
                for origin, attempts in self._held_of(checkpoint, before).items():
                    known.setdefault(origin, []).extend(attempts)
        return known

    def _taken_before(self, run: TaskRun, channel: str, checkpoint: int) -> Counter[int]:
        """By origin, how many records a run had taken from a channel at its mark."""
        mark = self._lineages.mark(run.task, run.attempt, checkpoint)
        number = run.inputs.index(channel)
        taken = run.applies[: mark.applies] if mark is not None else []
        return Counter(origin for at, origin in taken if at == number)


_EMPTY = StoredState()


def _operators(channel: str) -> tuple[str, ...]:
    """The two operators that a channel connects."""
    return tuple(task.rpartition("-")[0] for task in channel.split(">"))
