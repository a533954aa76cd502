"""Figures in pages are those of the committed result files, and a page says which command made them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from components.errors import InputError
from components.files import write_json
from tests.benchmarks.__main__ import RESULTS, figures
from tests.benchmarks.pages import filled, pages, used, without_figures
from tests.benchmarks.results import Results
from tests.benchmarks.sections import SECTIONS
from tests.benchmarks.spread import exponent, spread, table
from tests.code_graph import ROOT

PAGES = {str(path.relative_to(ROOT)): path for path in pages(ROOT)}
TIMES = r"\b(?:(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|twenty)\stimes|half|twice)"
COMPARED = r"(?:as\s(?:fast|long|slow|much|many)\b|faster|slower|longer|quicker|less|more|the\s(?:speed|memory|time))"
OWNER = r"(?:our|its|their|TRL's|Evenkeel's|transformers')"
MEASURED = re.compile(
    rf"""
    {TIMES}\s(?:{COMPARED}|{OWNER})                          # 3 times as long, half the memory, 3.3 times our time
  | \b\d[\d.,]*x\b                                        # 3.1x
  | \b\d[\d.,]*\s?%\s(?:{COMPARED}|of\s(?:a|the)\s(?:step|run|time)\b)
  | \b\d[\d.,]*\s?(?:s|ms|µs|ns|(?:tokens|rows|MB|GB|[GT]FLOPs?)(?:/s|\sa\ssecond))(?!\w)  # 17.0 s to a run
  | \b\d+\.\d+\s?(?:seconds|minutes|hours|[kMG]i?B)\b
    """,
    re.VERBOSE,
)
"""What only a measurement can know, as people write it."""
OF_THEIR_DAY = "docs/performance.md"
"""A log of experiments, some on code that is gone; every entry names the commands and commits of its figures."""


@pytest.fixture(scope="module")
def committed() -> dict[str, str]:
    """Figures of the committed result files."""
    return figures(RESULTS)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_holds_the_figures_of_the_result_files(page, committed):
    text = PAGES[page].read_text("utf-8")
    assert filled(text, committed, page) == text, "make bench-page writes them"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_with_figures_says_which_command_made_them(page):
    text = PAGES[page].read_text("utf-8")
    for section in {name.partition(".")[0] for name in used(text)}:
        commands = f"make bench SECTIONS={section}", f"make {section}", f"benchmarks.md#{section}"
        assert any(command in text for command in commands), section


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("configs/")])
def test_no_measured_figure_is_typed_by_hand(page):
    text = without_figures(PAGES[page].read_text("utf-8"))
    if page != OF_THEIR_DAY:
        assert not [found.group() for found in MEASURED.finditer(text)]


def test_every_entry_of_the_log_names_the_commands_that_made_its_figures():
    entries = re.split(r"^## ", PAGES[OF_THEIR_DAY].read_text("utf-8"), flags=re.MULTILINE)[1:]
    measured = [entry for entry in entries if MEASURED.search(entry)]
    assert measured
    for entry in measured:
        said = re.findall(r"^(?:pytest|python -m|make) .*$", entry, re.MULTILINE)
        assert said, entry.partition("\n")[0]
        for module in re.findall(r"tests[./][\w./]+", " ".join(said)):
            path = ROOT / module if "/" in module else ROOT / module.replace(".", "/")
            assert path.exists() or path.with_suffix(".py").exists(), module


@pytest.mark.parametrize(
    "said",
    ["3.1 times as long", "3.3 times our time", "17.0 s to a run", "3.1x", "three times as fast", "2 times faster",
     "half the memory", "0.5 % of a run", "12 ms", "17,383 tokens/s", "170 GFLOP/s", "1.9 GB", "20 % faster"],
)  # fmt: skip
def test_a_measured_figure_is_known_by_how_people_write_it(said):
    assert MEASURED.search(f"It takes {said}.")


@pytest.mark.parametrize("said", ["32 x 8", "95 % interval", "after 45 seconds", "three times", "one of 5 seeds"])
def test_a_setting_or_a_count_is_none(said):
    assert not MEASURED.search(f"It takes {said}.")


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_committed_results_are_whole_and_of_the_full_scale(path: Path):
    results = Results.read(path)
    assert (results.section, results.scale) == (path.stem, "full")
    assert sorted(results.rows) == sorted(SECTIONS[path.stem].cells("full"))
    assert not any(str(row["commit"]).endswith("+") for row in results.rows.values()), (
        "measured with changes that no commit has"
    )


def test_a_figure_is_written_between_its_marks_and_nothing_else_is_touched():
    text = "TRL takes <!-- bench a.ratio -->?<!-- /bench --> times as long.\n<!-- bench a.table --><!-- /bench -->\n"
    found = filled(text, {"a.ratio": "2.1", "a.table": "| x |\n| --- |"}, "page")
    assert found == (
        "TRL takes <!-- bench a.ratio -->2.1<!-- /bench --> times as long.\n"
        "<!-- bench a.table -->\n\n| x |\n| --- |\n\n<!-- /bench -->\n"
    )
    assert filled(found, {"a.ratio": "2.1", "a.table": "| x |\n| --- |"}, "page") == found


@pytest.mark.parametrize(
    ("text", "said"),
    [("<!-- bench a.b -->1", "without its other half"), ("<!-- bench a.c -->1<!-- /bench -->", "no figure 'a.c'")],
)
def test_a_mark_that_cannot_be_filled_is_an_error(text, said):
    with pytest.raises(InputError, match=said):
        filled(text, {"a.b": "1"}, "page")


def test_results_of_another_machine_are_not_mixed_with_those_of_this_one(tmp_path, capsys):
    path = tmp_path / "a.json"
    old = Results("a", "full")
    old.rows["cell"] = {"seconds": 1.0, "date": "2026-01-02T03:04:05", "commit": "abc"}
    old.write(path)
    assert Results.resumed(path, "a", "full").rows == old.rows
    write_json(path, {**vars(old), "machine": {**old.machine, "processor": "another"}})
    new = Results.resumed(path, "a", "full")
    assert not new.rows and new.machine == old.machine
    assert "processor another (here" in capsys.readouterr().out


def test_what_cannot_be_measured_here_replaces_nothing_that_was_measured_elsewhere(tmp_path):
    path = tmp_path / "gpu.json"
    Results("gpu", "full", {"gpu": "H200"}, rows={"cell": {"seconds": 1.0}}).write(path)
    Results("gpu", "full", rows={"cell": {"skipped": "no GPU"}}).write(path)
    assert Results.read(path).rows == {"cell": {"seconds": 1.0}}


def test_a_smoke_is_not_mixed_with_what_was_measured_in_full(tmp_path):
    path = tmp_path / "a.json"
    Results("a", "full").write(path)
    with pytest.raises(InputError, match="holds full results"):
        Results.resumed(path, "a", "smoke")


def test_the_source_of_a_figure_names_command_date_machine_and_versions():
    results = Results("a", "full", rows={"cell": {"date": "2026-01-02T03:04:05", "commit": "abc"}})
    said = results.source()
    assert "`make bench SECTIONS=a`, 2026-01-02" in said and "commit abc" in said and "torch" in said


def test_spreads_and_exponents():
    assert spread([3.0, 1.0, 2.0], 1, " s") == "2.0 s (1.0 to 3.0)"
    assert spread([2.0], 1) == "2.0" and spread([]) == "-"
    assert exponent([10, 100, 1000], [1, 10, 100]) == pytest.approx(1)
    assert exponent([10, 100, 1000], [1, 100, 10_000]) == pytest.approx(2)
    assert exponent([1, 10, 100, 1000], [5, 5, 50, 500], floor=5) == pytest.approx(1)
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
