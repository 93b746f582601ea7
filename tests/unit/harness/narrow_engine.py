"""A small engine of somebody's own, and its adapter, which takes what it has declared and nothing else.

What it takes is written here once more, by hand: an adapter of a user's knows nothing of how the harness counts.
"""

from __future__ import annotations

from cutproof.faults.plan import KillTask
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.history import History
from cutproof.properties.model.workload import Count, Dedup, Join, Sum
from unit.properties.toy import Toy

FLAGGED = {
    "count:tagged": lambda operator: isinstance(operator, Count) and operator.tagged,
    "count:signed": lambda operator: isinstance(operator, Count) and operator.signed,
    "sum:signed": lambda operator: isinstance(operator, Sum) and operator.signed,
    "join:signed": lambda operator: isinstance(operator, Join) and operator.signed,
    "dedup:rows": lambda operator: isinstance(operator, Dedup) and not operator.keys_only,
}
"""the flags that the engine has, and how an operator with one is known"""
ALL = Capabilities(
    faults={"kill-task"},
    operators={"map", "filter", "flat-map", "count", "sum", "greater", "dedup", "union", "join", *FLAGGED},
    edges={"forward", "hash", "rebalance"},
    sources={"bounded"},
)
NARROW = Capabilities(operators={"count"})
"""as a first adapter says it: everything else is the default"""


class NarrowEngine:
    """Runs a job on one thread, with a checkpoint now and then; a task that is killed starts everything again."""

    name = "narrow"

    def __init__(self, capabilities: Capabilities = NARROW) -> None:
        self.capabilities = capabilities

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        self._refuse(scenario)
        toy = Toy((scenario.workload, scenario.topology), seed=len(scenario.faults))
        toy.start()
        for fault in scenario.faults:
            assert isinstance(fault, KillTask)
            toy.wander(60, kills=0)
            toy.kill(fault.task)
            toy.restart()
        toy.wander(60, kills=0)
        if all(source.bounded for source in scenario.workload.inputs):
            toy.finish()
        else:
            toy.read_all()
            toy.checkpoint_now()
        return toy.history()

    def _refuse(self, scenario: Scenario) -> None:
        """Raise KeyError for what nobody has told this engine of, as one that is looked up in a table does."""
        can, usual, engine = self.capabilities, Engine(), scenario.engine
        for node in scenario.workload.nodes:
            needed = {str(type(node.operator).__struct_config__.tag)}
            needed |= {flag for flag, has in FLAGGED.items() if has(node.operator)}
            if not needed <= can.operators:
                raise KeyError(f"{node.operator}")
        for edge in scenario.topology.edges:
            if edge.partitioning not in can.edges:
                raise KeyError(edge.partitioning)
        for source in scenario.workload.inputs:
            if source.idle_after_us or not source.rewindable or source.is_enumerated:
                raise KeyError(source.name)
            if ("bounded" if source.bounded else "unbounded") not in can.sources:
                raise KeyError("an input that goes on for ever, or that does not")
        for field in ("guarantee", "sink", "committing", "pooled_ids", "alignment", "spilling", "snapshot_mode"):
            if getattr(engine, field) != getattr(usual, field):
                raise KeyError(field)
        for field in ("snapshot_store", "trims_logs", "local_channels", "checkpoints_after_finish", "failover"):
            if getattr(engine, field) != getattr(usual, field):
                raise KeyError(field)
        if engine.two_phase or engine.concurrent_checkpoints > 1 or scenario.commands or scenario.deviations:
            raise KeyError("more than this engine has")
        if scenario.faults and "kill-task" not in can.faults:
            raise KeyError("kill-task")
