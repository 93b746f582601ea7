"""The pages of the examples in bytes: each figure that the benchmark prints, and the curves of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from html import unescape
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from cutproof.harness.examples.example_report import KEPT, REPORT
from cutproof.harness.examples.pipelines import figures, tables
from cutproof.harness.examples.pipelines.overtaking import VICIOUS_CIRCLE
from cutproof.harness.examples.pipelines.tables import as_text, figures_of_rounds
from cutproof.harness.examples.report import keep_report
from cutproof.harness.examples.run import Done, ExampleRun, run_any
from cutproof.harness.examples.trials import Trials
from cutproof.harness.reference_engine.pipelines.crashing import Comparison, judge_comparison
from cutproof.harness.reference_engine.pipelines.measures import MINUTE, PRESSURES, SECOND, WAYS
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.reference_impl.simulated.pipelines.plan import MB
from cutproof.reports.charts.curves import Chart
from cutproof.reports.example_report import Figures
from unit.harness.examples.pipelines.measured import MEASURED, THE_DOCUMENTS
from unit.harness.subjects import Agreeing

BENCHMARK = Path(__file__).parents[5] / "benchmarks" / "spilling.py"
ARITHMETIC = ExampleRun(
    name="spilling-arithmetic", about="", document="", subject="simulated", outcome="held", verdicts={}, claims=[]
)


def _two_comparisons(reported: Callable[[str], None] = lambda _: None) -> Iterator[Comparison]:
    """Instead of all, which take the longest: in one overtaking wins, in the other alignment does."""
    written = dict.fromkeys(WAYS, 0)
    for rate, progress in ((10 * MB, {"aligned": 7, "continuous": 9}), (100 * MB, {"aligned": 9, "continuous": 7})):
        reported(f"{rate}")
        yield judge_comparison(rate, 10 * SECOND, 2 * MINUTE, {**written, **progress}, written)


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/spilling.py, which measures nothing that the page measures a second time."""
    spec = spec_from_file_location("spilling_benchmark", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for one in (module, figures):
        monkeypatch.setattr(one, "comparisons", _two_comparisons)
        for name, once in MEASURED.items():
            monkeypatch.setattr(one, name, once)
    monkeypatch.setattr(tables, "figures_of_the_document", THE_DOCUMENTS)
    monkeypatch.setattr(sys, "argv", ["spilling.py"])
    return module


def _kept(folder: Path) -> tuple[str, list[str]]:
    """The page of the arithmetic, and what was told while it was made."""
    reported: list[str] = []
    keep_report(folder, Done(run=ARITHMETIC), Trials(SimulatedSubject()), progress=reported.append)
    return (folder / REPORT).read_text(encoding="utf-8"), reported


def _tables(page: str) -> list[Figures]:
    """The tables of figures as a reader sees them."""
    found = []
    for caption, table in re.findall(
        r'<table class="plain"><caption><span>(.*?)</span></caption>(.*?)</table>', page, re.DOTALL
    ):
        head, *rows = (
            tuple(unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row))
            for row in re.findall(r"<tr>(.*?)</tr>", table)
        )
        found.append(Figures(caption=unescape(caption), head=head, rows=tuple(rows)))
    return found


def test_the_page_of_the_arithmetic_has_every_figure_that_the_benchmark_prints(
    tmp_path: Path, benchmark: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """But the circle's, which is an example of its own; captions, heads and cells, in the same order."""
    page, reported = _kept(tmp_path)
    assert reported[-2:] == [f"{10 * MB}", f"{100 * MB}"]
    benchmark.main()
    blocks = capsys.readouterr().out.strip("\n").split("\n\n")
    printed = dict(zip(blocks[::2], blocks[1::2], strict=True))
    del printed[figures_of_rounds({"aligned": []}).caption]
    shown = {table.caption: as_text(table) for table in _tables(page)}
    assert list(shown) == list(printed)
    assert shown == printed
    assert all(len(table.splitlines()) > 2 for table in shown.values())  # under its head and the rule


def test_the_page_of_the_arithmetic_draws_what_it_tables(tmp_path: Path, benchmark: ModuleType) -> None:
    page, _ = _kept(tmp_path)
    assert re.findall("<h3>(.*?)</h3>", page) == [
        "How long a checkpoint takes as a task gets slower",
        "What the store writes",
        "What the task processes",
        "Until all that a crash undid is done again",
        "What the store holds at most",
        "Who wins",
    ]
    assert "every 2 min · 10 s" in page
    assert [_drawn(page, text) for text in ("continuous", "aligned")] == ["marked", "plain-cell"]


def _drawn(page: str, text: str) -> str:
    """How the cell of the grid that says so is drawn."""
    found = re.search(rf'<rect class="([a-z-]+)"[^>]*/><text[^>]*class="cell-text"[^>]*>{text}</text>', page)
    assert found, text
    return found[1]


def test_throughput_is_drawn_where_the_store_is_too_slow(benchmark: ModuleType) -> None:
    """By second: continuously what the store writes, otherwise what the task can do."""
    _, charts = figures.measured_for(ARITHMETIC.name, lambda _: None)
    (chart,) = (one for one in charts if isinstance(one, Chart) and "processes" in one.title)
    level = {curve.name: {size for _, size in curve.points} for curve in chart.curves}
    assert level == {name: {30.0 if name == "continuous" else 100.0} for name in WAYS}
    assert all([at for at, _ in curve.points] == list(range(180)) for curve in chart.curves)


def test_each_pressure_is_what_its_name_means() -> None:
    """What comes a second, None: as much as is taken; and what the task does."""
    plans = {about: plan(WAYS["aligned"]).stages for about, plan in PRESSURES.items()}
    assert {about: (source.arrives, task.rate) for about, (source, task) in plans.items()} == {
        "20 MB/s under backpressure": (None, 20 * MB),
        "100 MB/s under backpressure": (None, 100 * MB),
        "10 MB/s come to a task that does 20: no backpressure": (10 * MB, 20 * MB),
    }


def test_a_page_is_kept_with_curves_and_figures(tmp_path: Path) -> None:
    trials = Trials(SimulatedSubject())
    done = run_any(VICIOUS_CIRCLE, trials, Agreeing())
    keep_report(tmp_path, done, trials)
    page = (tmp_path / REPORT).read_text(encoding="utf-8")
    assert page.count('class="curve"') == 2 * 5  # each curve and its sample in the legend
    assert "2,848 (none)" in page
    assert "aligned checkpoints complete later and later" in page
    assert msgspec.json.decode((tmp_path / KEPT).read_bytes(), type=ExampleRun) == done.run
