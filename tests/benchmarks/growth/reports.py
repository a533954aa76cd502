"""The outputs of a run and its report: the page with all plots, and a warning every so many steps."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.logs import EVERY, ledger, written
from tests.benchmarks.growth.measures import cpu_s, peak
from tests.benchmarks.section import Row


def measure(size: int, folder: Path) -> Row:
    from components.files import read_jsonl
    from components.report import load_run, render
    from components.stages.train import curves
    from tests.unit import report_fixture as fixture

    layout = fixture.start(folder / f"report-{size}")
    fixture.evaluation(layout)
    verdicts = [fixture.verdict("zero_variance", "warn", step) for step in range(EVERY - 1, size, EVERY)]
    fixture.train(layout, size, verdicts, ledger=ledger(size))
    settings, pages = fixture.settings(), []
    with peak() as memory:
        loaded = cpu_s(lambda: pages.append(load_run(settings, layout)))
        drawn = cpu_s(lambda: pages.append(render(pages.pop())))
    source = written(size, folder)
    outputs = cpu_s(lambda: curves(list(read_jsonl(source))))
    return {
        "load_s": loaded,
        "page_s": drawn,
        "page_kb": len(pages[0].encode()) / 1e3,
        "page_mb": memory.mb,
        "curves_s": outputs,
    }


CURVE = Curve(
    "steps", "report", (10**2, 10**3, 10**4, 10**5), 100, measure,
    (
        Cost("load_s", "run read"),
        Cost("page_s", "page with its plots"),
        Cost("page_kb", "the page"),
        Cost("page_mb", "peak memory"),
        Cost("curves_s", "log read, curves as CSV"),
    ),
)  # fmt: skip
