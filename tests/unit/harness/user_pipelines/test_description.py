"""A pipeline file that cannot be used is refused in one line that says what is wrong and where."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.user_pipelines.aims import Lookout
from cutproof.harness.user_pipelines.description import Aim, Read
from cutproof.harness.user_pipelines.library import SHIPPED, listed, path_of
from cutproof.harness.user_pipelines.needs import extras
from cutproof.harness.user_pipelines.output.formats import Output
from cutproof.harness.user_pipelines.places import PORTS, filled, free_ports, places_in
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.user_pipelines.subject import PipelineSubject, name_of_pipeline, pipeline_called
from unit.harness.user_pipelines.toys import FILE, toy

REFUSED = {
    "format": (("cutproof-pipeline/1", "cutproof-pipeline/9"), "has the format 'cutproof-pipeline/9'"),
    "field": (("settle_s", "settles"), "unknown field `settles`"),
    "command": (('start = ["{python}", "TOY"', 'start = "toy'), "not a pipeline file"),
    "place": (("{state}/toy.db", "{states}/toy.db"), "run.start: {states} is none of {input}"),
    "feed": (("records_per_file", 'format = "xml"\nrecords_per_file'), "feed.format: 'xml' is none of json-lines, csv"),
    "read": (('format = "sqlite"', 'format = "sqlit"'), "read.format: 'sqlit' is none of"),
    "near": (('format = "sqlite"', 'format = "sqlit"'), "sqlite"),
    "query": (('query = "SELECT key, n AS value', 'dsn = "SELECT key, n AS value'), "read.query is missing; sqlite"),
    "spare": (("every_ms = 30", 'dsn = "x"\nevery_ms = 30'), "read.dsn does not go with sqlite"),
    "feed to": (
        ("[feed]", '[feed]\nto = "kafak"'),
        "feed.to: 'kafak' is none of files, kafka, socket, table; did you mean",
    ),
    "feed needs": (("[feed]", '[feed]\nto = "kafka"'), "feed.servers is missing; kafka needs it"),
    "feed spare": (("[feed]", '[feed]\nport = "{port1}"'), "feed.port does not go with files"),
    "feed csv": (
        ("[feed]", '[feed]\nto = "socket"\nport = "1"\nformat = "csv"'),
        "feed.format does not go with socket",
    ),
    "port": (("[run]", '[run]\nport = "{port1} "'), "run.port: '{port1} ' is neither the place of a port"),
    "port of two": (
        ("[feed]", '[roles.a]\nport = "1"\nstart = ["x"]\n[roles.b]\nport = "1"\nstart = ["x"]\n[feed]'),
        "roles.b.port: it is that of roles.a already",
    ),
    "port of a spare": (("[run]", '[run]\nport = "{port1}"\nspare = true'), "run.port does not go with spare"),
    "feed place": (("[feed]", '[feed]\nto = "socket"\nport = "{port}"'), "feed.port: {port} is none of"),
    "last record": (("[feed]", "[feed]\nlast_record = { time = 9 }"), "feed.last_record.time: a record has key, value"),
    "last record of sql": (
        ('steps = [{ kind = "count" }]', 'sql = "SELECT key, value, tag FROM input"\n[feed.last_record]\ntag = 2000'),
        "feed.last_record does not go with sql",
    ),
    "last record without a window": (
        ("[feed]", "[feed]\nlast_record = { tag = 2000 }"),
        "feed.last_record goes with a window of event time in computes.steps",
    ),
    "last record amid others": (
        (
            'steps = [{ kind = "count" }]',
            'steps = [{ kind = "tumbling", size = 10 }]\ntime = "value"\ndelay = 5\n[feed.last_record]\nvalue = 114',
        ),
        "feed.last_record.value: it has to be 115 at least",
    ),
    "time": (
        ('steps = [{ kind = "count" }]', 'steps = [{ kind = "tumbling", size = 10 }]\ntime = "tug"'),
        "computes.time: 'tug' is none of value, tag",
    ),
    "read catalog": (("every_ms = 30", 'catalog = "x"\nevery_ms = 30'), "read.catalog does not go with sqlite"),
    "read needs": (('format = "sqlite"', 'format = "kafka"'), "read.servers is missing; kafka needs it"),
    "read spare": (("every_ms = 30", 'command = ["rows"]\nevery_ms = 30'), "read.command does not go with sqlite"),
    "column": (("every_ms = 30", 'columns = { kee = "k" }'), "read.columns.kee: a row has key, value, tag, tag2"),
    "aim": (('database = "{state}', 'log = "x"\ndatabase = "{state}'), "aims.a-file-is-done: it takes one of"),
    "database": (('database = "{state}/toy.db"\n', ""), "aims.a-file-is-done.database is missing"),
    "pattern": (('log = "^restored"', 'log = "("'), "restored.log is no regular expression"),
    "reserved": (("[aims.a-file-is-done]", "[aims.halfway]"), "aims.halfway: every pipeline has an aim of this name"),
    "operator": (('kind = "count"', 'kind = "cont"'), "cont"),
    "order": (('kind = "count"', 'kind = "rules"'), "computes"),
    "empty": (
        ('start = ["{python}", "TOY", "{input}", "{state}/toy.db", "careful"]', "start = []"),
        "run.start is empty",
    ),
    "role of its own": (("[feed]", '[roles.pipeline]\nstart = ["x"]\n[feed]'), "roles.pipeline: this is the name"),
    "role of commands": (
        ("[feed]", '[roles.commands]\nstart = ["x"]\n[feed]'),
        "roles.commands: the commands of a job",
    ),
    "role elsewhere": (("[feed]", '[roles."../a"]\nstart = ["x"]\n[feed]'), "roles.../a: a name has letters, digits"),
    "role of nothing": (("[feed]", '[roles.""]\nstart = ["x"]\n[feed]'), "roles.: a name has letters, digits"),
    "venv": (('["{python}"', '["{venv}/bin/python"'), "run.start: {venv} is not there, since needs.python is empty"),
    "jars": (
        ("[feed]", '[needs]\npython = ["x"]\n[roles.a]\nstart = ["x", "{jars}/*"]\n[feed]'),
        "roles.a.start: {jars} is not there, since needs.jars is empty",
    ),
    "java": (
        ("ends = false", 'ends = false\nenvironment = { JAVA_HOME = "{java_home}" }'),
        "run.environment.JAVA_HOME: {java_home} is not there, since needs.java is empty",
    ),
    "keys": (('name = "toy"', 'name = "toy"\nkeys = 0'), "keys: it is 0; it has to be a number from 1 to 1,000,000"),
    "values": (('name = "toy"', 'name = "toy"\nvalues = -1'), "values: it is -1; it has to be a number from 0 to"),
    "for ever": (("timeout_s = 5", "timeout_s = inf"), "run.timeout_s: it is inf; it has to be a number from 0.1 to"),
    "no number": (("settle_s = 0.4", "settle_s = nan"), "run.settle_s: it is nan; it has to be a number from 0 to"),
    "no pause": (("ends = false", "ends = false\npaused_for_ms = []"), "run.paused_for_ms is empty"),
    "pause": (("ends = false", "ends = false\npaused_for_ms = [9, 0]"), "run.paused_for_ms: it is 0; it has to be"),
    "no records": (("records_per_file = 8", "records_per_file = 0"), "feed.records_per_file: it is 0; it has to be"),
    "delay": (("[computes]", "[computes]\ndelay = -1"), "computes.delay: it is -1; it has to be a number from 0 to"),
    "ready": (
        ("[feed]", '[roles.a]\nstart = ["x"]\nready_within_s = -1\n[feed]'),
        "roles.a.ready_within_s: it is -1.0; it has to be a number from 0.1 to 86,400",
    ),
    "columns of one name": (
        ("[feed]", '[feed]\ncolumns = { key = "a", value = "a" }'),
        "feed.columns: key and value have the name 'a'; give each column a name of its own",
    ),
    "column named like another": (
        ("every_ms = 30", 'columns = { key = "value" }'),
        "read.columns: key and value have the name 'value'",
    ),
    "variable": (
        ("ends = false", 'ends = false\nenvironment = { "A=B" = "x" }'),
        "run.environment: 'A=B' is no name of a variable",
    ),
    "no text": (('"careful"]', '"a\\u0000b"]'), "run.start: a text cannot have a NUL character"),
    "leaks of nothing": (("[computes]", "[leaks]\n[computes]"), "leaks: it takes files, or query and database"),
    "leaks of no database": (("[computes]", '[leaks]\nquery = "SELECT 1"\n[computes]'), "leaks.database is missing"),
    "leaks elsewhere": (
        ("[computes]", '[leaks]\nfiles = ["{tmp}/*"]\n[computes]'),
        "leaks.files: {tmp} is none of {input}",
    ),
    "promise": (("[computes]", '[promises]\nguarantee = "once"\n[computes]'), "promises.guarantee: 'once' is none of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_with_a_file_is_said_in_one_line(name: str, tmp_path: Path) -> None:
    (old, new), said = REFUSED[name]
    text = FILE
    assert old in text
    path = tmp_path / "pipeline.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_pipeline(path)
    assert said.lower() in str(raised.value).lower()
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_what_is_no_place_stays_as_it_is_and_two_braces_stand_for_one() -> None:
    text = "${HOME} [0-9]{3} {{input}} {input}"
    assert filled(text, {"input": "/i", "HOME": "no"}) == "${HOME} [0-9]{3} {input} /i"
    assert places_in(text) == ["input"]


def test_a_folder_in_a_pattern_of_files_is_no_pattern_and_a_parameter_may_be_one(tmp_path: Path) -> None:
    (folder := tmp_path / "x[1]").mkdir()
    (folder / "a.jsonl").write_text('{"key": 1, "value": 2, "tag": 3}')
    places = {"output": str(folder), "names": "*.jsonl"}
    read = Read(format="json-lines", path="{output}/{names}")
    assert Output(read, places).rows() == [(1, 2, 3, 0)]
    assert Lookout(Aim(files="{output}/{names}"), places).sees(str)


def test_a_file_that_is_not_there_or_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no pipeline file"):
        read_pipeline(tmp_path / "nothing.toml")
    (tmp_path / "broken.toml").write_text("[run")
    with pytest.raises(UsageError, match=r"broken\.toml"):
        read_pipeline(tmp_path / "broken.toml")


def test_a_file_that_can_be_used_yields_its_workload(tmp_path: Path) -> None:
    pipeline = read_pipeline(toy(tmp_path))
    workload, topology = pipeline.workload(((1, 2, 3),))
    assert [node.name for node in workload.nodes] == ["count1"]
    assert topology.parallelism == {"input": 1, "count1": 1, "sink": 1}


def test_places_are_filled_in_and_other_braces_stay() -> None:
    assert filled("{input}/*.json {x}", {"input": "/a"}) == "/a/*.json {x}"


def test_ports_are_free_distinct_and_none_that_an_outgoing_connection_gets() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 10_001))
        found = [int(port) for _ in range(50) for port in free_ports(PORTS).values()]
    assert len(set(free_ports(PORTS).values())) == len(PORTS)
    assert 10_000 <= min(found) <= max(found) < 32_768
    assert 10_001 not in found


def test_the_pipelines_of_the_package_can_be_read_and_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert {one.name for one in listed()} == set(SHIPPED)
    fetches = {one.name: one.fetches for one in listed()}
    assert fetches["spark-foreachbatch-append"] == ()
    assert "org.apache.kafka:kafka_2.13:3.9.1" in fetches["kafka-transactions"]
    for name, one in SHIPPED.items():
        assert read_pipeline(one.path).name == name


def test_a_file_whose_client_is_not_installed_is_refused_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = '[feed]\nto = "kafka"\nservers = "127.0.0.1:{port1}"\n'
    one = PipelineSubject(toy(tmp_path, ("[feed]\n", feed)))
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"confluent_kafka is not installed.*'cutproof\[kafka\]'"):
        one.check()


def test_a_name_that_is_misspelt_has_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'bytewax-count'"):
        path_of("bytewax-cont")


def test_a_subject_may_name_a_pipeline_of_the_package_and_a_path_may_have_a_question_mark(tmp_path: Path) -> None:
    assert (
        pipeline_called("pipeline:spark-foreachbatch-append").pipeline.path
        == SHIPPED["spark-foreachbatch-append"].path.resolve()
    )
    folder = tmp_path / "a?b=c"
    folder.mkdir()
    name = f"pipeline:{toy(folder)}"
    assert pipeline_called(name).name == name


def test_a_variable_that_is_not_set_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_SET_URL", raising=False)
    path = toy(tmp_path, ('database = "{state}/toy.db"', 'database = "$NOT_SET_URL"'))
    with pytest.raises(
        UsageError, match=r"aims\.a-file-is-done\.database: the environment .* no variable \$NOT_SET_URL"
    ):
        pipeline_called(f"pipeline:{path}").check()


def test_a_program_is_looked_for_where_its_command_will_find_it(tmp_path: Path) -> None:
    (folder := tmp_path / "bin").mkdir()
    (folder / "only-here").write_text("#!/bin/sh\n")
    (folder / "only-here").chmod(0o755)
    start = ('start = ["{python}"', 'start = ["only-here"')
    with pytest.raises(UsageError, match=r"there is no program 'only-here'; run\.start starts it"):
        PipelineSubject(toy(tmp_path, start)).check()
    there = ("ends = false", 'ends = false\nenvironment = { PATH = "{pipeline}/bin" }')
    PipelineSubject(toy(tmp_path, start, there)).check()


def test_a_program_in_the_current_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is run in another folder."""
    (tmp_path / "here").write_text("#!/bin/sh\n")
    (tmp_path / "here").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"run\.start: '\./here' is looked for in the run's own folder"):
        PipelineSubject(toy(tmp_path, ('start = ["{python}"', 'start = ["./here"'))).check()


def test_a_pipeline_of_the_package_is_a_subject_by_its_own_name() -> None:
    path = SHIPPED["bytewax-count"].path
    name = name_of_pipeline(path, {"a": "1"})
    assert name == "pipeline:bytewax-count?a=1"
    assert name_of_pipeline(path.with_name("other.toml"), {}) == f"pipeline:{path.with_name('other.toml')}"
