"""Local recovery from the logs of continuous spilling: one log of a channel, which snapshots refer to and a lost task
reads (UNA-4, UNA-2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cutproof.faults.plan import AnyFault, AtPoint, AtTime, KillCoordinator, KillTask, PauseTask
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, Channel
from cutproof.properties.model.verdict import Violated
from cutproof.properties.reconstruct.lineages import Lineages
from cutproof.properties.reconstruct.snapshots import decode_state
from cutproof.reference_impl.core.decisions.local_recovery import End
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.messages import EndOfData, Record
from cutproof.reference_impl.simulated.logs import AnyLog, LogShelf, OwnLog, SpilledLog
from cutproof.reference_impl.simulated.loop import Loop
from cutproof.reference_impl.simulated.persistent_channels import Inlet, Outlet, PersistentChannel
from unit.simulated.overtaken import job as crowded

STORES = ("log", "files")
LOST = "op0-0"


def locally(*faults: AnyFault, **settings: Any) -> Scenario:
    """Records lie in the channels when barriers come; a lost task recovers locally."""
    drawn = {"spilling": "continuous", "failover": "local", "nodes": 3, "records": 120, **settings}
    return crowded(faults=faults, **drawn)


def lost(task: str = LOST, behind: int = 2) -> KillTask:
    """Once so many checkpoints are complete."""
    return KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=behind), task=task)


def result_of(drawn: Scenario, defect: str | None = None) -> Result:
    return run(subject_called("simulated", defect), drawn)


def violated(result: Result) -> dict[str, Violated]:
    return {name: one for name, one in result.judgement.verdicts.items() if isinstance(one, Violated)}


def recovered_locally(result: Result) -> list[str]:
    return [task for one in result.history.journal if isinstance(one, AttemptStarted) for task in one.tasks]


def rows(result: Result) -> list[tuple[int, int]]:
    """Keys and counts: which record is counted when depends on how long channels take."""
    return sorted((row[0], row[1]) for row in result.history.committed)


def first_numbers(result: Result) -> Iterator[tuple[int, int, int]]:
    """Of each input of each snapshot that refers to a log: the attempt, the first number that it names, and how many
    records the task had taken of that channel, with those that attempts before it had taken."""
    lineages = Lineages(result.history)
    assert lineages.persistent is not None
    for stored in result.history.stored:
        state = decode_state(stored.state)
        one, mark = (
            lineages.runs[stored.task, stored.attempt],
            lineages.mark(stored.task, stored.attempt, stored.checkpoint),
        )
        assert state is not None
        assert mark is not None
        for channel, refs in state.spilled.items():
            before = lineages.persistent.first_taken(one, one.inputs[int(channel)])
            yield stored.attempt, refs[0][1], before + mark.received[int(channel)]


# -- one log -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", STORES)
def test_snapshots_of_one_that_recovered_locally_name_what_is_in_the_logs_of_the_one_before(store: str) -> None:
    result = result_of(locally(lost(), spill_store=store))
    assert recovered_locally(result) == [LOST]
    assert {log.name.rpartition("/")[0].rpartition("-")[2] for log in result.history.logs} == {"1"}
    numbers = list(first_numbers(result))
    assert {2} <= {attempt for attempt, _, _ in numbers} <= {1, 2}
    assert [first for _, first, _ in numbers] == [taken for _, _, taken in numbers]
    assert max(first for attempt, first, _ in numbers if attempt == 2) > 0
    assert not violated(result)


@pytest.mark.parametrize("alignment", ["aligned", "unaligned", "timeout"])
@pytest.mark.parametrize("store", STORES)
def test_it_does_the_same_again_as_from_a_log_of_the_channels_own(store: str, alignment: str) -> None:
    own, spilled = (
        result_of(locally(lost(), spilling=way, spill_store=store, alignment=alignment))
        for way in ("at-once", "continuous")
    )
    assert recovered_locally(own) == recovered_locally(spilled) == [LOST]
    assert (bool(own.history.logs), bool(spilled.history.logs)) == (False, True)
    assert rows(own) == rows(spilled)
    assert not violated(own)
    assert not violated(spilled)


def test_no_log_is_left_but_of_what_the_last_snapshot_refers_to() -> None:
    result = result_of(locally(lost(), lost("op1-0", 3)))
    assert recovered_locally(result)
    assert result.history.residue.logs == []
    assert any(log.trims for log in result.history.logs if log.task == LOST)


def test_who_stood_still_writes_in_vain_into_the_log_of_the_one_in_its_place() -> None:
    """A flush of its own is under way, and the one in its place has written on."""
    pause = PauseTask(trigger=AtPoint(point="checkpoint-completed", occurrence=2), task=LOST, for_us=30_000)
    result = result_of(locally(pause, spill_flush_us=700))
    assert recovered_locally(result) == [LOST]
    assert [first for _, first, _ in first_numbers(result)] == [taken for _, _, taken in first_numbers(result)]
    assert not violated(result)


@pytest.mark.parametrize("way", ["at-once", "continuous"])
def test_who_stands_still_while_it_comes_up_is_over_when_another_has(way: str) -> None:
    """Found by the search: its snapshot is read when it goes on, in the place of which it knows nothing any more."""
    slow = {"spilling": way, "snapshot_write_us": 3_000, "records": 300}
    starts = [
        one.at_us for one in result_of(locally(lost(), **slow)).history.journal if isinstance(one, AttemptStarted)
    ]
    pause = PauseTask(trigger=AtTime(at_us=starts[1] + 400), task=LOST, for_us=15_000)
    result = result_of(locally(lost(), pause, **slow))
    assert recovered_locally(result) == [LOST, LOST]
    assert [one.loaded is None for one in result.history.runs if one.task == LOST] == [True, True, False]
    assert not violated(result)


@pytest.mark.parametrize("alignment", ["aligned", "unaligned"])
def test_what_was_durable_nowhere_is_made_again(alignment: str) -> None:
    """No flush is done before the end: sender and receiver are lost at once, and with them what lay between."""
    faults = (lost("source-0"), lost(LOST), lost("op1-0"))
    result = result_of(locally(*faults, alignment=alignment, spill_store="files", spill_flush_us=3_000))
    assert sorted(recovered_locally(result)) == [LOST, "op1-0", "source-0"]
    assert sum(len(one.repeated) for one in result.history.channels) > 0
    assert not violated(result)


@pytest.mark.parametrize("way", ["at-once", "continuous"])
def test_what_was_in_flight_when_a_job_is_given_up_amid_a_recovery_is_not_expected(way: str) -> None:
    """Found by the search: the newest checkpoint is that which a source had gone back to alone."""
    coordinator_dies = KillCoordinator(trigger=AtPoint(point="state-loaded", task="source-0"))
    result = result_of(locally(lost("source-0", 1), coordinator_dies, spilling=way, snapshot_store="memory"))
    assert recovered_locally(result) == ["source-0"]
    newest = Lineages(result.history).snapshots.in_flight(max(one.checkpoint for one in result.history.completed))
    assert [channel for channel, held in newest.items() if held.origins and channel.startswith("source-0>")]
    assert not violated(result)


def test_no_drawn_run_that_reads_logs_is_accused() -> None:
    draw = scenario_of(Drawing(templates=("local",), max_records=60))
    drawn = [one for one in (draw(3, number) for number in range(40)) if one.engine.spilling == "continuous"]
    results = [result_of(one) for one in drawn]
    assert [one.seed for one, result in zip(drawn, results, strict=True) if violated(result)] == []
    assert sum(bool(recovered_locally(result)) for result in results) >= 5


# -- wrong code --------------------------------------------------------------------------------------------------


def test_a_log_that_is_begun_again_is_seen_in_the_snapshots_that_refer_to_it() -> None:
    result = result_of(locally(lost()), "P08")
    assert result.history.defect_reached
    assert "consistent-cut" in violated(result)
    assert not result_of(locally(), "P08").history.defect_reached, "nobody is lost"


def test_what_a_sender_forgets_too_early_is_missed() -> None:
    result = result_of(locally(lost(), spill_store="files"), "P09")
    assert result.history.defect_reached
    assert violated(result).keys() & {"order", "no-data-loss", "progress"}


# -- the channel -------------------------------------------------------------------------------------------------


class Sender:
    """Whoever is at the sending end."""

    alive = True

    def drain(self) -> None:
        pass


class Rig:
    """One channel; its receiver writes its log by hand, unless the channel has its own."""

    def __init__(self, log: AnyLog | None = None) -> None:
        self.shelf = LogShelf(whole_files=False)
        account = Channel(name="a>b", attempt=1, sent=[])
        self.channel = PersistentChannel("a>b", Parts(), 100, account, log or SpilledLog(self.shelf, "log"))
        self.outlet = self.sends(account)
        self.inlet = self.receives()
        self.inlet.open(())

    def sends(self, account: Channel) -> Outlet:
        outlet = Outlet(self.channel, account)
        outlet.sender = Sender()  # type: ignore[assignment]
        self.channel.outlet = outlet
        return outlet

    def receives(self) -> Inlet:
        inlet = Inlet(self.channel, Loop(), latency=0, late=None)
        self.channel.receive_at(inlet)
        return inlet

    def flush(self, *numbers: int) -> None:
        for number in numbers:
            self.shelf.append("log", number, record(number))
        self.shelf.finish("log", self.shelf.begin("log"))


def record(number: int) -> Record:
    return Record(0, number, 0, 0, number)


def test_a_sender_keeps_what_is_not_durable() -> None:
    rig = Rig()
    for number in range(4):
        rig.outlet.push(record(number))
    assert [number for number, _ in rig.outlet.kept] == [0, 1, 2, 3]
    rig.flush(0, 1)
    rig.outlet.push(record(4))
    assert [number for number, _ in rig.outlet.kept] == [2, 3, 4]


def test_another_receiver_finds_what_is_durable_and_what_the_sender_has() -> None:
    rig = Rig()
    rig.outlet.push(record(0))
    rig.flush(0)
    rig.outlet.push(record(1))
    rig.outlet.push(record(2))
    assert rig.receives().received == {number: record(number) for number in range(3)}
    assert rig.channel.entered == 3


def test_what_both_had_and_nobody_made_durable_is_expected_and_taken_in_when_it_is_sent_again() -> None:
    rig = Rig()
    for number in range(3):
        rig.outlet.push(record(number))
    rig.flush(0)
    rig.outlet.sender.alive = False  # type: ignore[union-attr]
    inlet = rig.receives()
    assert inlet.received == {0: record(0)}
    assert rig.channel.is_expected(1)
    account = Channel(name="a>b", attempt=2, sent=[])
    again = rig.sends(account)
    for number in range(4):
        assert again.is_behind == (number < 3)
        again.push(record(number))
    assert inlet.received == {number: record(number) for number in range(4)}
    assert (account.repeated, account.sent) == ([0, 1, 2], [3]), "for the network they came before"
    assert not rig.channel.is_expected(3)


def test_an_end_is_reported_again_to_one_that_did_not_take_it_and_to_no_other() -> None:
    rig = Rig()
    rig.outlet.push(EndOfData())
    rig.outlet.sender.alive = False  # type: ignore[union-attr]
    ignorant, knowing = rig.receives(), rig.receives()
    rig.channel.has_ended(End.DATA)
    rig.sends(Channel(name="a>b", attempt=2, sent=[])).push(EndOfData())
    knowing.open([End.DATA])
    assert list(knowing.queue) == []
    ignorant.open(())
    assert [element for _, element in ignorant.queue] == [EndOfData()]


def test_a_log_on_the_shelf_is_counted_behind_what_the_channel_began_with() -> None:
    rig = Rig()
    rig.inlet.refill([record(7), record(8)], lambda restored, live: (*restored, *live))
    rig.flush(0)
    assert (rig.channel.logged, rig.channel.durable) == (1, 0)
    rig.flush(1, 2)
    assert (rig.channel.logged, rig.channel.durable) == (3, 1)


def test_an_end_that_was_taken_is_not_passed_on_again_to_whoever_is_open() -> None:
    rig = Rig()
    rig.outlet.push(EndOfData())
    rig.outlet.sender.alive = False  # type: ignore[union-attr]
    knowing = rig.receives()
    rig.channel.has_ended(End.DATA)
    knowing.open([End.DATA])
    rig.sends(Channel(name="a>b", attempt=2, sent=[])).push(EndOfData())
    assert list(knowing.queue) == []


def test_who_has_been_replaced_sends_to_nobody_and_finds_nothing_to_take() -> None:
    rig = Rig()
    rig.outlet.push(record(0))
    rig.inlet.sender = rig.outlet.sender
    rig.outlet.close()
    rig.outlet.push(record(1))
    rig.outlet.push(EndOfData())
    assert [element for _, element in rig.inlet.queue] == [record(0)]
    assert (rig.channel.sent, rig.channel.ends) == (1, ())
    rig.inlet.close()
    assert (list(rig.inlet.queue), rig.inlet.sender) == ([], None)


@pytest.mark.parametrize("own", [False, True])
def test_what_is_needed_no_more_is_let_go_of_at_both_ends(own: bool) -> None:
    rig = Rig(log=OwnLog() if own else None)
    for number in range(4):
        rig.outlet.push(record(number))
    rig.inlet.trim(3)
    assert [number for number, _ in rig.outlet.kept] == ([] if own else [3])
    rig.outlet.sender.alive = False  # type: ignore[union-attr]
    assert rig.receives().received == ({3: record(3)} if own else {}), "the other is trimmed by its writer"
