"""The files with which a scheduler runs the nightly job: GitHub, GitLab, cron or systemd.

Each of them runs one night.  The job is red only for what nobody knows of yet: failures that are new, again or expired,
a night that fell short, or a harness that failed.  Failures of earlier nights that still fail do not make it red, since
nobody reads a job that is always red.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Literal

import msgspec

from ...reports.nights.files import JUNIT, NEW, PAGE, SUMMARY
from ..runtime.exit_codes import ExitCode, UsageError

Scheduler = Literal["github", "gitlab", "cron", "systemd"]

MARGIN_S = 30 * 60
"""what a job may take besides its budget: the installation, the scenario under way, the files"""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler has to run."""

    bank: str = "cutproof-bank"
    """its folder, relative to that of the job"""
    out: str = "out/nights"
    """the folder of the page of the nights, relative to that of the job"""
    budget_s: float = 2 * 3_600.0
    hour: int = 2
    minute: int = 17
    """the time of day, in the scheduler's time zone: UTC on GitHub"""
    options: tuple[str, ...] = ()
    """further options of `cutproof chaos`, such as `--subject`"""
    folder: str = ""
    """for cron and systemd: the job's folder, absolute"""
    program: str = "cutproof"
    """the command; absolute for cron and systemd, which have another PATH"""
    install: str = "python -m pip install cutproof"
    """for GitHub and GitLab: the command that installs it"""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The files to write, and what remains to be done by hand."""

    files: dict[str, str]
    """by path, relative to the job's folder"""
    then: tuple[str, ...]
    """each in one sentence, or a command"""


def schedule(scheduler: Scheduler, job: Job) -> Schedule:
    """The files of a scheduler; raises UsageError for a text that its file cannot hold."""
    for text in (job.bank, job.out, job.folder, job.program, job.install, *job.options):
        if any(ord(character) < 0x20 for character in text):
            raise UsageError(f"{text!r} has a line break or another control character; a schedule cannot hold it")
    return _SCHEDULERS[scheduler](job)


def command(job: Job) -> str:
    """The command of one night, for a POSIX shell."""
    words = [job.program, "chaos", "--bank", job.bank, "--time", _budget(job.budget_s), "--out", job.out, "--quiet"]
    return shlex.join([*words, *job.options])


def _budget(seconds: float) -> str:
    """As `--time` reads it."""
    for size, unit in ((3_600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:.0f}{unit}"
    return f"{seconds:g}s"


def _night(job: Job) -> str:
    """The lines of a shell that run a night.

    It leaves the night's exit code in `code`; 0 if there are failures that earlier nights have found, and nothing else.
    """
    new, summary = _in(job, NEW), _in(job, SUMMARY)
    return f"""\
mkdir -p {shlex.quote(job.out)} && rm -f {new}
code=0
{command(job)} || code=$?
# {ExitCode.VIOLATED.value} means that there are failures. {NEW} is empty if earlier nights have found all of them.
if [ "$code" -eq {ExitCode.VIOLATED.value} ] && [ -e {new} ] && ! [ -s {new} ]; then
  echo 'no failure is new; those that still fail:' {summary}
  code=0
fi
"""


def _in(job: Job, name: str) -> str:
    """A file of the page's folder, as a word of a shell."""
    return shlex.quote(f"{job.out}/{name}")


def _indented(text: str, by: int) -> str:
    return "\n".join(f"{' ' * by}{line}" if line else "" for line in text.rstrip("\n").splitlines())


def _quoted(text: str) -> str:
    """A text in YAML, between single quotes."""
    return "'" + text.replace("'", "''") + "'"


def _minutes(job: Job) -> int:
    return round((job.budget_s + MARGIN_S) / 60)


def _github(job: Job) -> Schedule:
    if "${{" in command(job) + job.install:
        raise UsageError("GitHub reads ${{ as the begin of an expression; leave it out of the options")
    then = [
        "Commit the file. GitHub runs a schedule only from the default branch.",
        f"If your project installs cutproof in another way than `{job.install}`, change the step Install.",
    ]
    if _minutes(job) > 360:
        then.append("GitHub's own runners end a job after 6 hours: use a runner of your own, or less --time.")
    return Schedule(files={".github/workflows/chaos.yml": _github_workflow(job)}, then=tuple(then))


def _github_workflow(job: Job) -> str:
    new, summary = _in(job, NEW), _in(job, SUMMARY)
    return f"""\
# The nightly chaos job. `cutproof chaos init github` wrote this file.
name: chaos

on:
  schedule:
    - cron: '{job.minute} {job.hour} * * *'
  workflow_dispatch: {{}}

permissions:
  contents: read
  issues: write

# One night at a time: a second one waits.
concurrency:
  group: cutproof-chaos
  cancel-in-progress: false

jobs:
  night:
    runs-on: ubuntu-latest
    timeout-minutes: {_minutes(job)}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with:
          python-version: '3.12'
      - name: Install
        run: {_quoted(job.install)}
      # A cache is never overwritten: each night saves one of its own, and the newest is restored.
      - name: Restore the bank
        uses: actions/cache/restore@v5
        with:
          path: {_quoted(job.bank)}
          key: cutproof-bank-${{{{ github.run_id }}}}-${{{{ github.run_attempt }}}}
          restore-keys: cutproof-bank-
      - name: Night
        id: night
        run: |
{_indented(_night(job), 10)}
          echo "code=$code" >> "$GITHUB_OUTPUT"
      - name: Save the bank
        if: always()
        uses: actions/cache/save@v5
        with:
          path: {_quoted(job.bank)}
          key: cutproof-bank-${{{{ github.run_id }}}}-${{{{ github.run_attempt }}}}
      - name: Summary
        if: always()
        run: |
          if [ -e {summary} ]; then cat {summary} >> "$GITHUB_STEP_SUMMARY"; fi
      - name: Keep the page of the nights and the bank
        if: always()
        uses: actions/upload-artifact@v5
        with:
          name: nights-${{{{ github.run_attempt }}}}
          path: |
            {job.out}
            {job.bank}
          if-no-files-found: ignore
      - name: Open an issue for failures that nobody knows of yet
        if: always()
        env:
          GH_TOKEN: ${{{{ github.token }}}}
        run: |
          if [ -s {new} ]; then
            gh issue create --title "cutproof: new failures in the night of $(date -u +%F)" --body-file {new}
          fi
      - name: Exit code
        if: steps.night.outputs.code != ''
        run: exit ${{{{ steps.night.outputs.code }}}}
"""


def _gitlab(job: Job) -> Schedule:
    summary = _in(job, SUMMARY)
    text = f"""\
# The nightly chaos job. `cutproof chaos init gitlab` wrote this file.
chaos:
  image: python:3.12
  rules:
    - if: $CI_PIPELINE_SOURCE == "schedule"
  timeout: {_minutes(job)} minutes
  # One night at a time: a second one waits.
  resource_group: cutproof-chaos
  interruptible: false
  cache:
    key: cutproof-bank
    paths:
      - {_quoted(job.bank)}
    when: always
  script:
    - {_quoted(job.install)}
    - |
{_indented(_night(job), 6)}
      if [ -e {summary} ]; then cat {summary}; fi
      exit "$code"
  artifacts:
    when: always
    expire_in: 90 days
    paths:
      - {_quoted(job.out)}
      - {_quoted(job.bank)}
    reports:
      junit: {_quoted(f"{job.out}/{JUNIT}")}
"""
    return Schedule(
        files={".gitlab/chaos.yml": text},
        then=(
            "Name the file in .gitlab-ci.yml: `include: {local: .gitlab/chaos.yml}`",
            f"Make a pipeline schedule under Build > Pipeline schedules, say `{job.minute} {job.hour} * * *`.",
            f"If your project installs cutproof in another way than `{job.install}`, change the script's first line.",
        ),
    )


SCRIPT = "cutproof-chaos.sh"


def _script(job: Job, by: str) -> str:
    summary = _in(job, SUMMARY)
    return f"""\
#!/bin/sh
# One night of the chaos job. `cutproof chaos init {by}` wrote this file.
# What it prints is for people: nothing, unless somebody has to do something that nobody knows of yet.
cd {shlex.quote(job.folder)} || exit {ExitCode.HARNESS_FAILED.value}
mkdir -p {shlex.quote(job.out)} || exit {ExitCode.HARNESS_FAILED.value}
log={_in(job, "log.")}$$.txt  # its own: the night before may still run
{{
{_night(job)}}} > "$log" 2>&1
if [ "$code" -ne 0 ]; then
  cat "$log"
  if [ -e {summary} ]; then cat {summary}; fi
  echo 'the page of the nights:' {_in(job, PAGE)}
fi
mv -f "$log" {_in(job, "log.txt")}
exit "$code"
"""


def _cron(job: Job) -> Schedule:
    # cron takes an unescaped % as the end of the command.
    script = shlex.quote(f"{job.folder}/{SCRIPT}").replace("%", r"\%")
    line = f"""\
# The nightly chaos job. `cutproof chaos init cron` wrote this file. cron mails what the script prints.
{job.minute} {job.hour} * * * /bin/sh {script}
"""
    return Schedule(
        files={SCRIPT: _script(job, "cron"), "cutproof-chaos.cron": line},
        then=("(crontab -l 2>/dev/null; cat cutproof-chaos.cron) | crontab -",),
    )


def _systemd(job: Job) -> Schedule:
    service = f"""\
# The nightly chaos job. `cutproof chaos init systemd` wrote this file.
[Unit]
Description=The nightly chaos job of cutproof

[Service]
Type=oneshot
ExecStart=/bin/sh {_of_unit(f"{job.folder}/{SCRIPT}")}
TimeoutStartSec={_minutes(job)}min
Nice=10
"""
    timer = f"""\
# The nightly chaos job. `cutproof chaos init systemd` wrote this file.
[Unit]
Description=The nightly chaos job of cutproof

[Timer]
OnCalendar=*-*-* {job.hour:02}:{job.minute:02}:00
# A night that was missed because the machine was off is run when it is on again.
Persistent=true

[Install]
WantedBy=timers.target
"""
    units = "~/.config/systemd/user"
    return Schedule(
        files={
            SCRIPT: _script(job, "systemd"),
            "cutproof-chaos.service": service,
            "cutproof-chaos.timer": timer,
        },
        then=(
            f"mkdir -p {units} && cp cutproof-chaos.service cutproof-chaos.timer {units}",
            "systemctl --user daemon-reload && systemctl --user enable --now cutproof-chaos.timer",
            "loginctl enable-linger  # so that it runs while nobody is logged in",
            "journalctl --user -u cutproof-chaos  # what the last nights printed",
        ),
    )


def _of_unit(word: str) -> str:
    """A word of ExecStart, between double quotes."""
    for special, escaped in (("\\", r"\\"), ('"', r"\""), ("%", "%%"), ("$", "$$")):
        word = word.replace(special, escaped)
    return f'"{word}"'


_SCHEDULERS: dict[Scheduler, Callable[[Job], Schedule]] = {
    "github": _github,
    "gitlab": _gitlab,
    "cron": _cron,
    "systemd": _systemd,
}
