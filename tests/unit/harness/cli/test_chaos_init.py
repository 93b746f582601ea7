from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutproof.harness.cli.entry import main, verb_parser
from cutproof.harness.cli.schedules import job_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("scheduler", "files"),
    [
        ("github", [".github/workflows/chaos.yml"]),
        ("gitlab", [".gitlab/chaos.yml"]),
        ("cron", ["cutproof-chaos.sh", "cutproof-chaos.cron"]),
        ("systemd", ["cutproof-chaos.sh", "cutproof-chaos.service", "cutproof-chaos.timer"]),
    ],
)
def test_it_writes_the_files_and_says_what_remains(
    scheduler: str, files: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--time", "90m", "--subject", "processes", "--known-failures", "known.toml"]
    assert main(["chaos", "init", scheduler, "--json", *words]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["files"] == files
    assert done["then"]
    assert "--time 90m --out out/nights --quiet --subject processes --known-failures known.toml" in (
        folder / files[0]
    ).read_text(encoding="utf-8")


def test_every_option_of_a_night_is_passed_on() -> None:
    values = {
        "subject": "processes",
        "pipeline": "bytewax-count",
        "defect": "A01",
        "function": "my.functions:ADD",
        "workload": "orders.toml",
        "known-failures": "known.toml",
        "profile": "smoke",
        "workers": "2",
        "master": "yarn",
    }
    own = {"bank", "out", "time", "seed"}
    assert set(values) == set(verb_parser("chaos").options) - own - {"help", "json", "quiet", "verbose"}
    words = [word for name, value in values.items() for word in (f"--{name}", value)]
    job = job_of("cron", verb_parser("chaos").parse_args(["init", "cron", *words]))
    assert sorted(zip(job.options[::2], job.options[1::2], strict=True)) == sorted(
        (f"--{name}", value) for name, value in values.items()
    )


def test_a_file_that_is_there_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cutproof-chaos.cron").write_text("mine", encoding="utf-8")
    assert main(["chaos", "init", "cron"]) == 2
    assert capsys.readouterr().err == "cutproof: cutproof-chaos.cron is there already; remove it first, or keep it\n"
    assert [path.name for path in folder.iterdir()] == ["cutproof-chaos.cron"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["jenkins"], "chaos init does not know the scheduler 'jenkins'; known are: github, gitlab, cron, systemd"),
        (["githup"], "chaos init does not know the scheduler 'githup'; did you mean 'github'?"),
        ([], "chaos init takes one scheduler: github, gitlab, cron, systemd"),
        (["cron", "systemd"], "chaos init takes one scheduler: github, gitlab, cron, systemd"),
        (["github", "--seed", "1"], "a seed is given, but each night of a schedule draws its own; leave out --seed"),
        (["gitlab", "--bank", "/srv/bank"],
         "/srv/bank is not in the repository; name a folder relative to it with --bank"),
        (["github", "--out", "../x"], "../x is not in the repository; name a folder relative to it with --out"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(words: list[str], line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "init", *words]) == 2
    assert capsys.readouterr().err == f"cutproof: {line}\n"
    assert list(folder.iterdir()) == []
