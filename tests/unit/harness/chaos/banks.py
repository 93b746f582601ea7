"""Banks for tests: their failures and nights, and what lies in their folders."""

from __future__ import annotations

import datetime
import hashlib
from pathlib import Path

from cutproof.harness.chaos.records import INDEX, LOCK, Unshrunk
from cutproof.harness.search.outcome import ScenarioOutcome
from cutproof.properties.model.verdict import Violated
from cutproof.reports.model import ScenarioCounts
from cutproof.reports.nights.model import Failure, Night, Origin, Replay, Status, SubjectNight
from unit.harness.scenarios import chain

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


def failure(name: str = "one", *, day: int = 0, subject: str = "simulated") -> Failure:
    found = hashlib.sha256(name.encode()).hexdigest()[:12]
    return Failure(
        id=found,
        subject=subject,
        invariant="exactly-once",
        difference="lost row",
        point="ack-sent",
        shape="keyed, aligned",
        found=NOON + datetime.timedelta(days=day),
        night="20260301-120000-abcdef",
        version="1",
        origin=Origin(seed=1, index=2),
        scenario=f"failures/{found}/scenario.json",
        shrunk=True,
    )


def night(name: str = "a", *, day: int = 0, scenarios: int = 0, ended: bool = True, **replays: Status) -> Night:
    """A night; `replays` are statuses by the names of failures."""
    began = NOON + datetime.timedelta(days=day)
    return Night(
        id=f"{began:%Y%m%d-%H%M%S}-{name}",
        order=int(began.timestamp() * 1000),
        began=began,
        ended=began if ended else None,
        subjects=[SubjectNight(subject="simulated", scenarios=ScenarioCounts(run=scenarios), hits={"x": scenarios})],
        replays=[Replay(failure=failure(one).id, status=status, runs=1) for one, status in replays.items()],
    )


def unshrunk(of: Night, index: int = 7) -> Unshrunk:
    violated = Violated(message="lost", difference="lost row")
    return Unshrunk(
        night=of.id,
        subject="simulated",
        found=NOON,
        origin=Origin(seed=1, index=index),
        outcome=ScenarioOutcome(index=index, scenario=chain(), verdicts={"exactly-once": violated}),
    )


def files_in(bank: Path) -> dict[str, bytes]:
    """All files of a bank by name, but for its lock and its index."""
    return {
        str(path.relative_to(bank)): path.read_bytes()
        for path in sorted(bank.rglob("*"))
        if path.is_file() and path.name not in (LOCK, INDEX)
    }
