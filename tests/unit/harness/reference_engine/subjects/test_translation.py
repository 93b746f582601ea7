"""From the neutral description to the engine: graph, user functions, settings; no name is lost on the way."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import msgspec
import pytest

import cutproof.reference_impl.driver as driver
import cutproof.reference_impl.driver.durable as durable
import cutproof.reference_impl.simulated as simulated
from cutproof.faults.plan import AtTime, DelayChannel, KillCoordinator
from cutproof.faults.points import CONTROL_MESSAGES, PHASES, POINTS
from cutproof.harness.reference_engine.subjects import translation
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Perturbation, Savepoint
from cutproof.properties.model import workload as described
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.operators import holding
from cutproof.reference_impl.core.operators import operators as engine
from cutproof.reference_impl.core.vocabulary.messages import Record
from cutproof.reference_impl.simulated import phases
from unit.core.machines import opened
from unit.harness.scenarios import chain, join


def test_the_graph_has_every_operator_edge_and_split() -> None:
    scenario = chain()
    graph = translation.job_graph(scenario.workload, scenario.topology)
    assert [(spec.name, spec.parallelism, spec.role) for spec in graph.operators] == [
        ("source", 2, "source"),
        ("map", 2, "operator"),
        ("count", 2, "operator"),
        ("sink", 2, "sink"),
    ]
    assert [edge.partitioning for spec in graph.operators for edge in spec.inputs] == ["forward", "hash", "rebalance"]
    assert graph.spec("source").splits == (0, 1)
    assert graph.key_groups == 16


def test_a_join_has_its_left_input_first() -> None:
    scenario = join()
    graph = translation.job_graph(scenario.workload, scenario.topology)
    assert [edge.sender for edge in graph.spec("join").inputs] == ["left", "right"]
    assert [log.split for log in translation.logs(scenario.workload)] == [0, 1]
    assert translation.logs(scenario.workload)[1].records == ((0, 0, 50), (1, 1, 51), (2, 2, 52))


@pytest.mark.parametrize("bounded", [True, False])
def test_an_input_is_bounded_as_described(bounded: bool) -> None:
    scenario = chain()
    (source,) = scenario.workload.inputs
    workload = msgspec.structs.replace(scenario.workload, inputs=(msgspec.structs.replace(source, bounded=bounded),))
    assert translation.job_graph(workload, scenario.topology).spec("source").bounded is bounded


# -- user functions ----------------------------------------------------------------------------------------------


def results(
    operator: described.AnyOperator, *rows: tuple[int | None, int | None]
) -> list[tuple[int | None, int | None]]:
    built = opened(translation.builder(operator)())
    return [(one.key, one.value) for key, value in rows for one in built.apply(Record(key, value, 1, 0, 0), 0)]


@pytest.mark.parametrize(
    ("operator", "rows", "wanted"),
    [
        (described.Map(multiply=3, add=-1), [(5, 2), (None, None)], [(5, 5), (None, None)]),
        (described.Map(rekey=3), [(5, 2), (-1, 2), (None, 4)], [(2, 2), (2, 2), (None, 4)]),
        (described.Filter(modulus=2, drop=0), [(1, 4), (1, 3), (1, -1), (1, None)], [(1, 3), (1, -1)]),
        (described.Filter(modulus=3, drop=2), [(1, 2), (1, -1), (1, 0)], [(1, 0)]),
        (described.FlatMap(fan=2), [(1, 2), (1, 3), (1, -1), (1, None)], [(1, 2), (1, 3), (1, -1), (1, 0)]),
    ],
)
def test_user_functions_mean_what_is_described(
    operator: described.AnyOperator,
    rows: list[tuple[int | None, int | None]],
    wanted: list[tuple[int | None, int | None]],
) -> None:
    assert results(operator, *rows) == wanted


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        (described.Count(), engine.Count),
        (described.Sum(), engine.Sum),
        (described.Greater(), engine.Greater),
        (described.Dedup(), engine.Dedup),
        (described.Union(), engine.Union),
        (described.Join(), engine.Join),
        (described.Batch(), holding.Batch),
        (described.Tally(), holding.Tally),
    ],
)
def test_the_rest_are_the_engines_own(operator: described.AnyOperator, kind: type) -> None:
    build = translation.builder(operator)
    assert type(build()) is kind
    assert build() is not build(), "each subtask has its own"


def test_options_are_handed_on() -> None:
    record = Record(7, 8, 9, 0, 0)
    tagged = [opened(translation.builder(described.Count(tagged=flag))()) for flag in (True, False)]
    assert [one.tag for each in tagged for one in each.apply(record, 0)] == [9, 0]
    two = translation.builder(described.Batch(size=2))()
    assert [len(list(two.apply(record, 0))) for _ in range(3)] == [0, 2, 0]
    keys = [opened(translation.builder(described.Dedup(keys_only=flag))()) for flag in (True, False)]
    assert [one.tag for each in keys for one in each.apply(record, 0)] == [0, 9]


def test_an_operator_with_a_union_reports_it() -> None:
    shares = {type(one): translation.shares(one) for one in (described.Count(), described.Batch(), described.Tally())}
    assert shares == {described.Count: False, described.Batch: False, described.Tally: True}


def test_every_described_operator_can_be_built_and_is_offered() -> None:
    kinds = [kind for kind in described.AnyOperator.__args__ if kind is not described.User]
    offered = {name for name in SimulatedSubject().capabilities.operators if ":" not in name}
    assert {str(kind.__struct_config__.tag) for kind in kinds} == offered - {"functions", "user"}
    sizes = {
        described.Tumbling: {"size": 4},
        described.Sliding: {"size": 4, "slide": 2},
        described.Session: {"gap": 3},
        described.Burst: {"gap_us": 3_000},
    }
    for kind in kinds:
        built = translation.builder(kind(**sizes.get(kind, {})))()
        assert isinstance(built, engine.Operator)
        assert built.keyed is issubclass(kind, described.KEYED)


@pytest.mark.parametrize(
    ("operator", "rows"),
    [
        (described.Count(signed=True), [(1, 7), (1, -7)]),
        (described.Sum(signed=True), [(5, 7), (5, -7)]),
        (described.Join(signed=True), []),
    ],
)
def test_an_operator_that_knows_retractions_is_another(
    operator: described.AnyOperator, rows: list[tuple[int, int]]
) -> None:
    built = opened(translation.builder(operator)())
    assert type(built) is not type(translation.builder(type(operator)())())
    taken = [Record(1, 5, 7, 0, 0), Record(1, 5, -7, 0, 0)]
    assert [(row.value, row.tag) for one in taken for row in built.apply(one, 0)] == rows
    assert not built.rolling


# -- settings ----------------------------------------------------------------------------------------------------


def test_settings_of_the_same_name_are_handed_on() -> None:
    engine_settings = Engine(
        guarantee="at-least-once",
        sink="plain",
        checkpoint_interval_us=1,
        minimum_pause_us=2,
        checkpoint_timeout_us=3,
        concurrent_checkpoints=4,
        tolerated_failures=5,
        retained_checkpoints=6,
        restart_attempts=7,
        restart_delay_us=8,
        channel_capacity=9,
        nodes=10,
        read_interval_us=11,
        apply_cost_us=12,
        control_latency_us=13,
        channel_latency_us=14,
        snapshot_write_us=15,
        transaction_us=16,
        checkpoints_after_finish=False,
        finishing="discard-at-finish",
    )
    config = translation.config(engine_settings)
    settings = translation.settings(msgspec.structs.replace(chain(), engine=engine_settings))
    for name in Engine.__struct_fields__:
        if name not in ("snapshot_mode", "snapshot_store", "two_phase"):
            assert getattr(config, name, getattr(settings, name, None)) == getattr(engine_settings, name), name


@pytest.mark.parametrize(("mode", "synchronous"), [("synchronous", True), ("asynchronous", False)])
@pytest.mark.parametrize(("store", "memory"), [("memory", True), ("files", False)])
def test_modes_and_stores(mode: str, synchronous: bool, store: str, memory: bool) -> None:
    engine_settings = Engine(snapshot_mode=mode, snapshot_store=store)
    config = translation.config(engine_settings)
    assert (config.synchronous, config.snapshots_in_memory) == (synchronous, memory)
    assert translation.settings(msgspec.structs.replace(chain(), engine=engine_settings)).memory is memory


def test_both_sides_have_the_same_defaults() -> None:
    engine_settings = translation.config(Engine())
    assert msgspec.structs.replace(engine_settings, deploy_timeout_us=Config().deploy_timeout_us) == Config()


def test_it_waits_for_a_deployment_longer_than_all_that_is_late() -> None:
    slow = Engine(snapshot_write_us=9_000)
    assert translation.config(Engine()).deploy_timeout_us >= Config().deploy_timeout_us
    assert translation.config(slow, 700).deploy_timeout_us > translation.config(slow).deploy_timeout_us > 9_000


def test_the_limit_of_time_grows_with_what_there_is_to_do_and_to_heal() -> None:
    def limit(**more: object) -> int:
        return translation.settings(msgspec.structs.replace(chain(), **more)).limit_us

    bare = limit(faults=(), commands=(), deviations=())
    link = {"sender": "map-0", "receiver": "count-0"}
    delay = DelayChannel(trigger=AtTime(at_us=0), **link, by_us=1, for_us=9_000)
    assert limit(faults=(delay,), commands=(), deviations=()) > bare + 9_000
    assert limit(faults=(KillCoordinator(trigger=AtTime(at_us=0)),), commands=(), deviations=()) > bare
    assert limit(faults=(), commands=(Savepoint(trigger=AtTime(at_us=0)),), deviations=()) > bare
    assert (
        limit(faults=(), commands=(), deviations=(Perturbation(what="step map-0", occurrence=1, by_us=5),)) >= bare + 5
    )
    assert limit(workload=chain(24).workload, faults=(), commands=(), deviations=()) > bare


def test_a_standstill_is_believed_in_sooner_the_less_there_is_to_heal_however_much_there_is_to_do() -> None:
    def standstill(records: int, **more: object) -> int:
        return translation.standstill_us(msgspec.structs.replace(chain(records), **more))

    bare = standstill(6, faults=(), commands=(), deviations=())
    assert standstill(600, faults=(), commands=(), deviations=()) == bare
    assert standstill(6, faults=(KillCoordinator(trigger=AtTime(at_us=0), down_us=700),)) > bare + 700
    assert bare < translation.settings(chain()).limit_us


@pytest.mark.parametrize(
    ("operator", "identity"),
    [
        *((described.Count(), "key"), (described.Dedup(), "key"), (described.Tally(), "key")),
        *((described.Sum(), "row"), (described.Batch(), "row")),
    ],
)
def test_what_an_idempotent_sink_replaces_rows_by(operator: described.AnyOperator, identity: str) -> None:
    scenario = chain()
    *_, last = scenario.workload.nodes
    workload = msgspec.structs.replace(scenario.workload, nodes=(msgspec.structs.replace(last, operator=operator),))
    assert translation.identity(workload) == identity
    assert translation.identity(msgspec.structs.replace(workload, nodes=())) == "row"


# -- names -------------------------------------------------------------------------------------------------------


def test_the_world_knows_every_point_that_faults_can_target() -> None:
    """Every point stands in the world's sources as it stands in the plan's."""
    folders = [Path(inspect.getfile(world)).parent for world in (driver, durable, simulated)]
    source = "".join(path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.glob("*.py")))
    literals = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source))
    assert set(POINTS) <= literals


def test_the_world_names_exactly_the_phases_that_faults_can_target() -> None:
    source = inspect.getsource(phases.phase_of)
    assert set(re.findall(r'"([a-z]+)"', source)) == set(PHASES)


def test_control_messages_are_named_once() -> None:
    assert len(set(CONTROL_MESSAGES)) == len(CONTROL_MESSAGES)
