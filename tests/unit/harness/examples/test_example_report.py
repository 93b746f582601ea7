"""The page of a document's example: claims, verdicts, and for the examples of finishing what each way costs."""

from __future__ import annotations

import html
import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cutproof.harness.cli import main
from cutproof.harness.examples import EXAMPLES, Shown
from cutproof.harness.examples.example_report import KEPT, REPORT, Measured, view_of
from cutproof.harness.examples.finishing.figures import OF_FINISHING
from cutproof.harness.examples.report import keep_report
from cutproof.harness.examples.run import ExampleRun, run_any
from cutproof.harness.examples.trials import Trials
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.search import oracle
from cutproof.properties.model.verdict import Holds, Reason, Unknown, Violated
from cutproof.reports.example_report import render_example
from unit.harness.subjects import Agreeing

DOCUMENTED = Path(__file__).parents[4] / "docs" / "protocol.md"


def page_of(name: str, folder: Path) -> str:
    trials = Trials(SimulatedSubject())
    done = run_any(EXAMPLES[name], trials, Agreeing())
    keep_report(folder, done, trials, replay=f"cutproof verify --workload {name}")
    return (folder / REPORT).read_text(encoding="utf-8")


def text_of(page: str) -> str:
    """What a reader reads, in one line."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page.partition("</style>")[2])).split())


def rows_of(page: str, caption: str) -> dict[str, list[str]]:
    """By first cell, the others of the table whose caption begins so."""
    (table,) = (one for one in re.findall("<table.*?</table>", page, flags=re.DOTALL) if f"<span>{caption}" in one)
    rows = [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", table)]
    return {html.unescape(row[0]): [html.unescape(cell) for cell in row[1:]] for row in rows}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of("three-2pc-chain", tmp_path_factory.mktemp("chain"))


def test_every_claim_stands_with_what_was_found_and_every_verdict_below(chain: str) -> None:
    text = text_of(chain)
    example = EXAMPLES["three-2pc-chain"]
    assert f"{len(example.claims)} of {len(example.claims)} claims of {example.document} showed" in text
    assert all(f"“{claim.text}” yes" in text for claim in example.claims)
    assert "together 3800 µs, one by one 14800 µs" in text
    assert "exactly-once ✓ holds exercised 1 time" in text
    assert "drain ? unknown not exercised" in text
    assert "What ran: source (100 records in 1 split, 1 task)" in text
    assert "cutproof verify --workload three-2pc-chain" in text
    assert "http" not in chain.replace("http-equiv", "")


def test_one_final_checkpoint_compared_with_three_and_none(chain: str) -> None:
    rows = rows_of(chain, "A chain of three two-phase commits")
    assert {way: cells[1] for way, cells in rows.items()} == {
        "way": "checkpoints",
        "together (FIN-3)": "1",
        "one-by-one (FIN-3)": "3",
        "commit-at-finish (FIN-9)": "0",
        "discard-at-finish (FIN-9)": "0",
    }
    assert rows["one-by-one (FIN-3)"] == ["“three more checkpoints”", "3", "14.8 ms", "100", "0", "0", "nothing"]
    assert rows["discard-at-finish (FIN-9)"][-3:] == ["25", "0", "exactly-once, no-data-loss"]


def test_what_is_rejected_loses_rows_or_shows_them_twice(chain: str) -> None:
    rows = rows_of(chain, "The rejected ways")
    assert rows["together (FIN-3), a failure"] == ["130", "0", "0", "nothing"]
    assert rows["commit-at-finish (FIN-9), a failure"] == ["130", "0", "5", "exactly-once, visibility"]
    assert rows["commit-at-finish (FIN-9), no failure"][:3] == ["130", "0", "0"]
    assert rows["discard-at-finish (FIN-9), no failure"][:3] == ["130", "80", "0"]


def test_the_cost_of_no_checkpoint_after_a_finish_is_what_the_documents_say(chain: str) -> None:
    cost = re.findall(r"^\| (\d+ ms) \| (\d+) \| (\d+) \|$", DOCUMENTED.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(cost) == 3
    rows = rows_of(chain, "The cost of no checkpoints after a finish (FIN-7)")
    assert {at: tuple(cells[:2]) for at, cells in rows.items() if at.endswith("ms")} == {
        at: (own, other) for at, own, other in cost
    }
    assert rows["28 ms"][2:] == ["180", "180", "40"]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if "FLIP-47" not in EXAMPLES[name].document])
def test_only_what_is_about_finishing_has_these_figures(name: str, tmp_path: Path) -> None:
    page = page_of(name, tmp_path)
    about_finishing = "FLIP-147" in EXAMPLES[name].document and name != "count-streaming-batch"
    assert page.count("<caption>") == (3 if about_finishing else 0) + bool(EXAMPLES[name].variants)
    assert page.count("<figure>") == (2 if about_finishing else 0)
    assert (name in OF_FINISHING) is about_finishing


EXAMPLE_RUN = ExampleRun(
    name="it",
    about="what it is",
    document="the text",
    subject="simulated",
    outcome="held",
    verdicts={"exactly-once": Holds(exercised=3), "drain": Unknown(reason=Reason.NOT_EXERCISED)},
    claims=[Shown(text="it grows", shown=True, evidence="by 3")],
)
NOT_SHOWN = [*EXAMPLE_RUN.claims, Shown(text="it ends", shown=False, evidence="it goes on")]
LOST = {"exactly-once": Violated(difference="lost row", message="a row is missing"), "drain": Holds(exercised=1)}


@pytest.mark.parametrize(
    ("example_run", "sign", "words"),
    [
        (EXAMPLE_RUN, "✓", "1 of 1 claims of the text showed"),
        (replace(EXAMPLE_RUN, claims=NOT_SHOWN), "?", "“it ends” NO it goes on"),
        (replace(EXAMPLE_RUN, verdicts=LOST), "✗", "exactly-once ✗ violated lost row: a row is missing"),
        (replace(EXAMPLE_RUN, disagreements=["one more row"]), "✗", "The two judges disagree. one more row"),
    ],
)
def test_the_head_states_what_came_of_it(example_run: ExampleRun, sign: str, words: str) -> None:
    text = text_of(render_example(view_of(example_run, Measured(times="Times are made up"))))
    assert f"{sign} it What it is." in text
    assert words in text
    assert "Times are made up; everything shown comes from a run." in text


def test_it_runs_by_name_and_states_where_its_page_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(oracle, "PySpark", Agreeing)
    assert main(["verify", "--workload", "stateless-parse"]) == ExitCode.HELD
    (kept,) = (tmp_path / "out").iterdir()
    assert kept.name.endswith("-stateless-parse")
    assert capsys.readouterr().out.endswith(f"report: out/{kept.name}/report.html\n")
    assert {path.name for path in kept.iterdir()} == {REPORT, KEPT, "scenario.json", "history.json"}
    example_run = msgspec.json.decode((kept / KEPT).read_bytes(), type=ExampleRun)
    assert [claim.shown for claim in example_run.claims] == [True] * len(EXAMPLES["stateless-parse"].claims)
    assert "cutproof verify --workload stateless-parse" in text_of((kept / REPORT).read_text(encoding="utf-8"))
