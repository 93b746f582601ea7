"""The worked examples on general systems: what the text says shows, and on another system it does not."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from cutproof.harness.cli import main
from cutproof.harness.examples.claims import look_up
from cutproof.harness.examples.example_report import REPORT
from cutproof.harness.examples.run import run_system_example
from cutproof.harness.examples.systems.examples import SYSTEM_EXAMPLES
from cutproof.harness.examples.systems.worked import FIXED, WORKED
from cutproof.harness.reference_engine.graphs.run import run, run_and_judge
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.scenario.reading import FileError
from cutproof.harness.scenario.system_files import FORMAT, SystemFile, read_system, system_schema, write_system
from cutproof.properties.model.verdict import Holds
from cutproof.reference_impl.simulated.graphs.plan import Breach, Channel, System

SCHEMA = Path(__file__).parents[5] / "docs" / "graph.schema.json"
CORPUS = Path(__file__).parents[4] / "corpus" / "graphs"


@pytest.mark.parametrize("name", SYSTEM_EXAMPLES)
def test_it_holds_and_all_that_the_text_states_shows(name: str) -> None:
    example_run = run_system_example(SYSTEM_EXAMPLES[name])
    assert [claim for claim in example_run.claims if not claim.shown] == []
    assert isinstance(example_run.verdicts["consistent-cut"], Holds)
    assert example_run.exit_code == ExitCode.HELD


def _without(system: System, label: str) -> System:
    return msgspec.structs.replace(system, acts=tuple(act for act in system.acts if act.label != label))


def _slower(system: System, name: str, takes_us: int) -> System:
    def altered(channel: Channel) -> Channel:
        return msgspec.structs.replace(channel, takes_us=takes_us) if channel.name == name else channel

    return msgspec.structs.replace(system, channels=tuple(map(altered, system.channels)))


@pytest.mark.parametrize(
    ("name", "system", "lacking"),
    [
        ("chandy-lamport-p1-p2-p3", _without(WORKED, "J"), [1]),
        ("chandy-lamport-p1-p2-p3", _without(WORKED, "A→"), [2]),
        ("chandy-lamport-p1-p2-p3", _without(WORKED, "H→D"), [2]),
        ("chandy-lamport-p1-p2-p3", _slower(WORKED, "C13", 350), [0]),
        ("chandy-lamport-p1-p2-p3", msgspec.structs.replace(WORKED, beginnings=()), [0, 1, 2, 3]),
        ("four-global-states", _slower(SYSTEM_EXAMPLES["four-global-states"].system, "C12", 500), [2, 3]),
        ("clock-skew-snapshot", _without(SYSTEM_EXAMPLES["clock-skew-snapshot"].system, "order"), [0]),
    ],
)
def test_on_another_system_it_does_not(name: str, system: System, lacking: list[int]) -> None:
    shown = look_up(SYSTEM_EXAMPLES[name].claims, SYSTEM_EXAMPLES[name].system, run(system))
    if name == "clock-skew-snapshot":  # its claims run variants of the example's system
        altered = msgspec.structs.replace(SYSTEM_EXAMPLES[name], system=system)
        shown = look_up(altered.claims, altered.system, run(system))
    assert [number for number, claim in enumerate(shown) if not claim.shown] == lacking


def test_what_a_history_lacks_is_not_shown_and_breaks_nothing() -> None:
    example = SYSTEM_EXAMPLES["chandy-lamport-p1-p2-p3"]
    without = msgspec.structs.replace(run(example.system), markers=())
    shown = look_up(example.claims, example.system, without)
    assert [claim.shown for claim in shown] == [False, True, True, False]
    assert shown[3].evidence == "the history lacks what the claim is looked up in: tuple index out of range"


def test_what_the_text_fixes_is_there_and_marked() -> None:
    assert sorted(act.label for act in WORKED.acts if act.label in FIXED) == sorted(FIXED)


def test_the_corpus_has_the_worked_example() -> None:
    example_run = read_system(CORPUS / "worked-example.json")
    assert example_run.system == WORKED
    assert isinstance(run_and_judge(example_run.system).verdict, Holds)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    example_run = SystemFile(name="it", system=WORKED)
    write_system(tmp_path / "it.json", example_run)
    assert read_system(tmp_path / "it.json") == example_run


def test_the_schema_in_the_docs_is_that_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text()) == json.loads(json.dumps(system_schema()))


def test_the_schema_accepts_what_is_written_and_refuses_what_is_not_known(tmp_path: Path) -> None:
    write_system(tmp_path / "it.json", SystemFile(name="it", system=WORKED))
    written = json.loads((tmp_path / "it.json").read_text())
    jsonschema.validate(written, system_schema())
    written["system"]["acts"][0]["colour"] = "red"
    with pytest.raises(jsonschema.ValidationError, match="'colour' was unexpected"):
        jsonschema.validate(written, system_schema())


def test_every_field_of_a_file_is_in_the_documents() -> None:
    documented = (SCHEMA.parent / "format.md").read_text().partition("## Files of systems")[2].partition("\n## ")[0]
    kinds = system_schema()["$defs"].values()
    assert [name for kind in kinds for name in kind["properties"] if f"`{name}`" not in documented] == []


_BEGIN = {"at_us": 0, "process": "P", "snapshot": "S"}


def _file(**system: object) -> str:
    whole = {"processes": ["P"], "channels": [], **system}
    return msgspec.json.encode({"format": FORMAT, "name": "it", "system": whole}).decode()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("[" * 40 + "]" * 40, "nested deeper than 32 brackets"),
        ('{"name": "it"}', "its format is ''; this version reads cutproof-graph/1"),
        (f'{{"format": "{FORMAT}", "name": "it"}}', "missing required field `system`"),
        (_file().replace(FORMAT, "cutproof-graph/9"), "this version reads cutproof-graph/1"),
        (_file(processes=[]), "there is no process"),
        (_file(processes=["P", "P"]), "process 'P' is named twice"),
        (_file(method="magic"), "method 'magic': one of"),
        (_file(channels=[{"name": "c", "sender": "P", "receiver": "Q"}]), "channel 'c': there is no process 'Q'"),
        (_file(acts=[{"at_us": 0, "process": "P", "label": "x", "channel": "c"}]), "'x': 'c' is no channel out of 'P'"),
        (_file(acts=[{"at_us": -1, "process": "P", "label": "x"}]), "a time is negative"),
        (_file(breaches=[{"kind": "lose"}]), "breach lose: there is no channel ''"),
        (_file(breaches=[{"kind": "gap", "process": "Q"}]), "breach gap: there is no process 'Q'"),
        (_file(skews_us={"Q": 1}), "the clock of 'Q': there is no such process"),
        (_file(patience_us=-1), "a time is negative"),
        (_file(skews_us={"P": 500_000}), "a clock differs by half of patience_us"),
        (_file(processes=["P", "Q"], beginnings=[_BEGIN]), "snapshot 'S' never reaches 'Q'"),
        (
            _file(method="clocks", beginnings=[_BEGIN, _BEGIN]),
            "snapshot 'S' is begun twice: clocks orders all processes at once",
        ),
        (_file(method="stop-the-world", beginnings=[_BEGIN, {**_BEGIN, "snapshot": "T"}]), "takes one snapshot"),
        (_file(beginnings=[{"at_us": 0, "process": "Q", "snapshot": "S"}]), "snapshot 'S': there is no process 'Q'"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "it.json"
    path.write_text(text)
    with pytest.raises(FileError, match=reason) as refused:
        read_system(path)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_a_file_may_have_a_mebibyte(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    path.write_text(_file() + " " * (1024 * 1024 - len(_file())))
    assert read_system(path).name == "it"
    path.write_text(_file() + " " * (1024 * 1024 + 1 - len(_file())))
    with pytest.raises(FileError, match="1,048,577 bytes; the limit is 1,048,576"):
        read_system(path)


@pytest.mark.parametrize(
    ("breaches", "code", "printed"),
    [
        ((), ExitCode.HELD, "under way in C21: [H→D]"),
        ((Breach(kind="lose", channel="C12", number=1),), ExitCode.VIOLATED, "snapshot without an end"),
    ],
)
def test_a_system_is_replayed_and_judged(
    tmp_path: Path, breaches: tuple[Breach, ...], code: ExitCode, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    system = msgspec.structs.replace(WORKED, breaches=breaches)
    write_system(tmp_path / "it.json", SystemFile(name="it", system=system))
    assert main(["replay", str(tmp_path / "it.json")]) == code
    assert printed in capsys.readouterr().out


def test_its_page_is_kept_where_a_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["verify", "--workload", "chandy-lamport-p1-p2-p3"]
    assert main([*words, "--out", str(tmp_path / "kept")]) == ExitCode.HELD
    assert f"report: {tmp_path / 'kept' / REPORT}" in capsys.readouterr().out
    page = (tmp_path / "kept" / REPORT).read_text(encoding="utf-8")
    assert "4 of 4 claims of the course on consistent snapshots showed" in " ".join(page.split())
    assert main(words) == ExitCode.HELD
    assert "report:" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [("--subject", "processes"), ("--defect", "A01"), ("--runs", "3"), ("--out", "kept")])
@pytest.mark.usefixtures("toxiproxy_server")
def test_what_means_another_world_is_refused(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(CORPUS / "worked-example.json"), *words]) == ExitCode.USAGE
    assert f"to which {words[0]} does not apply" in capsys.readouterr().err
    if words[0] in ("--subject", "--defect"):
        assert main(["verify", "--workload", "chandy-lamport-p1-p2-p3", *words]) == ExitCode.USAGE
