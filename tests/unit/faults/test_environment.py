"""Each fault of a plan reaches the environment as the one thing it means."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.injectors.environment import inject
from cutproof.faults.plan import AtTime
from cutproof.faults.points import CONTROL_MESSAGES, PHASES, POINTS
from cutproof.reference_impl.core.vocabulary import messages

NOW = AtTime(at_us=0)
LINK = {"sender": "a-0", "receiver": "b-0"}

MEANINGS: list[tuple[plan.AnyFault, tuple[Any, ...]]] = [
    (plan.KillTask(trigger=NOW, task="a-0"), ("kill_task", 7, "a-0")),
    (plan.KillNode(trigger=NOW, node=1), ("kill_node", 7, 1)),
    (plan.KillCoordinator(trigger=NOW, down_us=9), ("kill_coordinator", 7, 9)),
    (plan.PauseTask(trigger=NOW, task="a-0", for_us=9), ("pause_task", 7, "a-0", 9)),
    (plan.DelayChannel(trigger=NOW, **LINK, by_us=3, for_us=9), ("delay_channel", 7, "a-0", "b-0", 3, 9)),
    (plan.StallChannel(trigger=NOW, **LINK, for_us=9), ("stall_channel", 7, "a-0", "b-0", 9)),
    (plan.CutChannel(trigger=NOW, **LINK), ("cut_channel", 7, "a-0", "b-0")),
    (plan.LoseMessage(trigger=NOW, message="ack"), ("meddle", 7, "lose", "ack", None, 0)),
    (plan.LateMessage(trigger=NOW, message="ack", task="a-0", by_us=3), ("meddle", 7, "late", "ack", "a-0", 3)),
    (plan.RepeatMessage(trigger=NOW, message="ack", after_us=3), ("meddle", 7, "repeat", "ack", None, 3)),
    (plan.FailWrite(trigger=NOW, task=None), ("fail_write", 7, None, "write")),
    (plan.FailRead(trigger=NOW, task="a-0"), ("fail_read", 7, "a-0")),
    (plan.TearWrite(trigger=NOW, task="a-0"), ("tear_write", 7, "a-0", "torn")),
    (plan.LoseUnsynced(trigger=NOW, node=1), ("lose_unsynced", 7, 1)),
    (plan.FailCommit(trigger=NOW, how="refused", times=2), ("fail_commit", 7, None, "refused", 2)),
    (plan.RaiseInOperator(trigger=NOW, task="a-0", always=True), ("raise_in_operator", 7, "a-0", True)),
    (plan.PauseNode(trigger=NOW, node=1, for_us=9), ("pause_node", 7, 1, 9)),
    (plan.ResetChannel(trigger=NOW, **LINK, for_us=9), ("reset_channel", 7, "a-0", "b-0", 9)),
    (plan.SliceChannel(trigger=NOW, **LINK, size=3, for_us=9), ("slice_channel", 7, "a-0", "b-0", 3, 9)),
    (plan.LimitChannel(trigger=NOW, **LINK, bytes=50), ("limit_channel", 7, "a-0", "b-0", 50)),
    (plan.TimeoutChannel(trigger=NOW, **LINK, after_us=9), ("timeout_channel", 7, "a-0", "b-0", 9)),
    (plan.KillProxy(trigger=NOW, down_us=9), ("kill_proxy", 7, 9)),
    (plan.KillDatabase(trigger=NOW, down_us=9), ("kill_database", 7, 9)),
]
METHODS = sorted({meaning[0] for _, meaning in MEANINGS})


class Recording:
    """Remembers what it was asked to suffer; `environment` gives it the methods of one sort or the other."""

    def __init__(self, able: bool) -> None:
        self.able = able
        self.asked: list[tuple[Any, ...]] = []


def environment(able: bool, lacks: tuple[str, ...] = ()) -> Any:
    def method(name: str) -> Any:
        def suffer(self: Recording, *arguments: Any) -> bool:
            self.asked.append((name, *arguments))
            return self.able

        return suffer

    methods = {name: method(name) for name in (*METHODS, "now", "at") if name not in lacks}
    return type("Environment", (Recording,), methods)(able)


@pytest.mark.parametrize("able", [True, False])
@pytest.mark.parametrize(("fault", "meaning"), MEANINGS, ids=[plan.kind_of(fault) for fault, _ in MEANINGS])
def test_meaning(fault: plan.AnyFault, meaning: tuple[Any, ...], able: bool) -> None:
    hit = environment(able)
    assert inject(fault, 7, hit) is able
    assert hit.asked == [meaning]


@pytest.mark.parametrize("fault", [fault for fault, _ in MEANINGS], ids=lambda fault: plan.kind_of(fault))
def test_what_needs_machines_is_not_applied_where_there_are_none(fault: plan.AnyFault) -> None:
    simulated = environment(True, lacks=tuple(kind.replace("-", "_") for kind in plan.MACHINE_KINDS))
    wanted = plan.kind_of(fault) in plan.COMMON_KINDS
    assert inject(fault, 7, simulated) is wanted
    assert len(simulated.asked) == wanted


def test_every_kind_has_a_meaning_and_is_of_one_sort() -> None:
    assert sorted((*plan.COMMON_KINDS, *plan.MACHINE_KINDS)) == sorted(plan.KINDS)
    assert not set(plan.COMMON_KINDS) & set(plan.MACHINE_KINDS)
    assert {plan.kind_of(fault) for fault, _ in MEANINGS} == set(plan.KINDS)


@pytest.mark.parametrize("fault", [fault for fault, _ in MEANINGS], ids=lambda fault: plan.kind_of(fault))
def test_a_fault_is_data(fault: plan.AnyFault) -> None:
    assert msgspec.json.decode(msgspec.json.encode(fault), type=plan.AnyFault) == fault


def test_the_engine_and_the_plan_name_the_same_messages() -> None:
    union = messages.ToTask | messages.ToCoordinator
    assert {str(kind.__struct_config__.tag) for kind in union.__args__} == set(CONTROL_MESSAGES)


def test_every_point_and_phase_states_what_it_is() -> None:
    for name, reason_text in {**POINTS, **PHASES}.items():
        assert name == name.lower()
        assert reason_text.split()[0] in ("a", "an", "the", "some", "no", "all"), name
