"""What `judge` says of a history that leaves something out, or names what is not there."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtRest, KillTask
from cutproof.harness.cli import main
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import encoded, read_scenario, write_history
from cutproof.harness.scenario.history_checks import history_problems, spelt_empty
from cutproof.harness.scenario.history_witnesses import missing_parts
from cutproof.harness.scenario.model import Fork, Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Unknown

ROOT = Path(__file__).parents[4]
RECORDED = ROOT / "docs" / "examples" / "recorded"
REGRESSIONS = ROOT / "tests" / "regressions"
CORPUS = ROOT / "tests" / "corpus"

STATEMENTS = {
    ("runs", "loaded"),
    ("journal", "fault"),
    ("journal", "drain"),
    ("journal", "checkpoint"),
    ("completed", "savepoint"),
    ("stored", "files"),
    ("journal", "in_place"),
}
"""Fields that say that something happened: without them it did not (docs/format.md)."""

Place = tuple[str | int, ...]


def recorded() -> tuple[Scenario, Any]:
    return read_scenario(RECORDED / "scenario.json"), json.loads((RECORDED / "history.json").read_text())


def played(name: str) -> tuple[Scenario, Any]:
    scenario = read_scenario(REGRESSIONS / f"{name}.json")
    return scenario, json.loads(encoded(SimulatedSubject().run(scenario)))


def fields(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every field of a history and of each of its entries; what a map holds are no fields."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*place, name)
            if name not in ("handles", "enumerators", "parallelism", "inserted"):
                yield from fields(inner, (*place, name))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, inner in enumerate(value):
            yield from fields(inner, (*place, number))


def without(value: Any, place: Place) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    del inner[place[-1]]
    return changed


def put(value: Any, place: Place, new: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = new
    return changed


def refusal(scenario: Scenario, raw: Any) -> str:
    """Why the history is not judged; empty when it is."""
    data = json.dumps(raw).encode()
    if missing := missing_parts(data):
        return missing
    try:
        history = msgspec.json.decode(data, type=History)
    except msgspec.ValidationError as error:
        return str(error)
    return next(history_problems(scenario, history, spelt_empty(data)), "")


HISTORIES = {
    "recorded": recorded,
    "beside-a-drain": lambda: played("a-savepoint-beside-a-drain"),
    "idle": lambda: played("all-that-is-unread-is-idle"),
    "idempotent": lambda: played("an-operator-that-commits-before-an-idempotent-sink"),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_each_field_left_out_is_named_or_changes_nothing(name: str) -> None:
    scenario, raw = HISTORIES[name]()
    assert refusal(scenario, raw) == ""
    tried = 0
    for place in fields(raw):
        if place[0] == "timeline" and len(place) > 1:
            continue
        changed = without(raw, place)
        if problem := refusal(scenario, changed):
            named = [str(step) for step in place if isinstance(step, str)]
            assert named[-1] in problem or "marks" in problem, (place, problem)
            continue
        tried += 1
        history = msgspec.convert(changed, History, strict=False)
        verdicts = judge(scenario.workload, scenario.topology, history)
        crashed = [
            one for one in verdicts.verdicts.values() if isinstance(one, Unknown) and one.reason == "checker failed"
        ]
        assert not crashed, (place, crashed)
        if (place[0], place[-1]) not in STATEMENTS:
            assert not verdicts.violated, (place, verdicts.violated)
    assert tried


DRAWN = {"rescaled": (5, 0), "enumerated": (5, 3), "late": (5, 15), "idle": (77, 2), "windows": (77, 6)}
"""seed and number of drawn scenarios: several jobs, other parallelism, in-flight data, tasks that finish early"""


def drawn(seed: int, number: int) -> tuple[Scenario, Any]:
    scenario = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities))(seed, number)
    return scenario, json.loads(encoded(SimulatedSubject().run(scenario)))


SHOWN_BY = ("recovered_watermarks", "repeated", "watermarks", "assigned")
"""what another witness shows to be missing"""


@pytest.mark.parametrize("name", ["B09", "C08", "K04", "P06", "processes/P05"])
def test_what_channels_and_readers_leave_out_accuses_no_sound_engine(name: str) -> None:
    scenario = read_scenario(CORPUS / f"{name}.json")
    raw = json.loads(encoded(SimulatedSubject().run(scenario)))
    assert refusal(scenario, raw) == ""
    refused = 0
    for place in fields(raw):
        if place[0] == "timeline" or place[-1] not in SHOWN_BY:
            continue
        changed = without(raw, place)
        if refusal(scenario, changed):
            refused += 1
            continue
        verdicts = judge(scenario.workload, scenario.topology, msgspec.convert(changed, History, strict=False))
        assert not verdicts.violated, (place, verdicts.violated)
    assert refused


def on_file(path: Path, scenario: Scenario, defect: str | None) -> str:
    """Why the history's file is not judged; empty when it is."""
    write_history(path, SimulatedSubject(defect).run(scenario))
    data = path.read_bytes()
    problems = history_problems(scenario, msgspec.json.decode(data, type=History), spelt_empty(data))
    return missing_parts(data) or next(problems, "")


@pytest.mark.parametrize("forked", [False, True])
def test_a_channel_may_be_empty_when_a_later_attempt_has_sent_all_of_it_again(tmp_path: Path, forked: bool) -> None:
    """Its sender recovered locally; what the file does not say to be empty is still missing."""
    scenario = read_scenario(REGRESSIONS / "sent-again-by-a-later-attempt.json")
    if forked:
        scenario = msgspec.structs.replace(scenario, commands=(Fork(trigger=AtRest(), snapshot="each"),))
    assert on_file(tmp_path / "history.json", scenario, None) == ""
    raw = json.loads((tmp_path / "history.json").read_bytes())
    assert bool(raw.get("forks")) is forked
    for channel in raw["channels"]:
        if not channel["sent"]:
            del channel["sent"]
    assert "sent is missing" in refusal(scenario, raw)


@pytest.mark.parametrize(
    "defect", ["A01", "C08", "D01", "E12", "J01", "K04", "L02", "M02", *(f"P0{n}" for n in range(1, 10))]
)
def test_what_was_recorded_of_a_planted_defect_is_judged(defect: str, tmp_path: Path) -> None:
    assert on_file(tmp_path / "history.json", read_scenario(CORPUS / f"{defect}.json"), defect) == ""


@pytest.mark.parametrize(
    ("defect", "template", "number"), [("K04", "S10", 12), ("P06", "local", 0), ("P06", "local", 5)]
)
def test_a_list_that_is_there_and_empty_was_not_left_out(
    defect: str, template: str, number: int, tmp_path: Path
) -> None:
    """The engine gave nothing, or sent nothing again: that is what the judge is there for."""
    draw = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities, templates=(template,)))
    path, scenario = tmp_path / "history.json", draw(99, number)
    assert on_file(path, scenario, defect) == ""
    history = msgspec.json.decode(path.read_bytes(), type=History)
    assert history.defect_reached
    assert "is missing" in next(history_problems(scenario, history), ""), "and is, where nobody knows that it was there"


def test_what_is_in_channels_that_go_on_is_not_put_back_into_them() -> None:
    draw = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities, templates=("local",)))
    scenario = draw(99, 3)
    assert refusal(scenario, json.loads(encoded(SimulatedSubject().run(scenario)))) == ""


def test_a_task_that_died_as_soon_as_it_had_loaded_its_snapshot_has_put_nothing_back() -> None:
    """What was in flight is put back behind the load.  A task that lived has put it back, or the file lacks it."""
    scenario = read_scenario(REGRESSIONS / "restored-in-a-channel-that-stalls.json")
    lived = SimulatedSubject().run(scenario)
    dies = KillTask(task="map-0", trigger=AtPoint(point="state-loaded", task="map-0"))
    scenario = msgspec.structs.replace(scenario, faults=(*scenario.faults, dies))
    died = SimulatedSubject().run(scenario)
    for history, how, is_empty in [(lived, "finished", False), (died, "killed", True)]:
        run = next(one for one in history.runs if (one.task, one.attempt) == ("map-0", 2))
        assert run.how == how
        assert json.loads(run.loaded.state)["queued"]
        back = [one for one in history.channels if one.name in run.inputs and one.attempt == 2 and one.recovered]
        assert (back == []) is is_empty
        assert list(history_problems(scenario, history)) == []
        for one in back:
            one.recovered.clear()
    assert "recovered is missing" in next(history_problems(scenario, lived))


def some_of(places: Iterator[Place]) -> Iterator[Place]:
    """Of the places of each field the first two and the last two."""
    by_name: dict[Place, list[Place]] = {}
    for place in places:
        by_name.setdefault(tuple(step for step in place if isinstance(step, str)), []).append(place)
    for found in by_name.values():
        yield from dict.fromkeys((*found[:2], *found[-2:]))


@pytest.mark.parametrize("name", DRAWN)
def test_a_field_left_out_of_a_drawn_history_accuses_nobody(name: str) -> None:
    scenario, raw = drawn(*DRAWN[name])
    assert refusal(scenario, raw) == ""
    for place in some_of(fields(raw)):
        changed = without(raw, place)
        if place[0] == "timeline" or refusal(scenario, changed):
            continue
        verdicts = judge(scenario.workload, scenario.topology, msgspec.convert(changed, History, strict=False))
        if (place[0], place[-1]) not in STATEMENTS:
            assert not verdicts.violated, (place, verdicts.violated)


def dropped(raw: Any, event: str, field: str) -> Any:
    """Without a field of the first entry of the journal that has it."""
    number = next(at for at, entry in enumerate(raw["journal"]) if entry["event"] == event and field in entry)
    return without(raw, ("journal", number, field))


@pytest.mark.parametrize(
    ("event", "field", "complaint"),
    [
        ("attempt-started", "restores", r"journal\[10\].restores is missing: its tasks loaded checkpoint 1"),
        ("command-issued", "parallelism", r"journal\[8\].parallelism is missing: map ran with 2 subtasks, not 3"),
    ],
)
def test_what_the_tasks_report_otherwise_is_missing_in_the_journal(event: str, field: str, complaint: str) -> None:
    scenario, raw = drawn(*DRAWN["rescaled"])
    assert re.search(complaint, refusal(scenario, dropped(raw, event, field)))


def test_a_job_runs_no_operator_that_was_removed_or_never_added() -> None:
    scenario, raw = played("an-added-operator-that-finished")
    assert refusal(scenario, raw) == ""
    numbers = [at for at, entry in enumerate(raw["journal"]) if "added" in entry.get("upgrade", {})]
    number, (name,) = numbers[0], raw["journal"][numbers[0]]["upgrade"]["added"]
    silent = raw
    for at in numbers:
        silent = without(silent, ("journal", at, "upgrade", "added"))
    complaint = rf"runs\[\d+\].task: no command adds {name} to job \d, or it was removed"
    assert re.search(complaint, refusal(scenario, silent))
    for wrong in ("source", "sink", "nobody"):
        changed = copy.deepcopy(raw)
        changed["journal"][number]["upgrade"]["removed"] = [wrong]
        wrongly = f"journal[{number}].upgrade: '{wrong}' is no node that can be added or removed"
        assert wrongly in refusal(scenario, changed)


def test_a_savepoint_that_succeeded_made_a_checkpoint() -> None:
    scenario, raw = played("a-savepoint-beside-a-drain")
    assert "checkpoint is missing: the" in refusal(scenario, dropped(raw, "command-returned", "checkpoint"))


def test_a_checkpoint_without_what_finished_tasks_held_states_that_they_had_finished() -> None:
    scenario, raw = drawn(*DRAWN["rescaled"])
    assert re.search(
        r"completed\[2\].finished is missing: left-0 finished",
        refusal(scenario, without(raw, ("completed", 2, "finished"))),
    )


def test_without_channels_the_others_are_not_accused_of_what_was_in_flight() -> None:
    scenario, raw = drawn(*DRAWN["rescaled"])
    changed = without(raw, ("channels",))
    assert refusal(scenario, changed) == ""
    verdicts = judge(scenario.workload, scenario.topology, msgspec.convert(changed, History, strict=False))
    assert verdicts.violated == {}
    assert isinstance(verdicts.verdicts["order"], Unknown)


def test_where_tasks_come_up_in_place_the_channels_are_demanded() -> None:
    scenario, raw = played("completed-after-the-cancel")
    assert refusal(scenario, without(raw, ("channels",))).startswith("channels is missing: tasks of attempt 2")


@pytest.mark.parametrize("name", sorted(path.stem for path in REGRESSIONS.glob("*.json")))
def test_no_sound_history_is_refused(name: str, tmp_path: Path) -> None:
    assert on_file(tmp_path / "history.json", read_scenario(REGRESSIONS / f"{name}.json"), None) == ""


def test_all_that_is_missing_is_named_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, raw = recorded()
    path, parts = tmp_path / "history.json", ("runs", "journal", "stored", "committed", "residue", "transactions")
    path.write_text(json.dumps({name: value for name, value in raw.items() if name not in parts}))
    assert main(["judge", str(path), "--scenario", str(RECORDED / "scenario.json"), "--quick"]) == 2
    error = capsys.readouterr().err
    assert all(f"`{part}`" in error for part in parts)
    for number in (0, 1, 2):
        del raw["runs"][number]["how"]
    path.write_text(json.dumps(raw))
    assert main(["judge", str(path), "--scenario", str(RECORDED / "scenario.json"), "--quick"]) == 2
    error = capsys.readouterr().err
    assert all(f"runs[{number}].how" in error for number in (0, 1, 2))
    assert len(error) <= 300
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("place", "new", "complaint"),
    [
        (("runs", 0, "task"), "source-7", r"runs\[0\].task: there is no task 'source-7': source has 1 subtasks"),
        (("runs", 0, "task"), "nobody-0", r"runs\[0\].task: there is no task 'nobody-0'"),
        (("runs", 0, "attempt"), 9, r"runs\[0\].attempt: no attempt-started of the journal has attempt 9"),
        (("runs", 0, "job"), 9, r"runs\[0\].job: no attempt-started of the journal has job 9"),
        (("runs", 1, "attempt"), 2, r"runs\[4\].task: sum-0 of attempt 2 is there twice"),
        (("runs", 0, "how"), "well", r"runs\[0\].how: 'well' is none of"),
        (("runs", 0, "reads", 0), [3, 0], r"runs\[0\].reads\[0\]: the scenario has no record 0 of split 3"),
        (("runs", 0, "outputs"), ["source-0>x-0"], r"runs\[0\].outputs\[0\]: there is no task 'x-0'"),
        (("runs", 0, "outputs"), ["source-0"], r"runs\[0\].outputs\[0\]: a channel's name is sender>receiver"),
        (("runs", 1, "applies", 0), [4, 0], r"runs\[1\].applies\[0\]: sum-0 has no input 4"),
        (("runs", 1, "applies", 0), [0, 77 << 40], r"runs\[1\].applies\[0\]: .* of split 77, which the scenario"),
        (("runs", 3, "loaded", "state"), "{", r"runs\[3\].loaded.state is no snapshot"),
        (("channels", 0, "name"), "source-0>x-0", r"channels\[0\].name: there is no task 'x-0'"),
        (("channels", 0, "attempt"), 9, r"channels\[0\].attempt: no attempt-started"),
        (("channels", 0, "sent", 0), 99 << 8, r"channels\[0\].sent: .* record 99 of split 0"),
        (("stored", 0, "task"), "x-0", r"stored\[0\].task: there is no task 'x-0'"),
        (("stored", 0, "attempt"), 9, r"stored\[0\].attempt: no attempt-started"),
        (("completed", 0, "job"), 9, r"completed\[0\].job: no attempt-started"),
        (("completed", 0, "handles"), {"x-0": "1"}, r"completed\[0\].handles: there is no task 'x-0'"),
        (("transactions", 0, "task"), "x-0", r"transactions\[0\].task: there is no task"),
        (("transactions", 0, "attempt"), 9, r"transactions\[0\].attempt: no attempt-started"),
        (("transactions", 0, "status"), "gone", r"transactions\[0\].status: 'gone' is none of"),
        (("journal", 1, "fault"), 9, r"journal\[1\].fault: the scenario has no fault 9"),
        (("journal", 2, "task"), "x-0", r"journal\[2\].task: there is no task 'x-0'"),
        (("journal", 2, "attempt"), 9, r"journal\[2\].attempt: no attempt-started"),
        (("journal", 3, "restores"), 9, r"journal\[3\].restores: no completed has checkpoint 9"),
        (("guarantee",), "perfect", "guarantee: 'perfect' is none of"),
        (("sink",), "nowhere", "sink: 'nowhere' is none of"),
    ],
)  # fmt: skip
def test_what_is_named_has_to_be_there(place: Place, new: Any, complaint: str) -> None:
    scenario, raw = recorded()
    with_fault = msgspec.structs.replace(scenario, faults=scenario.faults or (object(),))  # type: ignore[arg-type]
    assert re.search(complaint, refusal(with_fault, put(raw, place, new)))


@pytest.mark.parametrize("part", ["journal", "runs", "committed", "transactions", "residue"])
def test_a_part_that_is_missing_ends_judge_with_2_and_one_line(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, raw = recorded()
    path = tmp_path / "history.json"
    path.write_text(json.dumps(without(raw, (part,))))
    code = main(["judge", str(path), "--scenario", str(RECORDED / "scenario.json"), "--quick"])
    error = capsys.readouterr().err
    assert code == 2
    assert f"`{part}` is missing" in error
    assert len(error.splitlines()) == 1
    assert len(error) <= 300


def test_a_line_about_a_history_is_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, raw = recorded()
    path = tmp_path / "history.json"
    path.write_text(json.dumps(put(raw, ("runs", 0, "task"), "x" * 5_000)))
    assert main(["judge", str(path), "--scenario", str(RECORDED / "scenario.json"), "--quick"]) == 2
    assert len(capsys.readouterr().err) <= 300


# -- witnesses ------------------------------------------------------------------------

OUTSIDE = Path(__file__).parents[4] / "docs" / "examples" / "outside"


def from_outside() -> tuple[Scenario, Any]:
    return read_scenario(OUTSIDE / "scenario.json"), json.loads((OUTSIDE / "history.json").read_bytes())


STOPPED = {"event": "job-ended", "order": 4, "at_us": 0, "job": 1, "status": "stopped"}


def test_a_history_of_twenty_lines_is_whole() -> None:
    scenario, raw = from_outside()
    assert refusal(scenario, raw) == ""
    assert len((OUTSIDE / "history.json").read_text().splitlines()) == 20
    assert "`committed` is missing" in refusal(scenario, without(raw, ("committed",)))
    assert "`runs`" in refusal(scenario, without(raw, ("witnesses",))), "without names it has all witnesses"


@pytest.mark.parametrize(
    ("place", "new", "named"),
    [
        (("witnesses",), ["reader", "journal", "spectator"], "witnesses[2]: 'spectator' is none of tasks, network"),
        (("transactions",), [], ""),
        (("residue",), {"open_transactions": ["tx"]}, "residue: `witnesses` does not name 'listing'"),
        (("commits",), [{"commit": 1, "order": 2, "positions": {"1": 0}}], "commits[0].positions"),
        (("commits",), [{"commit": 1, "order": 2, "positions": {"0": 5}}], "no offset 5 of split 0"),
        (
            ("commits",),
            [{"commit": 1, "order": 2, "positions": {"0": 3}}, {"commit": 2, "order": 3, "positions": {"0": 2}}],
            "commits[1].positions: split 0 goes back",
        ),
        (("commits",), [{"commit": 1, "order": 2, "positions": {"0": 4}}], ""),
        (("journal", 3), STOPPED | {"covers": {"0": 3}}, ""),
        (("journal", 3), STOPPED | {"covers": {"0": 5}}, "journal[3].covers: the scenario has no offset 5 of split 0"),
        (("journal", 3), STOPPED | {"covers": {"1": 0}}, "journal[3].covers"),
        (("journal", 3), STOPPED | {"status": "finished", "covers": {"0": 4}}, "journal[3].covers: a job that is fin"),
    ],
)
def test_a_history_reports_only_of_the_witnesses_that_it_names(place: Place, new: Any, named: str) -> None:
    scenario, raw = from_outside()
    found = refusal(scenario, put(raw, place, new))
    assert named in found if named else not found, found


def test_markers_and_rows_of_a_reader_are_for_runs_seen_from_outside() -> None:
    scenario, raw = recorded()
    commits = [{"commit": 1, "order": 2, "positions": {"0": 1}}]
    assert "commits[0]" in refusal(scenario, put(raw, ("commits",), commits))
    reads = [{"began": 1, "ended": 2, "rows": 0, "seen": []}]
    assert "reads[0].seen" in refusal(scenario, put(raw, ("reads",), reads))
