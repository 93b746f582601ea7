"""What every process's world keeps to: what is observed is on disk first, and what breaks ends it, visibly."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.decisions.tasks import Startup
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Deploy
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.transactions import AnyRequest, Append, Done, Outcome
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.disk.files import DiskFiles
from cutproof.reference_impl.processes.disk.journal import Journal, read_journal
from cutproof.reference_impl.processes.loop import monotonic_us
from cutproof.reference_impl.processes.network import frames as f
from cutproof.reference_impl.processes.world import CRASHED, Journalled, NotedFiles, live
from unit.processes.disks import end, forked
from unit.processes.rig import TASKS, Node, lives_without_harness, now, until
from unit.snapshots import snapshot

__all__ = ["lives_without_harness"]

MAP = TASKS[1]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "node-0.0", Clock(monotonic_us))
    yield made
    made.close()


def deploy(node: Node, task: TaskId = MAP) -> None:
    node.coordinator.send(f.ForTask(now(), task, Deploy(job=1, attempt=AttemptId(1))))


# -- first written, then done ----------------------------------------------------------------------------------------


def test_a_request_is_written_down_before_the_store_has_it(journal: Journal, tmp_path: Path) -> None:
    request = Append(writer=TaskId("sink-0"), attempt=AttemptId(1), row=(1, 2, 3, 4))
    written: list[AnyRequest] = []

    class Store:
        def handle(self, request: AnyRequest) -> Outcome:
            written.extend(
                entry.event.request
                for entry in read_journal(tmp_path / "node-0.0")
                if isinstance(entry.event, o.Transacting)
            )
            return Done()

    assert Journalled(Store(), journal).handle(request) == Done()
    assert written == [request]


def test_a_checkpoint_is_written_down_before_its_record_is_there(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[o.Observed] = []
    store = DiskFiles.store

    def watched(files: DiskFiles, snapshot: CompletedCheckpoint) -> None:
        written.extend(entry.event for entry in read_journal(tmp_path / "node-0.0"))
        store(files, snapshot)

    monkeypatch.setattr(DiskFiles, "store", watched)
    record = msgspec.structs.replace(snapshot(3, attempt=2, handles={MAP: "h"}), states={MAP: TaskState()})
    files = NotedFiles(tmp_path / "store", journal)
    files.store(record)
    (noted,) = written
    assert isinstance(noted, o.CheckpointCompleting)
    assert noted.snapshot == snapshot(3, attempt=2, handles={MAP: "h"})
    assert files.survey()[0] == (record,)


def test_what_is_sent_leaves_after_what_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Node(tmp_path, MAP) as node:
        order: list[str] = []
        write, send = node.world.journal.flush, node.world.outbox.flush

        def writes() -> None:
            order.append("written")
            write()

        def sends() -> None:
            order.append("sent")
            send()

        monkeypatch.setattr(node.world.journal, "flush", writes)
        monkeypatch.setattr(node.world.outbox, "flush", sends)
        node.answers()
        until(lambda: len(order) >= 6)
        first = order.index("written")
        assert order[first : first + 4] == ["written", "sent"] * 2


# -- what is told ----------------------------------------------------------------------------------------------------


def test_a_defect_that_was_reached_is_reported_once(tmp_path: Path) -> None:
    with Node(tmp_path, MAP) as node:
        node.answers()
        assert node.entries(o.DefectReached) == []
        reached = Startup()
        reached.reached = True
        node.world.parts.startup = reached
        for _ in range(2):
            node.answers()
        until(lambda: node.entries(o.DefectReached))
        node.answers()
        assert len(node.entries(o.DefectReached)) == 1


def test_a_loop_that_is_late_reports_it(tmp_path: Path) -> None:
    with Node(tmp_path, MAP) as node:
        node.world.loop.on_late(777_000)
        node.answers()
        until(lambda: node.entries(o.Lagged))
        assert [entry.by_us for entry in node.entries(o.Lagged)] == [777_000]


def test_a_fault_is_disarmed_where_another_process_has_met_it(tmp_path: Path) -> None:
    with Node(tmp_path, MAP) as node:
        node.harness.send(f.Arm(now(), "fail-write", MAP, 3, 2))
        node.harness.send(f.Arm(now(), "fail-read", MAP, 4, 1))
        node.answers()
        assert node.world.arms.remaining() == [3, 3, 4]
        node.harness.send(f.Disarm(now(), 3))
        node.answers()
        assert node.world.arms.remaining() == [4]


def test_a_kind_of_store_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no sink store 'tape'; there are sqlite and database"):
        Node(tmp_path, MAP, store="tape")


# -- its end ---------------------------------------------------------------------------------------------------------


def test_what_is_raised_in_a_process_ends_it_with_its_trace_and_all_that_it_had_seen(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Node(tmp_path, MAP, starts=False) as node:

        def run() -> None:
            with log.open("w") as sys.stderr:
                node.world.journal.saw(o.Lagged(5))
                live(node.world)

        child = forked(run)
        node.harness.expect(f.Ready)
        node.harness.send(f.Freeze(now(), 1, False))  # an order for coordinators alone
        assert end(child) == CRASHED == 70
        assert log.read_text().startswith("Traceback")
        assert log.read_text().splitlines()[-1].startswith("KeyError: <class 'cutproof.")
        assert [entry.by_us for entry in node.entries(o.Lagged)] == [5]


def test_a_fault_that_kills_a_task_kills_its_process_and_nothing_that_it_saw_is_lost(tmp_path: Path) -> None:
    with Node(tmp_path, MAP, starts=False) as node:

        def run() -> None:
            node.world.supervision.ready("node-0", 0)
            node.world.journal.saw(o.Lagged(5))
            node.world.kill(None, "it was killed", 2)  # type: ignore[arg-type]

        child = forked(run)
        node.harness.expect(f.Ready)
        assert end(child) == -signal.SIGKILL
        assert [entry.by_us for entry in node.entries(o.Lagged)] == [5]
