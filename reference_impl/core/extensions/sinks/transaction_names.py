"""How the transactions of a sink are named: each anew, or by the ids of a pool (ABS-11)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ...decisions.naming import Naming
from ...job.task_spec import TaskSpec
from ...protocol.sink import OpenTransaction
from ...vocabulary.ids import CheckpointId
from ...vocabulary.state import Sealed


class NewNames:
    """Each transaction has a name of its own."""

    def __init__(self, spec: TaskSpec, naming: Naming) -> None:
        self._spec = spec
        self._naming = naming
        self.serial = 0

    def next(self, sealed: Sequence[Sealed], last_sealed: CheckpointId) -> OpenTransaction:
        spec, self.serial = self._spec, self.serial + 1
        return OpenTransaction(self._naming.transaction(spec.job, spec.task, spec.attempt, self.serial, last_sealed))


class PooledIds:
    """The first transactional id that no sealed transaction holds, and a new epoch."""

    def __init__(self, spec: TaskSpec, naming: Naming) -> None:
        self._spec = spec
        self._naming = naming
        self.serial = 0

    def next(self, sealed: Sequence[Sealed], last_sealed: CheckpointId) -> OpenTransaction:
        spec, self.serial = self._spec, self.serial + 1
        held = [one.pooled_id for one in sealed]
        ids = (self._naming.pooled_id(spec.job, spec.task, number) for number in count())
        free = next(one for one in ids if one not in held)
        return OpenTransaction(self._naming.pooled(free, spec.attempt, self.serial), free)
