"""Nothing is asked of a subject that it has not declared: a property over drawn capabilities, every template and
seeds; and a small engine of somebody's own, which takes no more than it says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from cutproof.harness.generate.situations.templates import TEMPLATES
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.subject.abilities import VOCABULARIES, demand, names_of, usable
from cutproof.harness.subject.needs import lacks, needs
from cutproof.harness.subject.port import Capabilities
from cutproof.harness.subject.run import run
from cutproof.properties.model.workload import Count, Dedup, Input, Join, Node, Sum, Tumbling, User, Workload
from unit.harness.narrow_engine import ALL, NARROW, NarrowEngine

SIMULATED, PROCESSES = SimulatedSubject().capabilities, ProcessesSubject().capabilities
ESSENTIAL = ("guarantees", "sinks", "edges", "sources", "snapshot_modes", "snapshot_stores", "committing", "alignments")


def drawn_from(can: Capabilities, number: int) -> Capabilities:
    """Some of what a subject can do: of each field few or many, and mostly one of what every job takes."""
    source = random.Random(number)
    changes: dict[str, object] = {}
    for field in can.__struct_fields__:
        declared = getattr(can, field)
        if isinstance(declared, bool):
            changes[field] = declared and (field == "real_time" or source.random() < 0.5)
            continue
        share = source.choice((0.1, 0.3, 0.6, 0.9))
        some = frozenset(name for name in sorted(declared) if source.random() < share)
        one = frozenset(source.sample(sorted(declared), min(1, len(declared))))
        changes[field] = some or (one if field in ESSENTIAL and source.random() < 0.95 else some)
    return replace(can, **changes)


def is_enough(can: Capabilities) -> bool:
    try:
        demand(can, "it")
    except UsageError:
        return False
    return True


DRAWN = [
    can for number in range(90) if is_enough(can := drawn_from((SIMULATED, SIMULATED, PROCESSES)[number % 3], number))
][:24]


@pytest.mark.parametrize("template", TEMPLATES)
def test_no_template_draws_anything_that_the_subject_has_not_declared(template: str) -> None:
    assert len(DRAWN) == 24
    wrong: list[tuple[object, ...]] = []
    for number, can in enumerate(DRAWN):
        draw = scenario_of(Drawing(capabilities=can, templates=(template,)))
        for index in range(2):
            one = draw(number, index)
            wrong += [(number, index, what) for what in (*lacks(one, can), *problems_of(one))]
    assert wrong == []


def test_nor_do_all_of_them_together() -> None:
    wrong = []
    for number, can in enumerate(DRAWN):
        draw = scenario_of(Drawing(capabilities=can))
        wrong += [(number, index, missing) for index in range(20) if (missing := lacks(draw(number, index), can))]
    assert wrong == []


@pytest.mark.parametrize("can", DRAWN[:6], ids=range(6))
def test_the_same_capabilities_and_seed_draw_the_same(can: Capabilities) -> None:
    first, second = (scenario_of(Drawing(capabilities=can)) for _ in range(2))
    assert [first(3, index) for index in range(8)] == [second(3, index) for index in range(8)]


def test_a_template_with_nothing_to_show_is_left_out() -> None:
    can = replace(SIMULATED, enumerators=False, local_recovery=False, operators={"map", "count"})
    draw = scenario_of(Drawing(capabilities=can))
    names = Counter(draw(5, index).name for index in range(300))
    assert not names.keys() & {"S2", "S10", "S11", "local", "user-function", "part-finished", "crash-while-waiting"}
    assert {"S1", "S3", "S7", "regional", "general", "cells"} <= names.keys()


# -- a small engine of somebody's own ------------------------------------------------------------------------------


def subsets() -> list[Capabilities]:
    """The one of a first adapter, and ten of what the engine could do."""
    found = [NARROW]
    number = 0
    while len(found) < 11:
        can = drawn_from(ALL, number)
        if is_enough(can) and can.guarantees and can.sources == {"bounded"}:
            found.append(can)
        number += 1
    return found


@pytest.mark.parametrize("can", subsets(), ids=range(11))
def test_a_narrow_engine_is_asked_for_no_more_and_never_accused(can: Capabilities) -> None:
    engine = NarrowEngine(can)
    draw = scenario_of(Drawing(capabilities=can))
    scenarios = [draw(90210, index) for index in range(40)]
    accused = {one.seed: list(names) for one in scenarios if (names := run(engine, one).judgement.violated)}
    assert accused == {}
    assert sum(bool(one.faults) for one in scenarios) > 10 or "kill-task" not in can.faults


def test_the_narrow_engine_breaks_on_what_it_has_not_declared() -> None:
    wide = scenario_of(Drawing(capabilities=SIMULATED))
    refused = 0
    for index in range(40):
        try:
            run(NarrowEngine(), wide(1, index))
        except KeyError:
            refused += 1
    assert refused > 30


# -- what a scenario needs -----------------------------------------------------------------------------------------

PLAIN = Workload(name="w", inputs=(Input(name="source", splits=((),)),))


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        (Count(), {"count"}),
        (Count(tagged=True), {"count", "count:tagged"}),
        (Count(signed=True), {"count", "count:signed"}),
        (Sum(), {"sum"}),
        (Sum(signed=True), {"sum", "sum:signed"}),
        (Join(signed=True), {"join", "join:signed"}),
        (Dedup(), {"dedup"}),
        (Dedup(keys_only=False), {"dedup", "dedup:rows"}),
        (Tumbling(size=5), {"tumbling"}),
        (Tumbling(size=5, lateness=1), {"tumbling", "tumbling:late"}),
        (User(function="mine", ordered=True, timed=True), {"user", "user:ordered", "user:timed"}),
        (User(function="cutproof/lulls", clocked=True), {"functions", "functions:clocked"}),
    ],
)
def test_an_operator_takes_its_kind_and_each_flag(operator: Count, names: set[str]) -> None:
    assert names_of(operator) == names
    assert names <= set(VOCABULARIES["operators"][1])


def test_retractions_stand_for_the_flag_of_each_operator_that_is_declared() -> None:
    node = Node(name="n", operator=Count(signed=True), inputs=("source",))
    topology = scenario_of(Drawing())(1, 1).topology
    one = Scenario(workload=replace(PLAIN, nodes=(node,)), topology=replace(topology, edges=()))
    declared = Capabilities(operators={"count", "retractions"})
    assert lacks(one, declared) == ()
    assert lacks(one, Capabilities(operators={"count"})) == ("the operator count:signed",)
    assert lacks(one, Capabilities(operators={"sum", "retractions"})) == (
        "the operator count",
        "the operator count:signed",
    )


def test_the_reference_engine_declares_all_that_is_drawn() -> None:
    everything = Capabilities(**{field: frozenset(names) for field, (_, names) in VOCABULARIES.items()})
    for field, (_, names) in VOCABULARIES.items():
        names = getattr(SIMULATED, field)
        assert names >= set(names) - {"retractions"} or field in ("faults", "local_spilling"), field
    assert is_enough(everything)


ENGINE: list[tuple[str, object, Callable[[Capabilities], object]]] = [
    ("guarantee", "at-least-once", lambda can: "at-least-once" in can.guarantees),
    ("sink", "plain", lambda can: "plain" in can.sinks),
    ("committing", "global", lambda can: "global" in can.committing),
    ("pooled_ids", True, lambda can: can.pooled_ids),
    ("alignment", "timeout", lambda can: "timeout" in can.alignments),
    ("spilling", "continuous", lambda can: "continuous" in can.spilling and "log" in can.spill_stores),
    ("state_backend", "lsm", lambda can: "lsm" in can.state_backends),
    ("snapshot_mode", "synchronous", lambda can: "synchronous" in can.snapshot_modes),
    ("snapshot_format", "incremental", lambda can: "incremental" in can.snapshot_formats),
    ("snapshot_store", "memory", lambda can: "memory" in can.snapshot_stores),
    ("concurrent_checkpoints", 2, lambda can: can.concurrent_checkpoints),
    ("trims_logs", True, lambda can: can.trims_logs),
    ("local_channels", True, lambda can: can.local_channels),
    ("checkpoints_after_finish", False, lambda can: can.final_checkpoint_alone),
    ("failover", "region", lambda can: can.regional_recovery),
    ("failover", "local", lambda can: can.local_recovery and "at-once" in can.local_spilling),
    ("two_phase", ("m",), lambda can: can.two_phase),
]


@pytest.mark.parametrize(
    ("field", "value", "is_refused"), ENGINE, ids=[f"{field} {value}" for field, value, _ in ENGINE]
)
def test_each_departure_from_the_usual_engine_is_needed(
    field: str, value: object, is_refused: Callable[[Capabilities], object]
) -> None:
    drawn = scenario_of(Drawing())(1, 1)
    usual = Scenario(workload=PLAIN, topology=drawn.topology)
    other = replace(usual, engine=replace(Engine(), **{field: value}))
    assert not is_refused(needs(usual))
    assert is_refused(needs(other))


SIZES = {
    "alignment_timeout_us", "spill_after_us", "spill_store", "spill_flush_us", "checkpoint_interval_us",
    "full_every", "minimum_pause_us", "checkpoint_timeout_us", "tolerated_failures", "retained_checkpoints",
    "restart_attempts",
    "restart_delay_us", "channel_capacity", "nodes", "read_interval_us", "apply_cost_us", "channel_latency_us",
    "control_latency_us", "snapshot_write_us", "transaction_us", "finishing", "memtable_entries", "compaction_files",
    "compaction_us", "snapshot_byte_ns", "savepoints",
}  # fmt: skip
"""settings that say how much or how long, `spill_store`, which is told of spilling, and `finishing` and `savepoints`,
of which only one way is drawn"""


def test_no_setting_of_the_engine_is_forgotten() -> None:
    assert {field for field, _, _ in ENGINE} | SIZES == set(Engine.__struct_fields__)


# -- declared wrongly ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ({"faults": {"kill-tsk"}}, "the fault 'kill-tsk', which does not exist; did you mean 'kill-task'?"),
        ({"commands": {"savepiont"}}, "the command 'savepiont', which does not exist; did you mean 'savepoint'?"),
        ({"operators": ["cuont"]}, "the operator 'cuont', which does not exist; did you mean 'count'?"),
        ({"operators": {"count:singed"}}, "'count:singed', which does not exist; did you mean 'count:signed'?"),
        ({"alignments": {"alligned"}}, "the alignment 'alligned', which does not exist; did you mean 'aligned'?"),
        ({"edges": ("hsah",)}, "the edge 'hsah', which does not exist; did you mean 'hash'?"),
        ({"sinks": ()}, "of sinks it declares none of transactional, idempotent, plain"),
        ({"guarantees": {"at-most-once"}}, "the guarantee at-most-once needs the sink plain"),
        ({"edges": {"broadcast"}}, "of edges it declares none of forward, hash, rebalance"),
        ({"sources": {"idle"}}, "of sources it declares none of bounded, unbounded"),
        ({"alignments": {"unaligned"}, "spilling": ()}, "of spilling it declares none of at-once"),
    ],
)
def test_what_is_wrong_with_a_declaration_is_one_line(declared: dict[str, set[str]], reason: str) -> None:
    with pytest.raises(UsageError, match=r"^my:Engine [^\n]{,200}$") as caught:
        demand(Capabilities(**declared), "my:Engine")
    assert reason in str(caught.value)


def test_any_collection_of_names_will_do_but_no_text() -> None:
    assert Capabilities(operators=["count"]) == Capabilities(operators=frozenset({"count"}))
    assert hash(Capabilities(faults={"kill-task"})) == hash(Capabilities(faults=("kill-task",)))
    with pytest.raises(UsageError, match="Capabilities\\(operators='count'\\): it takes a set of names"):
        Capabilities(operators="count")  # type: ignore[arg-type]
    decoded = msgspec.json.decode(msgspec.json.encode(SIMULATED), type=Capabilities)
    assert decoded == SIMULATED == usable(SIMULATED)


def test_the_earlier_name_of_refuses_incompatible_sets_it() -> None:
    earlier = Capabilities(refuses_unfit=True)
    assert earlier == Capabilities(refuses_incompatible=True)
    assert not replace(earlier, refuses_incompatible=False).refuses_incompatible
    assert msgspec.json.decode(b'{"refuses_unfit":true}', type=Capabilities) == earlier


def test_a_workload_that_takes_more_is_refused_by_name() -> None:
    node = Node(name="total", operator=Sum(), inputs=("source",))
    orders = Workload(name="orders", inputs=(Input(name="source", splits=(((1, 2, 3),),)),), nodes=(node,))
    with pytest.raises(UsageError, match="cannot run the workload orders: it needs the operator sum"):
        scenario_of(Drawing(workload=orders, capabilities=NARROW))
    draw = scenario_of(Drawing(workload=orders, capabilities=Capabilities(operators={"sum"})))
    assert draw(1, 1).workload == orders
