"""What a user can request of a pipeline's job: stopped with a savepoint, drained, resumed; and processes that wait
until they are busy before they are killed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtAim, AtTime, KillNode, PauseNode
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.scenario.model import AnyCommand, Resume, Scenario, StopWithSavepoint
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.subject.run import Result
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.job_commands import JobCommands
from cutproof.harness.user_pipelines.journal import Journal
from cutproof.harness.user_pipelines.processes.keeper import Keeper
from cutproof.harness.user_pipelines.processes.programs import Programs
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.harness.user_pipelines.trial import tried
from cutproof.properties.model.history import (
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    FaultFired,
    JobEnded,
)
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from unit.harness.user_pipelines.toys import TOY, toy

STOP = f'["{{python}}", "{TOY}", "stop", "{{state}}/toy.db"]'
DRAIN = f'["{{python}}", "{TOY}", "drain", "{{state}}/toy.db"]'
RESUME = f'["{{python}}", "{TOY}", "{{input}}", "{{state}}/toy.db", "careful"]'
COVERS = 'covers = "^covers ([0-9]+) records"'
ALL = (
    "[computes]",
    f"[commands]\nstop_with_savepoint = {STOP}\ndrain = {DRAIN}\nresume = {RESUME}\n{COVERS}\n[computes]",
)
KILL = KillNode(node=0, trigger=AtAim(aim="a-file-is-done"))
LATER = AtAim(aim="halfway", occurrence=2)


def subject(folder: Path, *changes: tuple[str, str]) -> PipelineSubject:
    return PipelineSubject(toy(folder, *changes))


def ran(one: PipelineSubject, records: int, **parts: Any) -> Result:
    return run_on(one, replace(one.without_faults(records), **parts))


def entries(result: Result, kind: type[Any]) -> list[Any]:
    return [entry for entry in result.history.journal if isinstance(entry, kind)]


@pytest.mark.parametrize(("drain", "status"), [(False, "stopped"), (True, "drained")])
def test_a_stopped_job_is_judged_by_what_its_command_says_that_it_covers(
    drain: bool, status: str, tmp_path: Path
) -> None:
    stop = StopWithSavepoint(drain=drain, trigger=LATER)
    slowly = ("every_ms = 20", "every_ms = 300")
    result = ran(subject(tmp_path, ALL, slowly), 60, faults=(KILL,), commands=(stop,))
    (end,) = entries(result, JobEnded)
    assert (end.status, end.covers) == (status, {0: len(result.history.committed)})
    assert 0 < len(result.history.committed) < 60
    assert [entry.error for entry in entries(result, CommandReturned)] == [""]
    verdicts = result.judgement.verdicts
    assert {type(verdicts[name]) for name in ("exactly-once", "no-data-loss", "progress")} == {Holds}


COUNTERS = """
[counters.files]
query = "SELECT count(*) FROM done"
database = "{state}/toy.db"

[counters.restores]
log = "^restored"

[counters.never]
log = "^never ([0-9]+)"

[counters.nowhere]
query = "SELECT count(*) FROM nowhere"
database = "{state}/toy.db"

[counters.wrong]
query = "SELEKT 1"
database = "{state}/toy.db"

[computes]"""


def test_a_trial_requests_each_command_and_says_what_counters_showed(tmp_path: Path) -> None:
    checks = tried(subject(tmp_path, ALL, ("[computes]", COUNTERS)))
    assert [(check.entry, check.ok) for check in checks if check.entry.startswith("commands.")] == [
        ("commands.stop_with_savepoint", True),
        ("commands.resume", True),
        ("commands.drain", True),
    ]
    seen = {check.entry: (check.ok, check.seen) for check in checks}
    assert re.fullmatch("the job was stopped, and covers [0-9]+ of 60", seen["commands.stop_with_savepoint"][1])
    assert seen["commands.resume"][1] == "the resumed job: finished; its rows are right"
    assert re.fullmatch("the job was drained, and covers [0-9]+ of 60; its rows are right", seen["commands.drain"][1])
    assert seen["counters.files"] == (True, "it showed 2 in the end")
    assert seen["counters.restores"] == (True, "it showed 0 in the end")
    assert seen["counters.never"] == (True, "no line matched it in a run without faults")
    assert seen["counters.nowhere"] == (False, "it had no value while the pipeline ran")
    ok, said = seen["counters.wrong"]
    assert not ok
    assert said.startswith("the query 'SELEKT 1': ")


def test_a_trial_names_the_commands_that_do_not_work(tmp_path: Path) -> None:
    wrong = ALL[1].replace(STOP, '["false"]').replace(DRAIN, '["echo", "covers 3 records"]')
    checks = tried(subject(tmp_path, ("[computes]", wrong), ('[restored]\nlog = "^restored"\n', "")))
    seen = {check.entry: check.seen for check in checks if not check.ok}
    assert seen["commands.stop_with_savepoint"].startswith("it was refused: it ended with exit code 1")
    assert seen["commands.drain"].startswith("the job was drained, and covers 3 of 60; ")
    assert "more of" in seen["commands.drain"]


def test_rows_that_a_stopped_job_has_too_many_are_seen(tmp_path: Path) -> None:
    told = ALL[1].replace("^covers ([0-9]+)", "^covers [0-9]*([0-9]) ")
    one = subject(tmp_path, ("[computes]", told.replace("  records", " records")))
    result = ran(one, 60, faults=(KILL,), commands=(StopWithSavepoint(trigger=LATER),))
    (end,) = entries(result, JobEnded)
    assert end.covers[0] < len(result.history.committed), "only the last digit of the number was read"
    assert isinstance(result.judgement.verdicts["exactly-once"], Violated)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("stopped", "commands.covers: no such line was printed: stopped"),
        ("covers 61 records", "commands.covers: '61' of 60 records that were given"),
        ("covers some records", "commands.covers: 'some' of 60 records"),
    ],
)
def test_a_command_that_does_not_say_what_the_job_covers_is_told(told: str, said: str, tmp_path: Path) -> None:
    text = ALL[1].replace(STOP, f'["echo", "{told}"]').replace("([0-9]+)", "([a-z0-9]+)")
    one = subject(tmp_path, ("[computes]", text), ("[feed]", "[feed]\nat_once = true"))
    with pytest.raises(SubjectFailed) as raised:
        ran(one, 60, commands=(StopWithSavepoint(trigger=LATER),))
    assert said in str(raised.value)


WINDOWS = (
    'steps = [{ kind = "count" }]',
    'steps = [{ kind = "tumbling", size = 10 }]\ntime = "tag"\n\n[feed.last_record]\ntag = 2000',
)


@pytest.mark.parametrize(
    ("covers", "given", "disturbed", "counted"), [(42, 42, False, 40), (31, 30, True, 30)], ids=["the last", "repeated"]
)
def test_what_a_stop_covers_counts_no_last_record_and_none_that_a_kill_repeated(
    covers: int, given: int, disturbed: bool, counted: int, tmp_path: Path
) -> None:
    stop_command = ALL[1].replace(STOP, f'["echo", "covers {covers} records"]')
    pipeline = read_pipeline(toy(tmp_path, (ALL[0], stop_command), WINDOWS))
    keeper, journal = Keeper(), Journal()
    if disturbed:
        journal.fired(0, "kill", "halfway", "", 1)
    try:
        programs = Programs(pipeline, keeper, {"pipeline": str(tmp_path)}, lambda *_: None)
        stop = StopWithSavepoint(trigger=LATER)
        commands = JobCommands((stop,), pipeline.file, programs, journal, records=40)
        commands.request_stop(given=given)
    finally:
        keeper.close()
    assert commands.stopped == ("stopped", {0: counted})


@pytest.mark.parametrize(
    ("commands", "unknown"),
    [
        ((StopWithSavepoint(trigger=LATER),), True),
        ((StopWithSavepoint(trigger=LATER, drain=True),), False),
        ((StopWithSavepoint(trigger=LATER), Resume(trigger=AtTime(at_us=0))), False),
    ],
    ids=["a stop for good", "a drain", "a stop that is resumed"],
)
def test_a_stop_for_good_behind_all_records_leaves_unknown_which_windows_closed(
    commands: tuple[AnyCommand, ...], unknown: bool, tmp_path: Path
) -> None:
    pipeline = read_pipeline(toy(tmp_path, ALL, WINDOWS))
    asked = JobCommands(commands, pipeline.file, cast(Programs, None), Journal(), records=40)
    assert [asked.leaves_windows_unknown(given) for given in (39, 40, 42)] == [False, unknown, unknown]


def test_a_resumed_job_goes_on_to_the_end_of_the_input(tmp_path: Path) -> None:
    commands = (StopWithSavepoint(trigger=LATER), Resume(trigger=AtTime(at_us=0)))
    result = ran(subject(tmp_path, ALL), 60, faults=(KILL,), commands=commands)
    assert [entry.kind for entry in entries(result, CommandIssued)] == ["stop-with-savepoint", "resume"]
    assert [(entry.job, entry.status) for entry in entries(result, JobEnded)] == [(1, "stopped"), (2, "finished")]
    last = entries(result, AttemptStarted)[-1]
    assert (last.job, last.cause, last.restores) == (2, "it was resumed", last.attempt - 1)
    assert len(result.history.committed) == 60
    assert result.judgement.verdicts["exactly-once"] == Holds(exercised=1), "a resume is no recovery from a fault"


def test_a_command_that_fails_leaves_the_job_running(tmp_path: Path) -> None:
    one = subject(tmp_path, ("[computes]", ALL[1].replace(STOP, '["sh", "-c", "echo no such job; exit 3"]')))
    commands = (StopWithSavepoint(trigger=LATER), Resume(trigger=AtTime(at_us=0)))
    result = ran(one, 60, faults=(KILL,), commands=commands)
    assert [entry.error for entry in entries(result, CommandReturned)] == ["it ended with exit code 3: no such job"]
    assert [(entry.job, entry.status) for entry in entries(result, JobEnded)] == [(1, "finished")]
    assert isinstance(result.judgement.verdicts["exactly-once"], Holds)


def test_a_number_of_subtasks_is_filled_in_where_the_job_is_resumed(tmp_path: Path) -> None:
    told = "echo with {parallelism} >{output}/with"
    resume = f'["sh", "-c", "{told}; exec python3 {TOY} {{input}} {{state}}/toy.db careful"]'
    text = ALL[1].replace(RESUME, f"{resume}\nparallelism = [2, 5]")
    one = subject(tmp_path, ("[computes]", text), ("[run]", '[run]\nafter = [["cp", "{output}/with", "WITH"]]'))
    path = one.pipeline.path
    path.write_text(path.read_text().replace("WITH", str(tmp_path / "with")))
    drawn = [PipelineSubject(path).draw(3, index, max_records=60, max_faults=2) for index in range(60)]
    given = {one.parallelism["count1"] for scenario in drawn for one in scenario.commands if isinstance(one, Resume)}
    assert given == {2, 5}
    commands = (StopWithSavepoint(trigger=LATER), Resume(trigger=AtTime(at_us=0), parallelism={"count1": 5}))
    ran(PipelineSubject(path), 60, commands=commands)
    assert (tmp_path / "with").read_text() == "with 5\n"


def scenarios(one: PipelineSubject) -> list[Scenario]:
    return [one.draw(7, index, max_records=60, max_faults=3) for index in range(80)]


def test_stops_are_drawn_as_far_as_the_file_has_commands_for_them(tmp_path: Path) -> None:
    assert not any(scenario.commands for scenario in scenarios(subject(tmp_path)))
    both = scenarios(subject(tmp_path, ALL))
    stops = [scenario.commands for scenario in both if scenario.commands]
    assert 20 < len(stops) < 45
    assert {(first.drain, len(commands)) for commands in stops for first in commands[:1]} == {
        (False, 1),
        (False, 2),
        (True, 1),
    }, "what was drained is not resumed"
    unsaid = ("[computes]", ALL[1].replace(f"{COVERS}\n", "").replace(f"drain = {DRAIN}\n", ""))
    always = [scenario.commands for scenario in scenarios(subject(tmp_path, unsaid)) if scenario.commands]
    assert {len(commands) for commands in always} == {2}, "nothing would say what the stopped job covers"


def test_what_a_file_has_no_command_for_is_refused(tmp_path: Path) -> None:
    one = subject(tmp_path, ("[computes]", ALL[1].replace(f"drain = {DRAIN}\n", "")))
    with pytest.raises(SubjectFailed, match="has no command for stop-with-savepoint"):
        one.run(replace(one.without_faults(8), commands=(StopWithSavepoint(drain=True, trigger=LATER),)))


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        (f"resume = {RESUME}", "commands.resume: no job is stopped"),
        (f"stop_with_savepoint = {STOP}", "commands.covers is missing: nothing would say what a stopped job"),
        (f"stop_with_savepoint = {STOP}\ndrain = {DRAIN}\nresume = {RESUME}", "commands.covers is missing: nothing"),
        (f'stop_with_savepoint = {STOP}\ncovers = "^covers"', "commands.covers has no group"),
        (f'stop_with_savepoint = {STOP}\ncovers = "("', "commands.covers is no regular expression"),
        (f"stop_with_savepoint = {STOP}\nresume = {RESUME}\nparallelism = [2]", "commands.parallelism goes with"),
        (f'stop_with_savepoint = {STOP}\nresume = ["a", "{{parallelism}}"]', "commands.parallelism goes with"),
        (
            f'stop_with_savepoint = {STOP}\nresume = ["a", "{{parallelism}}"]\nparallelism = [0]',
            "commands.parallelism: it is 0; it has to be a number from 1 to",
        ),
        (
            'stop_with_savepoint = ["{parallelism}"]\ncovers = "(x)"',
            "commands.stop_with_savepoint: {parallelism} is none of",
        ),
        ('stop_with_savepoint = ["{nowhere}"]\ncovers = "(x)"', "commands.stop_with_savepoint: {nowhere} is none of"),
    ],
)
def test_commands_that_cannot_be_used_are_refused(commands: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read_pipeline(toy(tmp_path, ("[computes]", f"[commands]\n{commands}\n[computes]")))
    assert said in str(raised.value)


SIDE = '[roles.side]\nstart = ["sh", "-c", "sleep 0.6; touch {state}/busy; exec sleep 600"]\n'
BUSY = 'busy = { files = "{state}/busy" }\n'


def test_a_fault_waits_until_its_process_is_busy(tmp_path: Path) -> None:
    """The aim is met long before, and the role has no part in the work until its file is there."""
    one = subject(tmp_path, ("[computes]", SIDE + BUSY + "[computes]"), ("every_ms = 20", "every_ms = 150"))
    kill = KillNode(node=1, trigger=AtAim(aim="a-file-is-done"))
    result = ran(one, 60, faults=(kill,))
    (fired,) = entries(result, FaultFired)
    assert fired.at_us > 600_000
    idle = subject(tmp_path, ("[computes]", SIDE + BUSY.replace("/busy", "/never") + "[computes]"))
    result = ran(idle, 60, faults=(kill,))
    assert (entries(result, FaultFired), result.history.unapplied) == (
        [],
        ["kill-node, a-file-is-done (`busy` of side was not seen when it was due)"],
    )
    verdict = result.judgement.verdicts["exactly-once"]
    assert isinstance(verdict, Unknown)
    assert verdict.detail == "no fault struck: `busy` of side was not seen when it was due"


def test_a_pause_after_which_the_pipeline_continues_from_its_own_is_exercise(tmp_path: Path) -> None:
    """The role prints the line that shows it, time and again; the pipeline's own process is not restarted."""
    one = subject(
        tmp_path,
        ("[computes]", SIDE.replace("sleep 0.6; ", "") + "paused = true\npaused_for_ms = [50]\n[computes]"),
        ("[restored]", '[restored]\nrole = "side"'),
        ("exec sleep 600", "while sleep 0.1; do echo restored; done"),
        ("every_ms = 20", "every_ms = 150"),
    )
    pause = PauseNode(node=1, for_us=50_000, trigger=AtAim(aim="halfway"))
    result = ran(one, 60, faults=(pause,))
    assert [(start.cause, start.restores) for start in entries(result, AttemptStarted)] == [
        ("", None),
        ("side was paused", 1),
    ]
    assert result.judgement.verdicts["exactly-once"] == Holds(exercised=1)
    drawn = {fault.for_us for scenario in scenarios(one) for fault in scenario.faults if isinstance(fault, PauseNode)}
    assert drawn == {50_000}


def test_a_pause_that_nobody_noticed_is_no_exercise(tmp_path: Path) -> None:
    one = subject(tmp_path, ("[computes]", SIDE + "paused = true\n[computes]"), ("every_ms = 20", "every_ms = 50"))
    result = ran(one, 40, faults=(PauseNode(node=1, for_us=50_000, trigger=AtAim(aim="halfway")),))
    assert len(entries(result, FaultFired)) == len(entries(result, AttemptStarted)) == 1
    assert isinstance(result.judgement.verdicts["exactly-once"], Unknown)


AFTER_THE_STOP = f"""
[aims.stopped]
files = "{{state}}/stopped"

[commands]
stop_with_savepoint = ["sh", "-c", "touch {{state}}/stopped; echo covers 9 records"]
{COVERS}

[computes]"""


def test_no_fault_strikes_a_process_whose_job_was_stopped(tmp_path: Path) -> None:
    """The process notices the end of its job a second later; killed until then, it would be started again."""
    waiting = '"$0" "$@" & until [ -e $STOPPED ]; do sleep 0.02; done; sleep 1'
    one = subject(
        tmp_path,
        ('start = ["{python}"', f'start = ["sh", "-c", \'{waiting}\', "{{python}}"'),
        ("ends = false", 'environment = { STOPPED = "{state}/stopped" }'),
        ("[computes]", AFTER_THE_STOP),
    )
    late = KillNode(node=0, trigger=AtAim(aim="stopped"))
    result = ran(one, 60, faults=(KILL, late), commands=(StopWithSavepoint(trigger=LATER),))
    assert result.history.unapplied == ["kill-node, stopped (its aim was never met while rows were missing)"]
    assert [entry.status for entry in entries(result, JobEnded)] == ["stopped"]


def test_what_was_there_before_a_kill_shows_no_recovery(tmp_path: Path) -> None:
    """The database of the toy is there at the kill, and behind it: that says nothing of what the process has read."""
    one = subject(tmp_path, ('log = "^restored"', 'files = "{state}/toy.db"'))
    result = ran(one, 40, faults=(KILL,))
    assert [start.restores for start in entries(result, AttemptStarted)] == [None, None]
    assert isinstance(result.judgement.verdicts["exactly-once"], Unknown)


def test_a_resumed_job_that_is_killed_is_resumed_again(tmp_path: Path) -> None:
    """Started as at first, it would begin anew."""
    again = ALL[1].replace(RESUME, RESUME.replace('"careful"', '"careful", "resumed"'))
    one = subject(tmp_path, ("[computes]", again), ('"careful"]', '"careful", "anew"]'))
    commands = (StopWithSavepoint(trigger=LATER), Resume(trigger=AtTime(at_us=0)))
    later = KillNode(node=0, trigger=AtAim(aim="halfway", occurrence=6))
    run = one.new_run(replace(one.without_faults(90), faults=(KILL, later), commands=commands))
    try:
        history = run.history()
        lines = (run._folder / "log-pipeline").read_text().splitlines()
    finally:
        run.close()
    assert history.unapplied == []
    assert [line for line in lines if line.startswith("begun")] == ["begun anew"] * 2 + ["begun resumed"] * 2


def test_a_role_that_cannot_stay_is_told(tmp_path: Path) -> None:
    broker = '[roles.broker]\nstart = ["sh", "-c", "echo no disk; exit 1"]\nrestart_after_ms = 1\n[computes]'
    # It is fed so slowly that the role has ended often enough before the output is complete, on any machine.
    one = subject(tmp_path, ("[computes]", broker), ("every_ms = 20", "every_ms = 2000"))
    with pytest.raises(SubjectFailed, match=r"roles\.broker: it has ended by itself 21 times: no disk"):
        ran(one, 90)


def test_what_comes_after_is_done_also_if_what_comes_before_has_failed(tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    one = subject(tmp_path, ("ends = false", f'ends = false\nbefore = [["false"]]\nafter = [["touch", "{mark}"]]'))
    with pytest.raises(SubjectFailed, match=r"run\.before\[0\]: false ended with exit code 1"):
        ran(one, 10)
    assert mark.exists()
