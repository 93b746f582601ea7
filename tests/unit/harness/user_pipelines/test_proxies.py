"""A pipeline behind a proxy: its connections are broken, stalled and delayed, and only what they felt counts."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import (
    AnyFault,
    AtAim,
    CutChannel,
    DelayChannel,
    KillNode,
    LimitChannel,
    ResetChannel,
    SliceChannel,
    StallChannel,
    TimeoutChannel,
    kind_of,
)
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, ServiceMissing, UsageError
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.scenario.files import read_scenario, write_scenario
from cutproof.harness.shrink.shrink import shrink
from cutproof.harness.subject.run import Result
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.description import BREAKING, LOSSLESS, Proxy
from cutproof.harness.user_pipelines.places import free_ports
from cutproof.harness.user_pipelines.processes.keeper import Keeper
from cutproof.harness.user_pipelines.proxying import proxies
from cutproof.harness.user_pipelines.proxying.connections import CLOSE_WAIT, ESTABLISHED, TIME_WAIT, Socket
from cutproof.harness.user_pipelines.proxying.disturbance import Disturbance
from cutproof.harness.user_pipelines.proxying.flow import Flow
from cutproof.harness.user_pipelines.proxying.proxies import Proxies
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.harness.user_pipelines.trial import tried
from cutproof.properties.model.history import AttemptStarted, FaultFired
from cutproof.properties.model.verdict import Holds, Unknown, Violated

COPIER = Path(__file__).with_name("copier.py")
FILE = """
format = "cutproof-pipeline/1"
name = "copier"

[proxies.input]
listen = "{port2}"
upstream = "{port1}"
for_ms = [50, 100]

[run]
start = ["{python}", "COPIER", "{port2}", "{state}/copier.db", "careful"]
ends = false
timeout_s = 3
settle_s = 0.2
restart_after_ms = 20

[feed]
to = "socket"
port = "{port1}"
records_per_file = 2
every_ms = 20

[read]
format = "sqlite"
path = "{state}/copier.db"
query = "SELECT * FROM rows"
every_ms = 20

[restored]
log = "^continues behind"
"""
WITHIN_S = 10.0
FIRST, SECOND, THIRD, FOURTH = (AtAim(aim="halfway", occurrence=number) for number in (1, 2, 3, 4))

pytestmark = pytest.mark.usefixtures("toxiproxy_server")


def subject(folder: Path, how: str = "careful") -> PipelineSubject:
    path = folder / "copier.toml"
    path.write_text(FILE.replace("COPIER", str(COPIER)).replace("careful", how))
    return PipelineSubject(path)


def ran(one: PipelineSubject, *faults: AnyFault, records: int = 40) -> Result:
    return run_on(one, replace(one.without_faults(records), faults=faults))


def fired(result: Result) -> list[str]:
    return sorted(entry.kind for entry in result.history.journal if isinstance(entry, FaultFired))


def restored(result: Result) -> list[bool]:
    starts = [entry for entry in result.history.journal if isinstance(entry, AttemptStarted)]
    return [start.restores is not None for start in starts]


def test_connections_that_break_are_made_again_and_that_is_exercised(tmp_path: Path) -> None:
    faults = (
        CutChannel(trigger=FIRST, sender="client", receiver="input", for_us=60_000),
        ResetChannel(trigger=SECOND, sender="client", receiver="input", for_us=60_000),
        LimitChannel(trigger=THIRD, sender="input", receiver="client", bytes=10),
        TimeoutChannel(trigger=FOURTH, sender="input", receiver="client", after_us=60_000),
    )
    result = ran(subject(tmp_path), *faults, records=140)
    assert fired(result) == sorted(BREAKING)
    assert restored(result) == [False, True, True, True, True]
    assert result.judgement.verdicts["exactly-once"] == Holds(exercised=4)
    assert isinstance(result.judgement.verdicts["progress"], Holds)


def test_bytes_that_only_come_later_exercise_nothing(tmp_path: Path) -> None:
    faults = (
        DelayChannel(trigger=FIRST, sender="input", receiver="client", by_us=20_000, for_us=60_000),
        SliceChannel(trigger=FIRST, sender="input", receiver="client", size=10, for_us=60_000),
        StallChannel(trigger=SECOND, sender="input", receiver="client", for_us=60_000),
    )
    result = ran(subject(tmp_path), *faults, records=80)
    assert fired(result) == sorted(LOSSLESS)
    assert len(result.history.committed) == 80
    assert isinstance(result.judgement.verdicts["exactly-once"], Unknown)


def test_a_fault_that_no_connection_felt_did_not_apply(tmp_path: Path) -> None:
    """The client sends nothing, and a limit waits for bytes."""
    result = ran(subject(tmp_path), LimitChannel(trigger=FIRST, sender="client", receiver="input", bytes=0))
    assert fired(result) == []
    assert result.history.unapplied == ["limit-channel, halfway (no connection felt it)"]


def test_rows_that_are_stored_again_for_a_new_connection_are_seen(tmp_path: Path) -> None:
    cut = CutChannel(trigger=FIRST, sender="client", receiver="input")
    found = ran(subject(tmp_path, "repeating"), cut).judgement.verdicts["exactly-once"]
    assert isinstance(found, Violated)
    assert found.difference == "repeated row"


def test_a_process_that_ends_since_its_connection_broke_is_started_again(tmp_path: Path) -> None:
    cut = CutChannel(trigger=FIRST, sender="client", receiver="input", for_us=60_000)
    result = ran(subject(tmp_path, "failing"), cut)
    assert isinstance(result.judgement.verdicts["progress"], Holds)
    assert result.judgement.verdicts["exactly-once"] == Holds(exercised=1)
    causes = [entry.cause for entry in result.history.journal if isinstance(entry, AttemptStarted)]
    assert causes == ["", "it ended with exit code 1, since its connections were disturbed"]


def test_starts_that_end_since_the_break_is_still_in_force_are_one_attempt_to_go_on(tmp_path: Path) -> None:
    cut = CutChannel(trigger=FIRST, sender="client", receiver="input", for_us=400_000)
    result = ran(subject(tmp_path, "failing"), cut)
    started = [entry for entry in result.history.timeline if entry.what == "process-started"]
    assert len(started) > 2
    assert [entry.restores for entry in result.history.journal if isinstance(entry, AttemptStarted)] == [None, 1]
    assert result.judgement.verdicts["exactly-once"] == Holds(exercised=1)


def test_a_stall_that_is_felt_after_a_restart_shows_nothing_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is restored then is what the kill took."""
    one = subject(tmp_path)
    run = one.new_run(one.without_faults(10))
    try:
        fault = StallChannel(trigger=FIRST, sender="client", receiver="input", for_us=1)
        flow = Flow(LISTEN, UPSTREAM, towards_upstream=True)
        stall = Disturbance(0, fault, flow, aim="", work="", recovery=run._attempts.recovery_by(), now=0.0)
        monkeypatch.setattr(run.proxies, "watch", lambda now: [stall])
        run._strikes.watch_proxies(1.0)
        assert run._attempts.interrupted is not None
        run.proxies._begun.append(stall)
        run._start("it was killed")
        run._strikes.watch_proxies(2.0)
        assert run._attempts.interrupted is None
    finally:
        run.close()


def test_the_first_fault_of_a_scenario_is_one_that_has_to_be_noticed(tmp_path: Path) -> None:
    drawn = [subject(tmp_path).draw(3, index, max_records=60, max_faults=3).faults for index in range(120)]
    assert {kind_of(faults[0]) for faults in drawn} == {"kill-node", *BREAKING}
    assert {kind_of(fault) for faults in drawn for fault in faults} == {"kill-node", *BREAKING, *LOSSLESS}


def test_a_scenario_is_kept_in_a_file_and_its_faults_get_fewer_and_shorter(tmp_path: Path) -> None:
    cut = CutChannel(trigger=FIRST, sender="client", receiver="input", for_us=1_000_000)
    delay = DelayChannel(trigger=FIRST, sender="input", receiver="client", by_us=20_000, for_us=60_000)
    kill = KillNode(trigger=FIRST, node=3)  # a pipeline may have more processes than an engine has nodes
    scenario = replace(subject(tmp_path).without_faults(4), faults=(delay, kill, cut))
    write_scenario(tmp_path / "kept.json", scenario)
    assert read_scenario(tmp_path / "kept.json") == scenario
    shrunk = shrink(scenario, lambda one: any(isinstance(fault, CutChannel) for fault in one.faults)).scenario
    (left,) = shrunk.faults
    assert isinstance(left, CutChannel)
    assert left.for_us < 20_000


def test_without_a_server_there_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTPROOF_TOXIPROXY", str(tmp_path / "nowhere"))
    with pytest.raises(ServiceMissing, match="cutproof doctor --install toxiproxy") as caught:
        subject(tmp_path).prepare(Silent())
    assert caught.value.exit_code == ExitCode.HARNESS_FAILED


def test_a_server_that_another_program_has_used_is_killed_and_the_run_not_judged() -> None:
    keeper, places = Keeper(), free_ports(("port1", "port2"))
    try:
        found = Proxies({"input": Proxy(listen="{port2}", upstream="{port1}")}, keeper, places)
        found.open()
        found.watch(1.0)
        words = Path(f"/proc/{found.pid}/cmdline").read_text().split("\0")
        link = HTTPConnection("127.0.0.1", int(words[words.index("-port") + 1]), timeout=5)
        link.request("POST", "/proxies/input", json.dumps({"enabled": False}))
        assert link.getresponse().status == 200
        with pytest.raises(HarnessFailed, match=f"'input' from 127.0.0.1:{places['port2']}"):
            found.watch(2.0)
        link.close()
    finally:
        keeper.close()


def test_the_servers_own_port_is_none_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, drawn = Keeper(), iter(("10001", "10009", "10010"))
    monkeypatch.setattr(proxies, "free_ports", lambda names: {"control": next(drawn)})
    try:
        one = Proxies({}, keeper, {"port1": "10001", "port9": "10009", "run": "10010"})
        assert one._host.free_port() == 10_010
    finally:
        keeper.close()


def test_no_server_and_no_port_is_left_when_the_harness_is_killed() -> None:
    ports = free_ports(("port1", "port2"))
    program = f"""
import time
from cutproof.harness.user_pipelines.description import Proxy
from cutproof.harness.user_pipelines.processes.keeper import Keeper
from cutproof.harness.user_pipelines.proxying.proxies import Proxies
proxies = Proxies({{"input": Proxy(listen="{{port2}}", upstream="{{port1}}")}}, Keeper(), {ports!r})
proxies.open()
print(proxies.pid, flush=True)
time.sleep(600)
"""
    harness = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    pid = int(harness.stdout.readline())
    socket.create_connection(("127.0.0.1", int(ports["port2"]))).close()
    harness.kill()
    harness.wait()
    harness.stdout.close()
    deadline = time.monotonic() + WITHIN_S
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(ports["port2"])))


def test_a_trial_says_whether_connections_come_through_a_proxy_and_are_made_again(tmp_path: Path) -> None:
    seen = {check.entry: check.seen for check in tried(subject(tmp_path))}
    assert seen["proxies.input"] == "connections came through it"
    assert seen["restored, proxies.input"] == "it was seen after a cut"


CLIENT, LISTEN, LOCAL, UPSTREAM = 40_001, 10_002, 40_002, 10_001
OWN = {1, 2}
"""the sockets of the server: one towards the client, one towards the other side"""


def ends(*, of_client: int = 0, of_upstream: int = 0, went: int = 0) -> list[Socket]:
    """A connection through the proxy, by how many bytes have come from each side, and gone to each."""
    return [
        Socket(local=LISTEN, remote=CLIENT, state=ESTABLISHED, inode=1, received=of_client, sent=went),
        Socket(local=LOCAL, remote=UPSTREAM, state=ESTABLISHED, inode=2, received=of_upstream, sent=went),
        Socket(local=LOCAL + 1, remote=UPSTREAM, state=ESTABLISHED, inode=9, received=900, sent=900),  # of another
    ]


@pytest.mark.parametrize(("towards_upstream", "came"), [(True, 7), (False, 20)])
def test_bytes_are_counted_from_when_the_fault_began_and_in_its_direction(towards_upstream: bool, came: int) -> None:
    flow = Flow(LISTEN, UPSTREAM, towards_upstream=towards_upstream)
    flow.look(ends(of_client=5, of_upstream=30, went=30), OWN)
    flow.count_from_here()
    assert (flow.bytes, flow.held, flow.connections) == (0, 0, 1)
    flow.look(ends(of_client=12, of_upstream=50, went=36), OWN)
    assert (flow.bytes, flow.held) == (came, came - 6)
    flow.look([], OWN)
    assert flow.bytes == came
    flow.look(ends(of_client=12, of_upstream=50, went=70), OWN)
    assert flow.held == 0


@pytest.mark.parametrize(
    ("left", "closed"),
    [
        ([], 1),
        ([Socket(local=LISTEN, remote=CLIENT, state=TIME_WAIT, inode=0, received=0, sent=0)], 1),
        ([Socket(local=CLIENT, remote=LISTEN, state=TIME_WAIT, inode=0, received=0, sent=0)], 0),
        ([Socket(local=UPSTREAM, remote=LOCAL, state=TIME_WAIT, inode=0, received=0, sent=0)], 0),
        ([Socket(local=LISTEN, remote=CLIENT, state=CLOSE_WAIT, inode=1, received=5, sent=0)], 0),
    ],
    ids=["reset", "by the proxy", "by the client", "by the other side", "not yet"],
)
def test_a_connection_that_its_own_ends_have_closed_was_not_broken(left: list[Socket], closed: int) -> None:
    flow = Flow(LISTEN, UPSTREAM, towards_upstream=True)
    flow.look(ends(of_client=5), OWN)
    flow.look(left, OWN)
    assert flow.closed == closed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('listen = "{port2}"', 'listen = "4000"'), "proxies.input.listen: '4000' is not the place of a port"),
        (('upstream = "{port1}"', 'upstream = "kafka:9092"'), "proxies.input.upstream: 'kafka:9092' is neither"),
        (('upstream = "{port1}"', 'upstream = "{port2}"'), "proxies.input.upstream: it is the port on which the proxy"),
        (("for_ms = [50, 100]", "for_ms = [0]"), "proxies.input.for_ms: a fault lasts from 1 to 60000 ms"),
        (
            ("for_ms = [50, 100]", 'faults = ["cut"]'),
            "proxies.input.faults: 'cut' is none of cut-channel, reset-channel",
        ),
        (("[proxies.input]", "[proxies.client]"), "proxies.client: this is the name of the other end of a connection"),
        (
            ('port = "{port1}"', 'port = "{port2}"'),
            "feed.port: {port2} is the port of proxies.input; what cutproof uses",
        ),
        (
            ('"{port2}", "{state}', '"{port3}", "{state}'),
            "proxies.input.listen: no command has {port2}, so nothing goes",
        ),
        (("ends = false", "ends = true"), "with run.ends the input ends when its connection does, which cut-channel"),
        (
            ("for_ms = [50, 100]", 'faults = ["delay-channel"]\n[proxies.input.busy]\nlog = "("'),
            "proxies.input.busy.log is no regular expression",
        ),
    ],
)
def test_proxies_that_cannot_be_used_are_refused_in_one_line(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "copier.toml"
    assert change[0] in FILE
    path.write_text(FILE.replace(*change))
    with pytest.raises(UsageError) as caught:
        read_pipeline(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pipeline_whose_connections_are_only_delayed_would_try_nothing(tmp_path: Path) -> None:
    path = tmp_path / "copier.toml"
    path.write_text(
        FILE.replace("ends = false", "ends = false\nkilled = false").replace(
            "for_ms =", 'faults = ["delay-channel"]\nfor_ms ='
        )
    )
    with pytest.raises(UsageError, match="nothing would be tried"):
        read_pipeline(path)
