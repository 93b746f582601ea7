"""Verification as a user requests it: names, files and numbers become a campaign."""

from __future__ import annotations

import contextlib
import datetime
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...properties.model.workload import Topology, Workload
from ..counterexamples.store import RunFolder
from ..generate.coverage.target_scenarios import TARGETS
from ..generate.situations.templates import SHARES
from ..generate.strategies import Drawing
from ..runtime.exit_codes import UsageError
from ..runtime.progress import Progress
from ..shrink.on_subject import REAL_TIME_S
from ..subject.names import name_of, subject_called
from ..subject.port import Subject, closing
from ..workloads import user_functions
from ..workloads.inputs import LoadedWorkload
from ..workloads.library import find
from ..workloads.user_functions import UserFunction
from . import known_failures
from .campaign import Campaign, Verified, verify_campaign
from .oracle import Oracle
from .profiles import profile_called
from .search import Budget
from .worker import Plan

OUT = Path("out")
LATEST = "latest"
UNBOUNDED = 1_000_000
"""scenarios of a run that is bounded only by time"""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a user requests; a field that is None comes from the profile, or is drawn."""

    subject: str = "simulated"
    defect: str | None = None
    profile: str = "default"
    scenarios: int | None = None
    seconds: float | None = None
    seed: int
    workload: LoadedWorkload | None = None
    stop_at_first: bool = False
    keep_histories: bool = False
    max_faults: int | None = None
    real_time: bool = False
    """the subject's scenarios cost seconds, so another profile applies"""
    workers: int | None = None
    functions: tuple[str, ...] = ()
    """package.module:NAME of the user's own operators"""
    shrink_s: float = REAL_TIME_S
    """how long scenarios are run again for one cause, if a run costs seconds"""
    master: str | None = None
    """the master of a Spark cluster whose executors run the scenarios"""


def verify(
    subject: Subject | str = "simulated",
    workload: Workload | str | None = None,
    *,
    topology: Topology | None = None,
    scenarios: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    profile: str = "default",
    defect: str | None = None,
    max_faults: int | None = None,
    stop_at_first: bool = False,
    out: Path | str | None = None,
    known: Path | str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    oracle: Oracle | None = None,
    functions: Sequence[UserFunction | str] = (),
    master: str | None = None,
) -> Verified:
    """Draw scenarios, run them on the subject, and judge them against PySpark.

    A subject is a `Subject`, run in this process, or a name as on the command line, run in worker processes.  A
    workload is a `Workload`, a name or a workload file; without one, workloads are drawn too.  With `out` a run folder
    is written there; `known` is a file of known failures.  `functions` are the user's own operators in the workload: as
    package.module:NAME, or as objects if the subject runs in this process.
    `master` is the master of a Spark cluster whose executors run the scenarios of a subject that is given by name.
    """
    user_functions.known(functions)
    request = Request(
        subject=subject if isinstance(subject, str) else name_of(subject),
        defect=defect,
        profile=profile,
        scenarios=scenarios,
        seconds=seconds,
        seed=seed,
        workload=loaded_workload(workload, topology),
        stop_at_first=stop_at_first,
        max_faults=max_faults,
        real_time=is_in_real_time(subject, defect),
        workers=workers,
        functions=user_functions.entries_of(functions) if isinstance(subject, str) else (),
        master=master,
    )
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(RunFolder(Path(out))) if out is not None else None
        return verify_campaign(
            campaign_of(request),
            subject=None if isinstance(subject, str) else subject,
            folder=folder,
            known=known_failures.read(Path(known) if known is not None else None),
            progress=progress,
            oracle=oracle,
        )


def is_in_real_time(subject: Subject | str, defect: str | None = None) -> bool:
    """Whether a subject's scenarios cost seconds; a subject that is given by name is made, asked and closed."""
    if not isinstance(subject, str):
        return subject.capabilities.real_time
    with closing(subject_called(subject, defect)) as made:
        return made.capabilities.real_time


def loaded_workload(workload: Workload | str | None, topology: Topology | None = None) -> LoadedWorkload | None:
    """A workload by value or by name; an example is refused, since no scenarios are drawn over it."""
    if workload is None:
        return None
    if isinstance(workload, Workload):
        return LoadedWorkload(workload=workload, topology=topology)
    found = find(workload)
    if not isinstance(found, LoadedWorkload):
        raise UsageError(f"{workload} is one scenario; run it with `cutproof verify --workload {workload}`")
    return msgspec.structs.replace(found, topology=topology) if topology is not None else found


def campaign_of(request: Request) -> Campaign:
    """The campaign for a request; raises UsageError for a workload with an unknown function."""
    if request.workload is not None:
        user_functions.demand(request.workload.workload)
    from ..runtime.version import package_version

    profile = profile_called(request.profile, real_time=request.real_time)
    default = profile.scenarios if request.seconds is None else UNBOUNDED
    budget = Budget(
        scenarios=request.scenarios or default, seconds=request.seconds, stop_at_first=request.stop_at_first
    )
    return Campaign(
        plan=plan_of(request),
        budget=budget,
        profile=profile,
        version=package_version(),
        workers=request.workers,
        master=request.master,
    )


def plan_of(request: Request) -> Plan:
    """What scenarios are drawn from: the profile's sizes, and the workload if one is given."""
    profile = profile_called(request.profile, real_time=request.real_time)
    return Plan(
        subject=request.subject,
        defect=request.defect,
        drawing=Drawing(
            max_records=profile.max_records,
            max_faults=request.max_faults or profile.max_faults,
            templates=(*SHARES, *[TARGETS] * (profile.target_shares - 1)),
        ),
        loaded=request.workload,
        seed=request.seed,
        keep_histories=request.keep_histories,
        functions=request.functions,
        shrink_s=request.shrink_s,
        companions=request.subject == "simulated" and request.defect is None and request.workload is None,
    )


def drawn_seed() -> int:
    """A seed for a request without one; it is printed, so that the run can be repeated."""
    return secrets.randbelow(1 << 32)


def new_folder(what: int | str) -> Path:
    """A new folder for a run, under out/; its name has the time at which the run began, and its seed or the name of
    what ran."""
    now = datetime.datetime.now().astimezone()
    return OUT / f"{now:%Y%m%d-%H%M%S}-{what}"


def point_latest(folder: Path) -> None:
    """Make out/latest link to the folder, where links are possible."""
    link = folder.parent / LATEST
    with contextlib.suppress(OSError):
        if link.is_symlink():
            link.unlink()
        link.symlink_to(folder.name)
