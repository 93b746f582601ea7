"""Runs of toy pipelines: what is fed, killed, read and judged, and which of their errors are seen."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtAim, AtTime, KillNode, PauseNode
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.outcome import measure
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.subject.run import Result
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.entries import EntryFailed, Problem
from cutproof.harness.user_pipelines.output import reader
from cutproof.harness.user_pipelines.output.formats import NotReadable
from cutproof.harness.user_pipelines.run import PipelineRun
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.harness.user_pipelines.trial import _entry_of, tried
from cutproof.properties.model.history import AttemptStarted, FaultFired, JobEnded
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from unit.harness.user_pipelines.toys import TOY, toy

AIM = """\
[aims.amid-a-file]
query = "SELECT {}"
database = "{{state}}/toy.db"

[aims.a-file-is-done]"""
HALF_DONE = ("[aims.a-file-is-done]", AIM.format("count(*) % 8 > 2 FROM rows"))
NAME_FIRST = (
    "[aims.a-file-is-done]",
    AIM.format("(SELECT count(*) FROM rows) < 8 * (SELECT count(*) FROM done) - 2"),
)


WHY_NOT = "kill-node, amid-a-file (its aim was never met while rows were missing)"


def subject(folder: Path, *changes: tuple[str, str]) -> PipelineSubject:
    return PipelineSubject(toy(folder, *changes))


def killed_at(one: PipelineSubject, *aims: str, records: int = 40) -> Scenario:
    faults = tuple(KillNode(node=0, trigger=AtAim(aim=aim)) for aim in aims)
    return replace(one.without_faults(records), faults=faults)


def one_fault(one: PipelineSubject, fault: KillNode, records: int) -> Scenario:
    return replace(one.without_faults(records), faults=(fault,))


def ran(one: PipelineSubject, scenario: Scenario) -> Result:
    return run_on(one, scenario)


def starts(result: Result) -> list[AttemptStarted]:
    return [entry for entry in result.history.journal if isinstance(entry, AttemptStarted)]


def test_a_careful_pipeline_that_is_killed_halfway_holds_and_is_exercised(tmp_path: Path) -> None:
    counter = '[counters.files]\nquery = "SELECT count(*) FROM done"\ndatabase = "{state}/toy.db"\n\n[restored]'
    one = subject(tmp_path, ("[restored]", counter))
    result = ran(one, killed_at(one, "halfway", "a-file-is-done"))
    verdicts = result.judgement.verdicts
    assert isinstance(verdicts["exactly-once"], Holds), verdicts
    assert isinstance(verdicts["no-data-loss"], Holds)
    assert isinstance(verdicts["progress"], Holds)
    assert [start.restores is not None for start in starts(result)] == [False, True, True]
    assert measure(result.scenario, result.history).recoveries == 2
    assert [entry.phase for entry in result.history.journal if isinstance(entry, FaultFired)] in (
        ["halfway", "a-file-is-done"],
        ["a-file-is-done", "halfway"],
    )
    assert result.history.unapplied == []
    timeline = result.history.timeline
    lives = [entry.what.removeprefix("process-") for entry in timeline if entry.what.startswith("process-")]
    assert lives == ["started", "killed", "started", "killed", "started", "ended"]
    noted = Counter(entry.what for entry in timeline)
    assert noted["work-restored"] == 2
    assert noted["aim-met"] >= 2
    assert noted["output-read"] == len(result.history.reads) + 1
    assert [entry.position for entry in timeline if entry.what == "records-given"] == [8, 16, 24, 32, 40]
    assert result.history.counters["files"][-1].value == 5
    assert measure(result.scenario, result.history).counters == {"files": 5}


def test_rows_that_a_pipeline_repeats_after_a_kill_are_seen(tmp_path: Path) -> None:
    one = subject(tmp_path, ('"careful"', '"repeating"'), HALF_DONE)
    found = ran(one, killed_at(one, "amid-a-file")).judgement.verdicts
    assert isinstance(found["exactly-once"], Violated)
    assert "more of" in found["exactly-once"].message, "the counts of a file went on from where the kill had left them"


def test_rows_that_a_pipeline_loses_after_a_kill_are_seen(tmp_path: Path) -> None:
    one = subject(tmp_path, ('"careful"', '"losing"'), NAME_FIRST)
    found = ran(one, killed_at(one, "amid-a-file")).judgement.verdicts
    assert isinstance(found["exactly-once"], Violated)
    assert isinstance(found["no-data-loss"], Violated)
    assert found["no-data-loss"].difference == "lost row"


WITH_SPARE = ("restart_after_ms = 20", "restart_after_ms = 20\nspare = true")
WAITS = ('["{python}"', """["sh", "-c", 'read line || exit; exec "$@"', "toy", "{python}\"""")


@pytest.mark.parametrize("aims", [(), ("halfway",)], ids=["no kill", "a kill"])
def test_a_process_with_a_spare_that_does_not_wait_is_not_judged(tmp_path: Path, aims: tuple[str, ...]) -> None:
    """Two of them would count each record: a right pipeline, and wrong rows."""
    one = subject(tmp_path, WITH_SPARE)
    with pytest.raises(SubjectFailed, match=r"run\.spare: it did not read its line"):
        ran(one, killed_at(one, *aims))


def test_a_trial_names_a_spare_that_does_not_wait(tmp_path: Path) -> None:
    assert [(check.entry, check.ok) for check in tried(subject(tmp_path, WITH_SPARE))] == [("run.spare", False)]


def test_a_process_that_ends_without_its_line_is_not_judged(tmp_path: Path) -> None:
    one = subject(tmp_path, WITH_SPARE, ("ends = false", "ends = true"), (str(TOY), "-c"), ("{input}", "print(3)"))
    with pytest.raises(SubjectFailed, match=r"run\.spare: it did not read its line.*: 3$"):
        ran(one, killed_at(one))


def test_a_process_that_waits_for_its_line_goes_on_by_its_spare(tmp_path: Path) -> None:
    one = subject(tmp_path, WITH_SPARE, WAITS)
    result = ran(one, killed_at(one, "halfway"))
    assert isinstance(result.judgement.verdicts["exactly-once"], Holds)
    assert "by its spare" in [entry.detail for entry in result.history.timeline]


def test_a_fault_that_cannot_begin_keeps_no_other_from_it(tmp_path: Path) -> None:
    role = '[roles.idle]\nstart = ["sleep", "600"]\nbusy = { log = "^never" }\n\n[restored]'
    one = subject(tmp_path, ("[restored]", role))
    faults = tuple(KillNode(node=node, trigger=AtTime(at_us=0)) for node in (1, 0))
    result = ran(one, replace(one.without_faults(40), faults=faults))
    assert [entry.fault for entry in result.history.journal if isinstance(entry, FaultFired)] == [1]
    assert result.history.unapplied == ["kill-node, at a time (`busy` of idle was not seen when it was due)"]


def test_without_a_kill_nothing_is_exercised(tmp_path: Path) -> None:
    one = subject(tmp_path)
    result = ran(one, one.without_faults(20))
    assert {type(result.judgement.verdicts[name]) for name in ("exactly-once", "no-data-loss")} == {Unknown}
    assert len(starts(result)) == 1


def test_a_kill_that_found_no_work_did_not_fire(tmp_path: Path) -> None:
    """All rows have been read when the kill is due."""
    one = subject(tmp_path, ("SELECT count(*) FROM done", "SELECT count(*) >= 20 FROM rows"))
    late = KillNode(node=0, trigger=AtAim(aim="a-file-is-done", after_us=200_000))
    result = ran(one, replace(one.without_faults(20), faults=(late,)))
    assert len(starts(result)) == 1
    (unapplied,) = result.history.unapplied
    assert unapplied in (
        "kill-node, a-file-is-done (the run was over first)",
        "kill-node, a-file-is-done (its aim was never met while rows were missing)",  # one read saw the last rows too
    )


def test_a_kill_looks_for_work_once_more_if_the_last_read_is_old(tmp_path: Path) -> None:
    one = subject(
        tmp_path,
        ("every_ms = 30", "every_ms = 60000"),
        ("SELECT count(*) FROM done", "SELECT count(*) >= 20 FROM rows"),
    )
    result = ran(one, killed_at(one, "a-file-is-done", records=20))
    assert len(starts(result)) == 1
    assert result.history.unapplied == ["kill-node, a-file-is-done (no row was missing when it was due)"]


def test_a_kill_at_a_time_waits_while_a_pipeline_has_put_out_all_that_it_was_given(tmp_path: Path) -> None:
    """The first file is done long before the kill is due, and the second one comes long after."""
    one = subject(tmp_path, ("every_ms = 20", "every_ms = 800"))
    kill = KillNode(node=0, trigger=AtTime(at_us=500_000))
    (fired,) = [e for e in ran(one, one_fault(one, kill, 24)).history.journal if isinstance(e, FaultFired)]
    given, visible = (int(part.split()[0]) for part in fired.detail.split(", "))
    assert visible < given


def test_a_kill_at_a_time_waits_for_windows_only_until_all_of_them_are_put_out(tmp_path: Path) -> None:
    """Which windows close behind a record, an engine decides."""
    windows = (
        'steps = [{ kind = "count" }]',
        'steps = [{ kind = "tumbling", size = 10 }]\ntime = "tag"\n\n[feed.last_record]\ntag = 2000',
    )
    one = subject(tmp_path, ("every_ms = 20", "every_ms = 800"), windows, ("timeout_s = 5", "timeout_s = 1"))
    kill = KillNode(node=0, trigger=AtTime(at_us=500_000))
    (fired,) = [e for e in ran(one, one_fault(one, kill, 24)).history.journal if isinstance(e, FaultFired)]
    assert fired.at_us < 900_000


def test_a_kill_waits_until_something_is_stored(tmp_path: Path) -> None:
    stored = '[stored]\nquery = "SELECT count(*) >= 3 FROM done"\ndatabase = "{state}/toy.db"\n\n[restored]'
    one = subject(tmp_path, ("[restored]", stored))
    (fired,) = [e for e in ran(one, killed_at(one, "halfway")).history.journal if isinstance(e, FaultFired)]
    assert int(fired.detail.split(", ")[1].split()[0]) >= 24


def test_an_aim_that_was_met_only_before_something_was_stored_is_no_moment_for_a_kill(tmp_path: Path) -> None:
    early = ("[aims.a-file-is-done]", AIM.format("count(*) BETWEEN 1 AND 12 FROM rows"))
    stored = '[stored]\nquery = "SELECT count(*) >= 3 FROM done"\ndatabase = "{state}/toy.db"\n\n[restored]'
    one = subject(tmp_path, ('"careful"', '"repeating"'), early, ("[restored]", stored))
    assert ran(one, killed_at(one, "amid-a-file")).history.unapplied == [WHY_NOT]


def test_a_scenario_of_another_job_is_refused(tmp_path: Path) -> None:
    one = subject(tmp_path)
    scenario = one.without_faults(8)
    with pytest.raises(SubjectFailed, match="its workload is another"):
        one.run(replace(scenario, workload=replace(scenario.workload, nodes=())))


def test_a_kill_after_which_nothing_shows_a_restore_is_no_exercise(tmp_path: Path) -> None:
    one = subject(tmp_path, ('log = "^restored"', 'log = "^never printed"'))
    result = ran(one, killed_at(one, "halfway"))
    assert [start.restores for start in starts(result)] == [None, None]
    assert isinstance(result.judgement.verdicts["exactly-once"], Unknown)


def test_a_pipeline_that_fails_is_reported_with_its_last_words(tmp_path: Path) -> None:
    one = subject(
        tmp_path, ('"TOY"'.replace("TOY", str(Path(__file__).with_name("toy.py"))), '"-c", "raise KeyError(7)"')
    )
    result = ran(one, one.without_faults(8))
    (ended,) = [entry for entry in result.history.journal if isinstance(entry, JobEnded)]
    assert ended.status == "failed"
    assert ended.reason.startswith("it ended with exit code 1: Traceback (most recent call last): | ")
    assert ended.reason.endswith(" | KeyError: 7")
    found = result.judgement.verdicts["progress"]
    assert isinstance(found, Violated)
    assert "KeyError: 7" in found.message


COMMAND = """\
format = "command"
command = ["{python}", "-c", "import sqlite3, sys, json; \\
    rows = sqlite3.connect(sys.argv[1]).execute('SELECT key, n FROM rows'); print('read', file=sys.stderr); \\
    [print(json.dumps(dict(key=key, value=n, tag=0))) for key, n in rows]", "{state}/toy.db"]"""
SQLITE = """\
format = "sqlite"
path = "{state}/toy.db"
query = "SELECT key, n AS value, 0 AS tag FROM rows\""""


ROLE = '[roles.idle]\nstart = ["sleep", "607"]\n\n[feed]'


@pytest.mark.parametrize(("killed", "verdict"), [((0,), Violated), ((1, 0), Unknown)], ids=["itself", "a role too"])
def test_a_pipeline_that_does_not_come_back_has_no_excuse_unless_a_role_was_killed(
    killed: tuple[int, ...], verdict: type, tmp_path: Path
) -> None:
    crash = 'restart = ["{python}", "-c", "print(\'restored\'); raise SystemExit(3)"]\nends = false'
    one = subject(tmp_path, ("ends = false", crash), ("[feed]", ROLE), ("every_ms = 20", "every_ms = 200"))
    at = (AtAim(aim="halfway", occurrence=place + 1) for place in range(len(killed)))
    faults = tuple(KillNode(node=node, trigger=trigger) for node, trigger in zip(killed, at, strict=True))
    result = ran(one, replace(one.without_faults(40), faults=faults))
    assert result.history.unapplied == []
    assert isinstance(result.judgement.verdicts["progress"], verdict)


def test_rows_that_a_command_prints_are_read_also_while_it_fails(tmp_path: Path) -> None:
    """Before the pipeline has made its table the command fails, and what it says is no row."""
    one = subject(tmp_path, (SQLITE, COMMAND.replace("\\\n    ", "")))
    result = ran(one, killed_at(one, "halfway"))
    assert isinstance(result.judgement.verdicts["exactly-once"], Holds), result.judgement.verdicts
    assert result.history.unapplied == []


def test_a_command_that_never_works_is_said_with_what_it_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "READABLE_WITHIN_S", 0.1)
    command = 'format = "command"\ncommand = ["sh", "-c", "echo there are no rows >&2; exit 3"]'
    one = subject(tmp_path, (SQLITE, command), ("timeout_s = 5", "timeout_s = 1"))
    with pytest.raises(SubjectFailed, match=r"read\.command: sh ended with exit code 3: there are no rows"):
        one.run(one.without_faults(8))


COPYING = """\
format = "cutproof-pipeline/1"
name = "copying"

[run]
start = ["{python}", "-c", "import socket, sys; \
    records = socket.create_connection(('127.0.0.1', int(sys.argv[1]))).makefile(); \
    open(sys.argv[2], 'w').writelines(records)", "{port2}", "{output}/rows.jsonl"]

[feed]
to = "socket"
port = "{port2}"

[read]
format = "json-lines"
path = "{output}/rows.jsonl"
"""


def test_a_pipeline_that_reads_from_a_socket_ends_behind_the_last_record(tmp_path: Path) -> None:
    (tmp_path / "copying.toml").write_text(COPYING)
    one = PipelineSubject(tmp_path / "copying.toml")
    history = one.run(one.without_faults(25))
    assert [tag for _, _, tag, _ in history.committed] == list(range(1, 26))
    assert history.quiet


def test_a_fault_that_has_to_wait_is_no_reason_to_read_more_often(tmp_path: Path) -> None:
    one = subject(
        tmp_path, ("[run]", '[run]\nbusy = { log = "^never" }'), ("every_ms = 30", "every_ms = 250"), ("= 8", "= 16")
    )
    history = ran(one, killed_at(one, "a-file-is-done", records=64)).history
    assert history.unapplied == ["kill-node, a-file-is-done (`busy` of pipeline was not seen when it was due)"]
    assert len(history.reads) <= 2 + history.timeline[-1].at_us / 250_000


@pytest.mark.parametrize("dies", [False, True], ids=["a run to its end", "the harness dies"])
def test_what_comes_after_a_run_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: bool) -> None:
    commands = '[run]\nbefore = [["touch", "MADE"]]\nafter = [["sh", "-c", "test -f MADE && echo over >> MADE"]]'
    one = subject(tmp_path, ("[run]", commands.replace("MADE", str(tmp_path / "made"))))
    if dies:  # before it cleans up; the keeper sees that its input ends
        monkeypatch.setattr(PipelineRun, "_clean_up", lambda _: None)
    one.run(one.without_faults(8))
    assert (tmp_path / "made").read_text() == "over\n"


LISTENING = """\
"-c", '''
import runpy, socket, sys
listening = socket.create_server(("127.0.0.1", int(sys.argv.pop(1))))
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
''', "{port1}", "TOY"\
"""


@pytest.mark.parametrize("command", ["exec", "while :; do"], ids=["the command ends", "the command goes on"])
def test_a_kill_may_hit_what_listens_at_a_port(tmp_path: Path, command: str) -> None:
    """Either the harness starts it again, or a supervisor."""
    text = command + (' "$@"; done' if command != "exec" else ' "$@"')
    shell = f"""port = "{{port1}}"\nstart = ["sh", "-c", '{text}', "toy", "{{python}}", {LISTENING.strip()}"""
    one = subject(tmp_path, ('start = ["{python}", "TOY"'.replace("TOY", str(TOY)), shell.replace("TOY", str(TOY))))
    result = ran(one, killed_at(one, "halfway"))
    assert isinstance(result.judgement.verdicts["exactly-once"], Holds), result.judgement.verdicts
    assert [start.restores is not None for start in starts(result)][:2] == [False, True]
    noted = [(entry.what, entry.detail.rstrip("0123456789")) for entry in result.history.timeline]
    assert ("process-killed", "what listens at port ") in noted
    assert [what for what, _ in noted].count("process-started") == (2 if command == "exec" else 1)


def test_a_kill_at_a_port_waits_until_something_listens_there(tmp_path: Path) -> None:
    one = subject(tmp_path, ("[run]", '[run]\nport = "{port1}"'))
    history = ran(one, killed_at(one, "halfway")).history
    why_not = "no process of the run listened at the port of pipeline when it was due"
    assert history.unapplied == [f"kill-node, halfway ({why_not})"]


LATE = '''
[quiet]
files = "{state}/late"

[roles.late]
start = ["{python}", "-c", """
import pathlib, sqlite3, sys, time
store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
rows = 0
while rows < 16:
    time.sleep(0.02)
    if store.execute("SELECT count(*) FROM sqlite_master WHERE name = 'rows'").fetchone()[0]:
        (rows,) = store.execute("SELECT count(*) FROM rows").fetchone()
time.sleep(1.0)
store.execute("INSERT INTO rows SELECT * FROM rows LIMIT 1")
pathlib.Path(sys.argv[2]).touch()
time.sleep(600)
""", "{state}/toy.db", "{state}/late"]

[restored]'''
"""A process that hands in a row once more, long after the output was complete: then it has nothing left to do."""


@pytest.mark.parametrize("ends", [False, True], ids=["until it is stopped", "until it ends"])
def test_a_run_does_not_end_before_the_pipeline_is_quiet(tmp_path: Path, ends: bool) -> None:
    changes = [
        ("ends = false", "ends = true"),
        ("[feed]", "[feed]\nat_once = true"),
        ('"careful"', '"careful", "ends"'),
    ]
    one = subject(tmp_path, ("[restored]", LATE), *(changes if ends else ()))
    result = ran(one, one.without_faults(16))
    assert isinstance(result.judgement.verdicts["exactly-once"], Violated)
    assert "1 more of" in result.judgement.verdicts["exactly-once"].message
    assert result.history.quiet


def test_a_pipeline_that_is_never_quiet_is_not_accused(tmp_path: Path) -> None:
    quiet = '[quiet]\nfiles = "{state}/never"\n\n[restored]'
    one = subject(tmp_path, ("[restored]", quiet), ("timeout_s = 5", "timeout_s = 0.6"))
    result = ran(one, killed_at(one, "halfway", records=24))
    assert isinstance(result.judgement.verdicts["exactly-once"], Holds), result.judgement.verdicts
    assert isinstance(result.judgement.verdicts["progress"], Holds)
    assert not result.history.quiet
    assert [(check.entry, check.ok) for check in tried(one) if check.entry == "quiet"] == [("quiet", False)]


LOSING_ALL = """\
test -f "$2" && { echo restored; rm -f "$2"; exec sleep 600; }
for file in "$1"/*; do
    while read -r line; do echo "$line" >> "$2"; sleep 0.01; done < "$file"
done
exec sleep 600
"""
LOSES_ALL = """\
format = "cutproof-pipeline/1"
name = "losing"

[run]
start = ["sh", "{pipeline}/losing.sh", "{input}", "{output}/rows.jsonl"]
ends = false
timeout_s = 0.5

[feed]
at_once = true

[read]
format = "json-lines"
path = "{output}/*.jsonl"
every_ms = 30

[restored]
log = "^restored"
"""


def test_a_pipeline_that_loses_all_of_its_output_is_judged(tmp_path: Path) -> None:
    """Its second life removes what the first one has put out, and finds nothing to do."""
    (tmp_path / "losing.sh").write_text(LOSING_ALL)
    (tmp_path / "losing.toml").write_text(LOSES_ALL)
    one = PipelineSubject(tmp_path / "losing.toml")
    found = run_on(one, killed_at(one, "halfway")).judgement.verdicts
    assert isinstance(found["exactly-once"], Violated), found
    assert isinstance(found["no-data-loss"], Violated)
    assert isinstance(found["visibility"], Violated)


ZOMBIE = """\
[roles.zombie]
start = ["{python}", "-c", '''
import sqlite3, sys, time
last = time.monotonic()
print("ready", flush=True)
while True:
    time.sleep(0.05)
    if time.monotonic() - last > 0.5:
        store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
        store.execute("INSERT INTO rows SELECT * FROM rows LIMIT 1")
    last = time.monotonic()
''', "{state}/toy.db"]
ready = { log = "^ready" }
killed = false
paused = true

[restored]"""
"""A process that hands in a row once more when it has been paused."""


@pytest.mark.parametrize(
    "changes",
    [
        (("timeout_s = 5", "timeout_s = 1"),),
        (("ends = false", "ends = true"), ("[feed]", "[feed]\nat_once = true"), ('"careful"', '"careful", "ends"')),
    ],
    ids=["until it is stopped", "until it ends"],
)
def test_a_run_does_not_end_before_a_paused_process_has_gone_on(
    tmp_path: Path, changes: tuple[tuple[str, str], ...]
) -> None:
    one = subject(tmp_path, ("[restored]", ZOMBIE), *changes)
    pause = PauseNode(node=1, for_us=1_500_000, trigger=AtAim(aim="a-file-is-done"))
    result = run_on(one, replace(one.without_faults(24), faults=(pause,)))
    assert isinstance(result.judgement.verdicts["exactly-once"], Violated), result.history.committed


TABLE = """\
[feed]
to = "table"
database = "{state}/nowhere/toy.db"
insert = "INSERT INTO input VALUES (:key, :value, :tag)\""""


def test_a_feed_that_never_works_is_said(tmp_path: Path) -> None:
    one = subject(tmp_path, ("[feed]", TABLE), ("timeout_s = 5", "timeout_s = 1"))
    with pytest.raises(SubjectFailed, match=r"feed\.insert: SQLite says: unable to open.*until the end of the run"):
        one.run(one.without_faults(8))


def test_a_pipeline_that_never_puts_out_all_rows_is_given_up_in_time(tmp_path: Path) -> None:
    one = subject(tmp_path, ("FROM rows", "FROM rows WHERE n > 1"), ("timeout_s = 5", "timeout_s = 1"))
    found = ran(one, one.without_faults(16)).judgement.verdicts
    assert isinstance(found["exactly-once"], Violated)
    assert found["exactly-once"].difference == "lost row"


def test_an_aim_that_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    one = subject(tmp_path)
    with pytest.raises(SubjectFailed, match=r"toy\.toml has no aim 'nowhere'"):
        one.run(killed_at(one, "nowhere"))


def test_scenarios_are_a_function_of_seed_and_number(tmp_path: Path) -> None:
    one = subject(tmp_path)
    drawn = [one.draw(7, index, max_records=60, max_faults=3) for index in range(40)]
    assert drawn == [one.draw(7, index, max_records=60, max_faults=3) for index in range(40)]
    assert len({scenario.workload for scenario in drawn}) == 40
    triggers = [fault.trigger for scenario in drawn for fault in scenario.faults]
    assert {type(trigger) for trigger in triggers} == {AtAim, AtTime}
    assert {trigger.aim for trigger in triggers if isinstance(trigger, AtAim)} == {"halfway", "a-file-is-done"}


def test_a_trial_says_of_each_entry_whether_it_works(tmp_path: Path) -> None:
    checks = tried(subject(tmp_path))
    assert [(check.entry, check.ok) for check in checks] == [
        ("run.start", True),
        ("feed, read", True),
        ("computes", True),
        ("aims.a-file-is-done", True),
        ("restored", True),
    ]
    assert checks[2].seen == "the rows are those that computes.steps yield"


@pytest.mark.parametrize(
    ("change", "entry", "seen"),
    [
        (("SELECT key, n AS value", "SELECT key, n + 1 AS value"), "computes", "rows not expected; found: (key"),
        (("n AS value, ", ""), "read.columns", "the output has no column 'value'"),
        (("FROM rows", "FROM rowz"), "read.query", "SQLite says: no such table: rowz; it was not there until the end"),
        (('log = "^restored"', 'log = "^never printed"'), "restored", "by then, the file lacks [stored]"),
        (('[restored]\nlog = "^restored"\n', ""), "restored", "it is not in the file, so no kill will count"),
        (("SELECT key, n AS", "SELEKT key, n AS"), "read.query", "syntax error"),
        (('"{python}"', '"no-such-program"'), "run", "the command no-such-program cannot be started"),
        (("SELECT count(*) FROM done", "SELECT 0"), "aims.a-file-is-done", "it was never met"),
        (
            ("[restored]", '[stored]\nlog = "^never printed"\n\n[restored]'),
            "restored",
            "no process was killed: stored was never seen",
        ),
        (
            ("ends = false", 'busy = { log = "^never printed" }\nends = false'),
            "restored",
            "no process was killed: run.busy was never seen",
        ),
        (
            ("ends = false", "killed = false\npaused = true\npaused_for_ms = [50]\nends = false"),
            "restored",
            "it was not seen after a pause, so no pause will count as exercise",
        ),
    ],
    ids=["computes", "column", "table", "restored", "none", "query", "program", "aim", "stored", "busy", "pause"],
)
def test_a_trial_names_what_does_not_work(change: tuple[str, str], entry: str, seen: str, tmp_path: Path) -> None:
    checks = tried(subject(tmp_path, change, ("timeout_s = 5", "timeout_s = 1")))
    wrong = {check.entry: check.seen for check in checks if not check.ok}
    assert seen in wrong[entry], checks


@pytest.mark.parametrize(
    ("error", "entry"),
    [
        (EntryFailed("roles.queue.ready", "it was not seen within 1 s"), "roles.queue.ready"),
        (EntryFailed("feed", Problem("feed.insert", "SQLite says: no such table: input")), "feed"),
        (NotReadable("", "the database a.db is locked"), "run"),
        (SubjectFailed("the command sums.sh cannot be started: it is not there"), "run"),
        (SubjectFailed("feed.insert: whatever this says"), "run"),
    ],
    ids=["one", "the outer one", "none", "another error", "a sentence that begins like an entry"],
)
def test_an_error_is_about_the_entry_that_it_names_whatever_it_says(error: SubjectFailed, entry: str) -> None:
    assert _entry_of(error) == entry


def test_an_error_about_an_entry_says_so_first_and_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(EntryFailed("feed.insert", ValueError("no such table"))))
    assert (str(error), error.problem) == ("feed.insert: no such table", Problem("feed.insert", "no such table"))
    assert str(NotReadable(None, "the database a.db is locked")) == "the database a.db is locked"
