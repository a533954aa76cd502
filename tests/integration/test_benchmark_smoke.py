"""Every section of the benchmarks runs, small, from its cells to its figures."""

from __future__ import annotations

import pytest

from components.errors import InputError
from components.processes.environments import vllm_python
from tests.benchmarks.results import Results
from tests.benchmarks.running import measure_section
from tests.benchmarks.section import Row, Section
from tests.benchmarks.sections import SECTIONS

pytestmark = pytest.mark.integration


@pytest.mark.slow
@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_is_measured_and_makes_its_figures(name, tmp_path):
    if name == "hand_over":
        try:
            vllm_python(None)
        except InputError as error:
            pytest.skip(f"no environment with vLLM (make vllm-env): {error}")
    path, section = tmp_path / f"{name}.json", SECTIONS[name]
    results = measure_section(name, section, "smoke", path, tmp_path / "work")
    assert list(results.rows) == list(section.cells("smoke"))
    assert all({"date", "commit", "took_s"} <= row.keys() for row in results.rows.values())
    figures = section.figures(Results.read(path).rows)
    assert figures and all(isinstance(text, str) and text for text in figures.values())


def test_what_is_measured_is_not_measured_again(tmp_path, monkeypatch):
    asked: list[str] = []
    monkeypatch.setattr("tests.benchmarks.running._in_a_process", lambda _n, _s, cell, *_: note(asked, cell))
    path, section = tmp_path / "growth.json", SECTIONS["growth"]
    monkeypatch.setattr(section, "cells", lambda _: ["one"], raising=False)
    measure_section("growth", section, "smoke", path, tmp_path / "work")
    monkeypatch.setattr(section, "cells", lambda _: ["one", "two"], raising=False)
    results = measure_section("growth", section, "smoke", path, tmp_path / "work")
    assert asked == ["one", "two"] == list(results.rows)


def note(asked: list[str], cell: str) -> Row:
    asked.append(cell)
    return {"took_s": 1.0}


class Broken(Section):
    title = "An unknown cell"

    def cells(self, scale: str) -> list[str]:
        return ["no such cell"]

    def measure(self, cell, scale, folder) -> Row:
        raise NotImplementedError

    def figures(self, rows) -> dict[str, str]:
        return {}


@pytest.mark.slow
def test_a_cell_that_fails_says_what_it_printed(tmp_path):
    with pytest.raises(InputError, match="there is no cell 'no such cell'"):
        measure_section("gpu", Broken(), "smoke", tmp_path / "gpu.json", tmp_path / "work")
