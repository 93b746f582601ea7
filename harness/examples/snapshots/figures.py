"""Pictures and tables of the examples of snapshots and their life (SNAP-6, SNAP-7).

They are the two timelines of a job whose savepoints have no side effects, the two histories of a job and its fork, the
files of incremental checkpoints, how long a stop takes as state grows, and what each format can do.
"""

from __future__ import annotations

from ....properties.model.history import AttemptStarted, Completed, Forked, History, JobEnded, TaskFailed
from ....reports.charts.curves import Chart, Curve
from ....reports.charts.timelines import Arrow, Lane, Moment, Span, Timelines
from ....reports.example_report import Figures, Picture
from ...counterexamples.words import time_in_words
from ..claims import Ran
from ..trials import Trials
from . import format_matrix, savepoints, shared_files, stopping, two_histories

Measured = tuple[tuple[Figures, ...], tuple[Picture, ...]]

_WAYS = {
    "snapshots": "Savepoints are snapshots",
    "never-restored": "Rejected: savepoints commit, and are left out of recovery",
    "without-side-effects": "Rejected: savepoints have no side effects",
}


def measured_for(name: str, trials: Trials) -> Measured | None:
    """Tables and pictures for the page of an example; None if the example is not about snapshots.

    Raises SubjectFailed, or NotShown if a run lacks what is measured.
    """
    match name:
        case "retained-incremental":
            history = trials.ran(shared_files.RETAINED_INCREMENTAL.scenario).history
            matrices = tuple(format_matrix.matrix(trials, backend) for backend in format_matrix.BACKENDS)
            return (of_files(history), *matrices), (lives_of_files(history),)
        case "failure-after-savepoint" | "ab-test":
            example = savepoints.AB_TEST if name == "ab-test" else savepoints.FAILURE_AFTER_SAVEPOINT
            ways = [way for way in savepoints.WAYS if name != "ab-test" or way != "never-restored"]
            found = {way: trials.ran(savepoints.taken_as(example.scenario, way)) for way in ways}
            return (of_ways(found),), tuple(timelines(way, ran.history) for way, ran in found.items())
        case two_histories.NAME:
            history = trials.ran(two_histories.TWO_HISTORIES.scenario).history
            return (of_histories(history),), (histories(history),)
        case "incremental-stop-and-upgrade":
            return of_stops(trials)
    return None


# -- two timelines ---------------------------------------------------------------------------------------------


def timelines(way: str, history: History) -> Timelines:
    """The snapshots of a job, its attempts, and the snapshot with which each of them began.  Where savepoints have no
    side effects, they have a lane of their own."""
    separate = way == "without-side-effects"
    names = ["checkpoints", "savepoints"] if separate else ["snapshots"]
    lane_of = {one.checkpoint: int(separate and one.savepoint) for one in history.completed}
    lanes = []
    for at, name in enumerate(names):
        own = [one for one in history.completed if lane_of[one.checkpoint] == at]
        lanes.append(Lane(name=name, moments=tuple(_moment(one, separate) for one in own)))
    lanes.append(Lane(name="A" if _forks(history) else "the job", spans=tuple(_attempts(history, 1))))
    arrows = [*_arrows(history, 1, lane_of, len(lanes) - 1)]
    for forked in _forks(history):
        job = max(run.job for run in forked.history.runs)
        lanes.append(Lane(name="B", spans=tuple(_attempts(forked.history, job))))
        arrows += _arrows(forked.history, job, lane_of, len(lanes) - 1)
    meaning = "  A hollow square commits nothing." if separate else ""
    return Timelines(
        title=_WAYS[way],
        caption=f"Squares are complete snapshots, by number; S is a savepoint.{meaning}  A dashed arrow leads from a "
        "snapshot to the attempt that began with it; a cross is a failure.",
        across="ms",
        lanes=tuple(lanes),
        arrows=tuple(arrows),
    )


def _forks(history: History) -> list[Forked]:
    return history.forks if isinstance(history.forks, list) else []


def _moment(completed: Completed, separate: bool) -> Moment:
    text = f"S {completed.checkpoint}" if completed.savepoint else str(completed.checkpoint)
    return Moment(at=completed.at_us / 1_000, text=text, hollow=separate and completed.savepoint)


def _attempts(history: History, job: int) -> list[Span]:
    """The attempts of a job, each until its failure or the end of the job."""
    ends = [one for one in history.journal if isinstance(one, TaskFailed | JobEnded)]
    spans = []
    for start in history.journal:
        if isinstance(start, AttemptStarted) and start.job == job:
            end = next((one for one in ends if one.order > start.order), None)
            until = end.at_us if end is not None else start.at_us
            broken = isinstance(end, TaskFailed)
            spans.append(Span(begin=start.at_us / 1_000, end=until / 1_000, broken=broken))
    return spans


def _arrows(history: History, job: int, lane_of: dict[int, int], lane: int) -> list[Arrow]:
    times = {one.checkpoint: one.at_us / 1_000 for one in history.completed}
    return [
        Arrow(lane=lane_of[start.restores], at=times[start.restores], to_lane=lane, to=start.at_us / 1_000)
        for start in history.journal
        if isinstance(start, AttemptStarted) and start.job == job and start.restores in lane_of
    ]


def of_ways(found: dict[str, Ran]) -> Figures:
    """By what a savepoint is: what the job went back to after the failure, and what that cost."""
    rows = []
    for way, ran in found.items():
        history = ran.history
        begun, taken = savepoints.after_failure(history), savepoints.savepoint(history)
        operators = [source.name for source in ran.scenario.workload.inputs]
        again = sum(savepoints.rows_read_again(history, operator) for operator in operators)
        went = f"{'savepoint' if begun.restores == taken.checkpoint else 'checkpoint'} {begun.restores}"
        rows.append((_WAYS[way], went, str(again), str(len(history.committed)), ", ".join(ran.violated) or "nothing"))
    return Figures(
        caption="After the failure, by what a savepoint is",
        head=("way", "restored", "records read again", "rows committed", "violated"),
        rows=tuple(rows),
    )


# -- two histories ---------------------------------------------------------------------------------------------


def histories(history: History) -> Timelines:
    """The snapshots and the attempts of a job, and those of the job that was forked from its savepoint."""
    other = savepoints.forked(history).history
    job = max(run.job for run in other.runs)
    own = [one for one in other.completed if one.job == job]
    lane_of = {one.checkpoint: 0 for one in history.completed} | {one.checkpoint: 3 for one in own}
    return Timelines(
        title="A, and B beside it",
        caption="Squares are complete snapshots, by number; S is the savepoint that both have.  A dashed arrow leads "
        "from a snapshot to the attempt that began with it; a cross is a failure.",
        across="ms",
        lanes=(
            Lane(name="snapshots of A", moments=tuple(_moment(one, separate=False) for one in history.completed)),
            Lane(name="A", spans=tuple(_attempts(history, 1))),
            Lane(name="B", spans=tuple(_attempts(other, job))),
            Lane(name="snapshots of B", moments=tuple(_moment(one, separate=False) for one in own)),
        ),
        arrows=(*_arrows(history, 1, lane_of, 1), *_arrows(other, job, lane_of, 2)),
    )


def of_histories(history: History) -> Figures:
    """What both jobs have in common, and what each has alone."""
    both = (history, savepoints.forked(history).history)
    behind = [two_histories.committed_behind(one) for one in both]
    alone = [own - others for own, others in (behind, behind[::-1])]
    rows = (
        ("rows up to the savepoint", [two_histories.committed_until(one).total() for one in both]),
        ("records taken behind it", [len(two_histories.taken(one)[1]) for one in both]),
        ("rows behind it", [rows.total() for rows in behind]),
        ("of these, in this output alone", [rows.total() for rows in alone]),
    )
    return Figures(
        caption="What A and B have in common, and what each has alone",
        head=("", "A", "B"),
        rows=tuple((name, *map(str, numbers)) for name, numbers in rows),
    )


# -- files -----------------------------------------------------------------------------------------------------


def of_files(history: History) -> Figures:
    """Who refers to what: the files of all complete snapshots."""
    gone, size = shared_files.deleted(history), shared_files.sizes(history)
    rows = []
    for name, snapshots in shared_files.referring(history).items():
        when = next((one.at_us for one in history.journal if one.order == gone.get(name)), None)
        until = time_in_words(when) if when is not None else "kept"
        rows.append((name, f"{size[name]:,}", shared_files.numbers(snapshots), until))
    return Figures(
        caption="Who refers to what: the files of incremental snapshots, and when the engine deleted them",
        head=("file", "bytes", "referred to by", "deleted"),
        rows=tuple(rows),
    )


def lives_of_files(history: History) -> Timelines:
    """Each file from the first snapshot that refers to it to its deletion."""
    gone = shared_files.deleted(history)
    times = {one.order: one.at_us / 1_000 for one in history.journal}
    last = max(one.at_us for one in history.completed) / 1_000
    lanes = []
    for name, snapshots in shared_files.referring(history).items():
        end = times[gone[name]] if name in gone else last
        moments = tuple(_moment(one, separate=False) for one in snapshots)
        span = Span(begin=moments[0].at, end=end, broken=name in gone)
        lanes.append(Lane(name=name.split("/")[1], spans=(span,), moments=moments))
    return Timelines(
        title="The files of incremental snapshots",
        caption="A lane is a file, named after the snapshot for which it was written.  Squares are the snapshots that "
        "refer to it, S a savepoint; a cross is its deletion.",
        across="ms",
        lanes=tuple(lanes),
    )


# -- stops -----------------------------------------------------------------------------------------------------


def of_stops(trials: Trials) -> Measured:
    """How long a stop takes, by format of its savepoint and size of the state."""
    found = {
        name: [trials.ran(stopping.stopped(keys, name)).history for keys in stopping.KEYS] for name in stopping.FORMATS
    }
    size = [stopping.held_bytes(history) for history in found["canonical"]]
    table = Figures(
        caption="A stop with a savepoint, by the size of the state and the format: how long it takes, and the bytes "
        "that are written for it.  A byte takes "
        f"{stopping.BYTE_NS:,} ns",
        head=("state", *(word for name in stopping.FORMATS for word in (name, "written"))),
        rows=tuple(
            (
                f"{size[at]:,} bytes",
                *(
                    word
                    for name in stopping.FORMATS
                    for history in (found[name][at],)
                    for word in (time_in_words(stopping.stop_us(history)), f"{stopping.written_bytes(history):,}")
                ),
            )
            for at in range(len(size))
        ),
    )
    chart = Chart(
        title="How long a stop takes",
        caption="With a full savepoint, canonical or native, it takes longer the larger the state; with an "
        "incremental one only what has changed is written.",
        across="state, KB",
        up="ms",
        curves=tuple(
            Curve(
                name=name,
                points=tuple((size[at] / 1_000, stopping.stop_us(one) / 1_000) for at, one in enumerate(histories)),
            )
            for name, histories in found.items()
        ),
    )
    return (table,), (chart,)
