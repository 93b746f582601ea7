"""Runs of pipelines written by hand, for the tests of time lines."""

from __future__ import annotations

from cutproof.properties.model.history import (
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    Counted,
    FaultFired,
    History,
    JobEnded,
    Read,
    Timed,
)
from cutproof.properties.model.workload import Row
from cutproof.reports.model import RowPair
from cutproof.reports.rows import side_by_side

MS = 1_000


def row(number: int) -> Row:
    return (number, 1, number, 0)


EXPECTED = [row(number) for number in range(1, 7)]


class RunBuilder:
    """Tells what happened, one call an event; times in ms."""

    def __init__(self) -> None:
        self.history = History(
            subject="told", guarantee="exactly-once", sink="transactional", witnesses=["reader", "journal"]
        )
        self._order = 0

    def order(self) -> int:
        self._order += 1
        return self._order

    def note(self, at: float, what: str, who: str, detail: str = "", amount: int = -1) -> int:
        order = self.order()
        self.history.timeline.append(
            Timed(order=order, at_us=int(at * MS), what=what, task=who, detail=detail, position=amount)
        )
        return order

    def read(self, at: float, *rows: Row) -> None:
        began = self.order()
        ended = self.note(at, "output-read", "reader", amount=len(rows))
        self.history.reads.append(Read(began=began, ended=ended, rows=len(rows), seen=list(rows)))

    def fired(self, at: float, kind: str, aim: str, detail: str) -> None:
        fault = FaultFired(order=self.order(), at_us=int(at * MS), fault=0, kind=kind, phase=aim, detail=detail)
        self.history.journal.append(fault)

    def attempt(self, at: float, number: int, cause: str = "") -> None:
        self.history.journal.append(
            AttemptStarted(order=self.order(), at_us=int(at * MS), attempt=number, job=1, cause=cause)
        )

    def ended(self, at: float, status: str = "finished", reason: str = "") -> None:
        end = JobEnded(order=self.order(), at_us=int(at * MS), job=1, status=status, reason=reason)
        self.history.journal.append(end)

    def leave(self, at: float, *rows: Row) -> None:
        """What is committed in the end."""
        self.history.committed = list(rows)
        self.note(at, "output-read", "reader", "in the end", len(rows))


def repeating() -> tuple[History, tuple[RowPair, ...]]:
    """A broker that takes three minutes to come up, and is paused; a worker that is killed, and repeats a row."""
    run = RunBuilder()
    run.note(1, "process-started", "broker")
    run.note(180_000, "process-ready", "broker")
    run.attempt(180_001, 1)
    run.note(180_002, "process-started", "pipeline")
    run.note(180_010, "records-given", "feed", amount=3)
    run.read(180_020)
    run.read(180_100, row(1), row(2))
    run.note(180_110, "work-stored", "pipeline")
    run.note(180_120, "aim-met", "aim", "in-a-batch")
    run.note(180_121, "process-killed", "pipeline")
    run.fired(180_122, "kill-node", "in-a-batch", "pipeline: 3 records had been given, 2 rows were visible")
    run.read(180_180, row(1))
    run.attempt(180_221, 2, "it was killed")
    run.note(180_222, "process-started", "pipeline")
    run.note(180_300, "work-restored", "pipeline")
    run.note(180_310, "records-given", "feed", amount=6)
    run.read(180_400, row(1), row(2), row(2), row(3))
    run.note(180_450, "process-paused", "broker")
    run.fired(180_451, "pause-node", "halfway", "broker: <i>6</i> records had been given")
    run.note(180_650, "process-continued", "broker")
    run.history.journal.append(
        CommandIssued(order=run.order(), at_us=180_700 * MS, command=0, kind="stop-with-savepoint", drain=True)
    )
    run.history.journal.append(
        CommandReturned(order=run.order(), at_us=180_720 * MS, command=0, error="<b>no</b> slots are free")
    )
    run.ended(180_900)
    run.note(180_910, "process-ended", "pipeline", "stopped by cutproof")
    run.leave(180_920, row(1), row(2), row(2), row(3), row(4), row(5))
    run.history.counters = {
        "commits": [Counted(at_us=180_110 * MS, value=1), Counted(at_us=180_500 * MS, value=12_000)],
        "state": [Counted(at_us=180_110 * MS, value="running")],
        "in-flight": [],
    }
    return run.history, side_by_side(EXPECTED, run.history.committed)


def of_one_event() -> History:
    """A pipeline that was started; nothing else is known."""
    run = RunBuilder()
    run.note(5, "process-started", "pipeline")
    return run.history


def late() -> tuple[History, tuple[RowPair, ...]]:
    """The last that happens to a pipeline is a kill at an aim with a long name."""
    run = RunBuilder()
    run.note(0, "process-started", "pipeline")
    run.note(300, "process-killed", "pipeline")
    run.fired(301, "kill-node", "the-second-batch-is-written-and-not-committed-yet", "")
    return run.history, ()


def restless(kills: int = 40, every_ms: float = 9.0) -> tuple[History, tuple[RowPair, ...]]:
    """A pipeline that is killed again and again, a few ms after each start."""
    run = RunBuilder()
    for number in range(kills):
        at = number * every_ms
        run.note(at, "process-started", "pipeline")
        run.note(at + 1, "records-given", "feed", amount=number)
        run.note(at + 2, "work-restored", "pipeline")
        run.note(at + 3, "aim-met", "aim", "halfway")
        run.note(at + 4, "process-killed", "pipeline")
        run.fired(at + 5, "kill-node", "halfway", "some records had been given")
    run.leave(kills * every_ms, *EXPECTED)
    return run.history, side_by_side(EXPECTED, run.history.committed)
