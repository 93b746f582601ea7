"""The schedulers' files: valid by the published schemas, and run by a shell with a command that plays `cutproof`."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cutproof.harness.chaos.schedule import SCRIPT, Job, Scheduler, command, schedule
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.reports.nights.files import JUNIT, NEW, PAGE, SUMMARY

TESTS = Path(__file__).parents[3]
ODD = ("--subject", "my.engine:Engine", "--where", 'it\'s 100% $HOME "so"')


class Loader(yaml.SafeLoader):
    """As YAML 1.2 has it, and GitHub: `on` is a name."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), list("tf"))


def read(text: str) -> Any:
    return yaml.load(text, Loader)


def schema(name: str) -> Any:
    return json.loads((TESTS / "schemas" / name).read_text(encoding="utf-8"))


def job(folder: Path | str = "/srv/my job", **fields: Any) -> Job:
    return Job(**({"folder": str(folder), "program": "cutproof", "options": ODD} | fields))


@pytest.mark.parametrize(
    ("scheduler", "path", "published"),
    [
        ("github", ".github/workflows/chaos.yml", "github-workflows.json"),
        ("gitlab", ".gitlab/chaos.yml", "gitlab-ci.json"),
    ],
)
def test_the_published_schema_accepts_the_file(scheduler: Scheduler, path: str, published: str) -> None:
    found = read(schedule(scheduler, job()).files[path])
    assert list(jsonschema.Draft7Validator(schema(published)).iter_errors(found)) == []


@pytest.mark.parametrize(
    ("published", "broken"),
    [
        ("github-workflows.json", {"on": "push", "jobs": {"night": {"steps": []}}}),
        ("gitlab-ci.json", {"chaos": {"script": ["true"], "timeout": 5, "cache": {"when": "sometimes"}}}),
    ],
)
def test_the_published_schema_refuses_a_broken_one(published: str, broken: Any) -> None:
    assert not jsonschema.Draft7Validator(schema(published)).is_valid(broken)


def test_the_projects_own_workflows_are_accepted_and_the_nightly_one_is_what_init_writes() -> None:
    folder = TESTS.parent / ".github/workflows"
    files = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.yml")}
    assert sorted(files) == ["chaos.yml", "ci.yml", "long.yml"]
    for text in files.values():
        jsonschema.Draft7Validator(schema("github-workflows.json")).validate(read(text))
    assert (
        files["chaos.yml"]
        == schedule("github", Job(install="python -m pip install .")).files[".github/workflows/chaos.yml"]
    )


def test_the_units_of_systemd_can_be_read() -> None:
    files = schedule("systemd", job("/srv/100% my $job")).files
    service, timer = (configparser.ConfigParser(interpolation=None) for _ in range(2))
    for parser in (service, timer):
        parser.optionxform = str  # type: ignore[assignment,method-assign]
    service.read_string(files["cutproof-chaos.service"])
    timer.read_string(files["cutproof-chaos.timer"])
    assert service["Service"]["ExecStart"] == f'/bin/sh "/srv/100%% my $$job/{SCRIPT}"'
    assert timer["Timer"]["OnCalendar"] == "*-*-* 02:17:00"


def test_the_line_of_cron_has_five_fields_and_a_command_without_a_bare_percent_sign() -> None:
    lines = schedule("cron", job("/srv/100% my job")).files["cutproof-chaos.cron"].splitlines()
    (line,) = [line for line in lines if not line.startswith("#")]
    assert line == rf"17 2 * * * /bin/sh '/srv/100\% my job/{SCRIPT}'"


@pytest.mark.parametrize(("seconds", "text"), [(7_200, "2h"), (5_400, "90m"), (45, "45s"), (0.5, "0.5s")])
def test_a_budget_is_written_as_the_option_reads_it(seconds: float, text: str) -> None:
    assert f"--time {text} " in command(job(budget_s=seconds))


@pytest.mark.parametrize("scheduler", ["github", "gitlab", "cron", "systemd"])
def test_a_line_break_is_refused(scheduler: Scheduler) -> None:
    with pytest.raises(UsageError, match="line break"):
        schedule(scheduler, job(bank="a\nb"))


def test_an_expression_of_github_is_refused() -> None:
    with pytest.raises(UsageError, match="expression"):
        schedule("github", job(options=("--subject", "${{ secrets.X }}")))


PLAYED = """\
#!/bin/sh
printf '%s\\n' "$@" > arguments
mkdir -p out/nights
printf '%s' "$NEW" > out/nights/new.md
echo '## what to do' > out/nights/summary.md
echo 'a line of the log'
exit "$CODE"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a job, with a command that plays `cutproof` in `bin` and leaves its arguments in a file."""
    (tmp_path / "bin").mkdir()
    for name, text in (("cutproof", PLAYED), ("gh", "#!/bin/sh\nprintf '%s\\n' \"$@\" > issue\n")):
        (tmp_path / "bin" / name).write_text(text, encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def shell(text: str, folder: Path, code: int, new: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}", "CODE": str(code), "NEW": new, "HOME": "/nowhere",
        "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }  # fmt: skip
    words = ["bash", "-eo", "pipefail", "-c", text]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("scheduler", ["github", "gitlab", "cron", "systemd"])
def test_folders_with_odd_names_are_quoted(scheduler: Scheduler, folder: Path) -> None:
    odd = job(folder, out="it's out", bank="a bank")
    text = next(iter(schedule(scheduler, odd).files.values()))
    if scheduler == "github":
        text = next(step["run"] for step in read(text)["jobs"]["night"]["steps"] if step.get("name") == "Night")
    elif scheduler == "gitlab":
        text = read(text)["chaos"]["script"][1]
    assert shell(text, folder, 0).returncode == 0
    assert (folder / "it's out").is_dir()
    assert (folder / "arguments").read_text().splitlines()[1:7] == [
        "--bank", "a bank", "--time", "2h", "--out", "it's out",
    ]  # fmt: skip


CODES = [
    (0, "", 0),
    (1, "### new: exactly-once", 1),
    (1, "", 0),  # they still fail, and nothing is new
    (3, "", 3),
    (4, "", 4),
    (130, "", 130),
]


@pytest.mark.parametrize(("code", "new", "job_code"), CODES)
def test_only_what_is_new_makes_the_job_of_github_red_or_an_issue(
    folder: Path, code: int, new: str, job_code: int
) -> None:
    steps = {step.get("name"): step for step in read(schedule("github", job(folder)).files[
        ".github/workflows/chaos.yml"])["jobs"]["night"]["steps"]}  # fmt: skip
    assert shell(steps["Night"]["run"], folder, code, new).returncode == 0
    assert (folder / "output").read_text().strip() == f"code={job_code}"
    assert (folder / "arguments").read_text().splitlines() == [
        "chaos", "--bank", "cutproof-bank", "--time", "2h", "--out", "out/nights", "--quiet", *ODD,
    ]  # fmt: skip
    assert shell(steps["Summary"]["run"], folder, code).returncode == 0
    assert (folder / "summary").read_text() == "## what to do\n"
    issue = next(step for name, step in steps.items() if name and name.startswith("Open an issue"))
    assert shell(issue["run"], folder, code).returncode == 0
    assert (folder / "issue").exists() == bool(new)


@pytest.mark.parametrize(("code", "new", "job_code"), CODES)
def test_the_same_on_gitlab(folder: Path, code: int, new: str, job_code: int) -> None:
    script = read(schedule("gitlab", job(folder)).files[".gitlab/chaos.yml"])["chaos"]["script"]
    done = shell(script[1], folder, code, new)
    assert (done.returncode, "## what to do" in done.stdout) == (job_code, True)


@pytest.mark.parametrize(("code", "new", "job_code"), CODES)
def test_the_same_by_cron_which_is_silent_unless_something_is_new(
    folder: Path, code: int, new: str, job_code: int
) -> None:
    (folder / SCRIPT).write_text(schedule("cron", job(folder)).files[SCRIPT], encoding="utf-8")
    done = shell(f"cd / && /bin/sh {shlex.quote(str(folder / SCRIPT))}", folder, code, new)
    assert done.returncode == job_code
    assert ("a line of the log" in done.stdout, "## what to do" in done.stdout) == (bool(job_code), bool(job_code))


def test_a_night_of_cron_leaves_alone_the_log_of_one_that_still_runs(folder: Path) -> None:
    """Another night is started from within the first, and ends before it."""
    played = folder / "bin/cutproof"
    script = folder / SCRIPT
    script.write_text(schedule("cron", job(folder)).files[SCRIPT], encoding="utf-8")
    inner = f'[ -n "$AGAIN" ] || AGAIN=1 CODE=0 NEW= /bin/sh {shlex.quote(str(script))}'
    played.write_text(f'#!/bin/sh\necho "night $CODE begins"\n{inner}\necho "night $CODE ends"\nexit $CODE\n')
    done = shell(f"/bin/sh {shlex.quote(str(script))}", folder, 4)
    assert done.returncode == 4
    assert done.stdout.splitlines()[:2] == ["night 4 begins", "night 4 ends"]
    assert [path.name for path in (folder / "out/nights").glob("log*")] == ["log.txt"]


def test_the_steps_of_github_run_a_night(folder: Path) -> None:
    """The same steps with the real command, which asks only the quick checker."""
    program = TESTS / "end_to_end/one_judge.py"
    (folder / "bin/cutproof").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n', encoding="utf-8")
    workflow = read(
        schedule("github", Job(budget_s=1.0, options=("--workers", "1"))).files[".github/workflows/chaos.yml"]
    )
    steps = {step.get("name"): step for step in workflow["jobs"]["night"]["steps"]}
    done = shell(steps["Night"]["run"], folder, 0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "output").read_text() == "code=0\n"
    assert shell(steps["Summary"]["run"], folder, 0).returncode == 0
    assert "### The last nights" in (folder / "summary").read_text(encoding="utf-8")
    assert {path.name for path in (folder / "out/nights").iterdir()} == {PAGE, JUNIT, SUMMARY, NEW}
    assert len(list((folder / "cutproof-bank/nights").iterdir())) == 1


def test_what_an_earlier_night_found_is_not_new_tonight(folder: Path) -> None:
    (folder / "out/nights").mkdir(parents=True)
    (folder / "out/nights/new.md").write_text("### new: yesterday", encoding="utf-8")
    (folder / "bin/cutproof").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (folder / SCRIPT).write_text(schedule("cron", job(folder)).files[SCRIPT], encoding="utf-8")
    # It says that something failed, and has not written what: nobody knows whether that is new.
    assert shell(f"/bin/sh {SCRIPT}", folder, 1).returncode == 1
    assert not (folder / "out/nights/new.md").exists()
