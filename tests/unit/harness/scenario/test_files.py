"""Scenario files: what is written is read again, and whatever is wrong is one clear line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from cutproof.faults.plan import (
    AtPoint,
    AtTime,
    CutChannel,
    FailCommit,
    InPhase,
    KillNode,
    KillTask,
    LimitChannel,
    LoseMessage,
    PauseNode,
    SliceChannel,
    TimeoutChannel,
)
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.scenario import files
from cutproof.harness.scenario.files import decode_scenario, digest, encode_scenario
from cutproof.harness.scenario.model import Perturbation, Scenario
from cutproof.harness.scenario.reading import FileError
from cutproof.properties.model.history import History
from unit.harness.scenarios import chain

replace = msgspec.structs.replace
Fields = dict[str, Any]
LINK = {"sender": "source-0", "receiver": "map-0"}
SCHEMA = Path(__file__).parents[4] / "docs" / "scenario.schema.json"


def refused(data: bytes) -> str:
    with pytest.raises(FileError) as caught:
        decode_scenario(data, where="x.json")
    text = str(caught.value)
    assert text.startswith("x.json: ")
    assert "\n" not in text
    assert len(text) < 400
    return text


def altered(change: Callable[[Fields], object]) -> bytes:
    fields: Fields = json.loads(encode_scenario(chain()))
    change(fields)
    return json.dumps(fields).encode()


def test_a_scenario_survives_its_file(tmp_path: Path) -> None:
    files.write_scenario(tmp_path / "a.json", chain())
    assert files.read_scenario(tmp_path / "a.json") == chain()
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_history_survives_its_file(tmp_path: Path) -> None:
    history = History(subject="x", guarantee="exactly-once", sink="plain", committed=[(None, 1, 2, 0)])
    files.write_history(tmp_path / "h.json", history)
    assert files.read_history(tmp_path / "h.json") == history


def test_a_history_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text('{"format": "cutproof-history/9"}')
    with pytest.raises(FileError, match="'cutproof-history/9'; this version reads cutproof-history/1"):
        files.read_history(tmp_path / "h.json")


def test_the_digest_ignores_the_order_of_mappings_and_nothing_else() -> None:
    topology = chain().topology
    turned = replace(topology, parallelism=dict(reversed(topology.parallelism.items())))
    assert digest(replace(chain(), topology=turned)) == digest(chain())
    assert digest(replace(chain(), name="other")) != digest(chain())


def test_the_schema_in_the_docs_is_that_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text()) == json.loads(json.dumps(files.scenario_schema()))


def test_the_schema_accepts_what_is_written_and_refuses_what_is_not_known() -> None:
    schema = files.scenario_schema()
    jsonschema.validate(json.loads(encode_scenario(chain())), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(altered(lambda fields: fields["faults"][0].update(kind="meteor"))), schema)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (encode_scenario(chain())[:-40], "the file is cut off"),
        (b"Dear reader", "the file is not JSON"),
        (b"[1, 2]", "Expected `object`"),
        (b"{}", "its format is ''"),
        (b'{"format": "cutproof-scenario/7"}', "its format is 'cutproof-scenario/7'; this version reads"),
        (b'{"format": "cutproof-scenario/1"}', "missing required field `workload`"),
        (b'{"format": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper than 32"),
        (b" " * (files.SCENARIO_LIMIT_BYTES + 1), "the limit is 16,777,216"),
    ],
)
def test_what_is_no_scenario_file(data: bytes, words: str) -> None:
    assert words in refused(data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda fields: fields["faults"][0].update(kind="meteor"), "'meteor'"),
        (lambda fields: fields["commands"][0].update(command="explode"), "'explode'"),
        (lambda fields: fields["faults"][0].update(surprise=1), "unknown field `surprise`"),
        (lambda fields: fields.update(name="../../etc/passwd"), "cannot be its name"),
        (lambda fields: fields.update(defect="a/b"), "cannot be its defect"),
        (lambda fields: fields["workload"]["inputs"][0].update(name="../source"), "no name for an input or a node"),
        (lambda fields: fields["workload"]["nodes"][0]["inputs"].append("nobody"), "map has 2 inputs"),
        (lambda fields: fields["topology"]["parallelism"].update(sink=0), "sink has no parallelism"),
        (lambda fields: fields["topology"]["parallelism"].update(sink=65), "the limit is 64"),
        (lambda fields: fields["topology"].update(key_groups=0), "0 key groups"),
        (lambda fields: fields["engine"].update(guarantee="hopefully"), "engine.guarantee is 'hopefully'"),
        (lambda fields: fields["engine"].update(read_interval_us=-5), "engine.read_interval_us is -5"),
        (lambda fields: fields["engine"].update(channel_capacity=0), "engine.channel_capacity is 0"),
        (lambda fields: fields["engine"].update(guarantee="at-most-once"), "it needs a plain sink"),
        (lambda fields: fields["workload"]["inputs"][0].update(rewindable=False), "source cannot rewind"),
        (lambda fields: fields["workload"]["inputs"][0]["splits"][0][0].__setitem__(1, 1 << 64), "into 64 bits"),
        (lambda fields: fields["workload"]["inputs"][0]["splits"][0][0].__setitem__(2, 1 << 41), "is not within -2^40"),
        (
            lambda fields: fields["workload"]["inputs"][0]["splits"][0][0].__setitem__(2, 101),
            "the tag of another record, 101",
        ),
        (
            lambda fields: fields["workload"]["nodes"][0]["operator"].update(rekey=0),
            "keys modulo 0; it can be 1 or more",
        ),
    ],
)
def test_what_is_wrong_in_a_scenario_file(change: Callable[[Fields], object], words: str) -> None:
    assert words in refused(altered(change))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (KillTask(trigger=AtTime(at_us=-1), task="map-0"), "fault 0 (kill-task): at_us is -1"),
        (KillTask(trigger=AtTime(at_us=1), task="map-2"), "there is no task 'map-2'"),
        (KillTask(trigger=AtPoint(point="lunch"), task="map-0"), "an unknown point 'lunch'"),
        (KillTask(trigger=AtPoint(point="ack-sent", side="during"), task="map-0"), "it is 'during' the point"),
        (KillTask(trigger=AtPoint(point="ack-sent", occurrence=0), task="map-0"), "occurrence 0"),
        (KillTask(trigger=AtPoint(point="ack-sent", task="x-0"), task="map-0"), "there is no task 'x-0'"),
        (
            KillTask(trigger=AtPoint(point="checkpoint-completed", task="map-0"), task="map-0"),
            "checkpoint-completed is a point of the coordinator",
        ),
        (KillTask(trigger=InPhase(phase="sleeping"), task="map-0"), "an unknown phase 'sleeping'"),
        (KillNode(trigger=AtTime(at_us=1), node=2), "there is no node 2; the nodes are 0 to 1"),
        (LoseMessage(trigger=AtTime(at_us=1), message="gossip"), "an unknown control message 'gossip'"),
        (FailCommit(trigger=AtTime(at_us=1), how="rudely"), "how is 'rudely'"),
        (FailCommit(trigger=AtTime(at_us=1), times=0), "times is 0"),
        (
            CutChannel(trigger=AtTime(at_us=1), sender="source-0", receiver="map-1"),
            "there is no channel source-0>map-1",
        ),
        (CutChannel(trigger=AtTime(at_us=1), **LINK, for_us=1), "only the proxies of a pipeline refuse connections"),
        (PauseNode(trigger=AtTime(at_us=1), node=2, for_us=1), "there is no node 2; the nodes are 0 to 1"),
        (SliceChannel(trigger=AtTime(at_us=1), **LINK, size=0, for_us=1), "size is 0; it can be 1 to 2147483647 bytes"),
        (LimitChannel(trigger=AtTime(at_us=1), **LINK, bytes=-1), "bytes is -1; it can be 0 to 2147483647"),
        (TimeoutChannel(trigger=AtTime(at_us=1), **LINK, after_us=-1), "after_us is -1"),
    ],
)
def test_a_fault_that_hits_nothing(changed: Any, words: str) -> None:
    assert words in refused(encode_scenario(replace(chain(), faults=(changed,))))


def test_a_fault_of_a_pipeline_may_hit_any_of_its_processes() -> None:
    """How many a pipeline has is known to its own file alone: Flink's second task manager is number 3."""
    kill = KillNode(trigger=AtTime(at_us=1), node=3)
    scenario = replace(chain(), faults=(kill,), pipeline="flink-count")
    assert decode_scenario(encode_scenario(scenario)) == scenario
    assert "there is no node -1" in refused(encode_scenario(replace(scenario, faults=(replace(kill, node=-1),))))


@pytest.mark.parametrize("what", ["message map-0>sink-0", "control gossip map-0", "write nobody-0", "nap map-0", ""])
def test_a_perturbation_that_names_nothing(what: str) -> None:
    perturbation = Perturbation(what=what, occurrence=1, by_us=1)
    assert "names no message" in refused(encode_scenario(replace(chain(), deviations=(perturbation,))))


@pytest.mark.parametrize(
    "what",
    [
        "message map-0>count-1",
        "control ack map-0",
        "write sink-0",
        "transaction sink-1",
        "read map-0",
        "write coordinator",
    ],
)
def test_a_perturbation_that_names_something(what: str) -> None:
    scenario = replace(chain(), deviations=(Perturbation(what=what, occurrence=1, by_us=1),))
    assert decode_scenario(encode_scenario(scenario)) == scenario


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file") as caught:
        files.read_scenario(tmp_path / "none.json")
    assert caught.value.exit_code is ExitCode.USAGE


def test_an_older_format_is_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_draft(fields: Fields) -> Fields:
        name = fields.pop("title")
        return {**fields, "format": "cutproof-scenario/1", "name": name}

    monkeypatch.setitem(files.MIGRATIONS, "cutproof-scenario/0", from_draft)
    old = altered(lambda fields: fields.update(format="cutproof-scenario/0", title=fields.pop("name")))
    assert decode_scenario(old) == chain()


def test_a_migration_that_leads_nowhere_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(files.MIGRATIONS, "cutproof-scenario/0", lambda fields: fields)
    assert "cannot be converted to" in refused(altered(lambda fields: fields.update(format="cutproof-scenario/0")))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    files.write_scenario(path, chain())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_scenario(path, Scenario(workload=chain().workload, topology=chain().topology))
    assert os.listdir(tmp_path) == ["a.json"]
    assert files.read_scenario(path) == chain()
