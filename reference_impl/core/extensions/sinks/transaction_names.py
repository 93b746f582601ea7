"""How the transactions of a sink are named: each anew, or by the ids of a pool (ABS-11)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ...decisions.snapshots.naming import Naming
from ...job.task_spec import TaskSpec
from ...protocol.sink import OpenTransaction
from ...vocabulary.state import Sealed
from ...vocabulary.transactions import EPOCH


class NewNames:
    """Each transaction has a name of its own."""

    def __init__(self, spec: TaskSpec, naming: Naming) -> None:
        self._spec = spec
        self._naming = naming
        self.serial = 0

    def next(self, sealed: Sequence[Sealed]) -> OpenTransaction:
        spec, self.serial = self._spec, self.serial + 1
        return OpenTransaction(self._naming.transaction(spec.job, spec.task, spec.attempt, self.serial))


class PooledIds:
    """The first transactional id of the task that no sealed transaction holds, and a new epoch: transactions use an id
    one after the other, and the epoch distinguishes them."""

    def __init__(self, spec: TaskSpec) -> None:
        self._spec = spec
        self.serial = 0

    def next(self, sealed: Sequence[Sealed]) -> OpenTransaction:
        spec, self.serial = self._spec, self.serial + 1
        held = [one.pooled_id for one in sealed]
        ids = (f"job-{spec.job}/{spec.task}/id-{number}" for number in count())
        free = next(one for one in ids if one not in held)
        return OpenTransaction(f"{free}{EPOCH}{spec.attempt}-{self.serial}", free)
