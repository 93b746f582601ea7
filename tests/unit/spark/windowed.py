"""Windows over drawn event times, and their expected rows by definition: sets of records, no order, no state."""

from __future__ import annotations

from random import Random

from cutproof.properties.model.workload import (
    AnyOperator,
    Input,
    InputRecord,
    Node,
    Row,
    Session,
    Sliding,
    Tumbling,
    Union,
    Window,
    Workload,
)
from cutproof.properties.spark.tables import Cut, OracleJob, QuickResult

WINDOWS: tuple[AnyOperator, ...] = (
    Tumbling(size=7),
    Tumbling(size=20, of="sum", lateness=9),
    Sliding(size=12, slide=4, of="sum"),
    Sliding(size=10, slide=4, lateness=15),
    Sliding(size=5, slide=5),
    Session(gap=4, of="sum"),
    Session(gap=9, lateness=6),
)
Timed = tuple[InputRecord, int]
"""a record and its event time"""
FOREVER = 1 << 62


def drawn_job(random: Random, name: str, window: AnyOperator) -> OracleJob:
    """One input or two, a window, and cuts that may be empty, equal, or drained."""
    names = ("left", "right")[: random.choice((1, 1, 2))]
    inputs = tuple(_input(random, name) for name in names)
    nodes = [Node(name="union", operator=Union(), inputs=names)] if len(names) > 1 else []
    nodes.append(Node(name="window", operator=window, inputs=("union",) if nodes else names))
    workload = Workload(name=name, inputs=inputs, nodes=tuple(nodes))
    ends = [len(records) for _, _, records in workload.splits()]
    positions = [sorted(random.randrange(end + 1) for _ in range(3)) for end in ends]
    cuts = tuple(Cut(name=10 + index, positions=tuple(at[index] for at in positions)) for index in range(3))
    last = Cut(name=99, positions=tuple(ends))
    if random.random() < 0.2:
        last = Cut(name=99, positions=cuts[-1].positions, drained=True)
    return OracleJob(id=name, workload=workload, cuts=(*cuts, last))


def _input(random: Random, name: str) -> Input:
    delay = random.choice((0, 3, 8))
    splits: list[tuple[InputRecord, ...]] = []
    times: list[tuple[int, ...]] = []
    for _ in range(random.randrange(1, 4)):
        start, timed = random.randrange(-20, 5), []
        for _ in range(random.randrange(9)):
            start += random.randrange(7)
            timed.append(start - random.randint(0, delay))
        times.append(tuple(timed))
        splits.append(tuple(_record(random) for _ in timed))
    bounded = random.random() < 0.8
    return Input(name=name, splits=tuple(splits), times=tuple(times), delay=delay, bounded=bounded)


def _record(random: Random) -> InputRecord:
    return random.choice([None, 0, 1, 2]), random.choice([None, *range(-6, 7)]), random.getrandbits(40)


def expected_of(job: OracleJob) -> QuickResult:
    """A window's rows at the first cut that finishes it, and at each cut the windows that are not gone."""
    window = job.workload.node("window").operator
    assert isinstance(window, Window)
    marks = [_watermark(job, cut) for cut in job.cuts]
    rows: dict[int, list[Row]] = {cut.name: [] for cut in job.cuts}
    for last, _, row in _panes(window, _below(job, job.cuts[-1])):
        finished = [cut.name for cut, mark in zip(job.cuts, marks, strict=True) if mark >= last]
        if finished:
            rows[finished[0]].append(row)
    states = {
        cut.name: {
            "window": [
                (start, key, value, tags)
                for last, start, (key, value, tags, _) in _panes(window, _below(job, cut))
                if last + window.lateness > mark
            ]
        }
        for cut, mark in zip(job.cuts, marks, strict=True)
    }
    return QuickResult(rows=rows, states=states)


def _below(job: OracleJob, cut: Cut) -> list[Timed]:
    times = job.workload.times()
    return [
        (record, times[split][offset])
        for split, _, records in job.workload.splits()
        for offset, record in enumerate(records[: cut.positions[split]])
    ]


def _watermark(job: OracleJob, cut: Cut) -> int:
    marks = [FOREVER]
    times = job.workload.times()
    for split, source, records in job.workload.splits():
        position = cut.positions[split]
        if not cut.drained and not (source.bounded and position == len(records)):
            marks.append(max(times[split][:position]) - source.delay - 1 if position else -FOREVER)
    return min(marks)


def _panes(window: Window, taken: list[Timed]) -> list[tuple[int, int, Row]]:
    """(last moment, start, row) of every window and key that some record is in."""
    found = []
    for key in {record[0] for record, _ in taken}:
        mine = sorted(((time, record) for record, time in taken if record[0] == key), key=lambda one: one[0])
        spans = _sessions(window.gap, mine) if isinstance(window, Session) else _fixed(window, mine)
        for (start, end), members in spans.items():
            values = [value for _, value, _ in members if value is not None]
            total = sum(values) if values else None
            value = len(members) if window.of == "count" else total
            found.append((end - 1, start, (key, value, sum(tag for _, _, tag in members), start)))
    return found


def _fixed(window: Window, taken: list[tuple[int, InputRecord]]) -> dict[tuple[int, int], list[InputRecord]]:
    assert isinstance(window, Tumbling | Sliding)
    slide = window.slide if isinstance(window, Sliding) else window.size
    found: dict[tuple[int, int], list[InputRecord]] = {}
    for time, record in taken:
        for start in range(time - window.size + 1, time + 1):
            if start % slide == 0:
                found.setdefault((start, start + window.size), []).append(record)
    return found


def _sessions(gap: int, taken: list[tuple[int, InputRecord]]) -> dict[tuple[int, int], list[InputRecord]]:
    groups: list[list[tuple[int, InputRecord]]] = []
    for time, record in taken:
        if groups and time - groups[-1][-1][0] < gap:
            groups[-1].append((time, record))
        else:
            groups.append([(time, record)])
    return {(group[0][0], group[-1][0] + gap): [record for _, record in group] for group in groups}
