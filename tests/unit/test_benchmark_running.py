"""How a cell is measured: in an empty folder, by one state of the code, and with a row that says which."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from components.errors import InputError
from components.files import write_json
from tests.benchmarks import running
from tests.benchmarks.measured_code import Code
from tests.benchmarks.results import Results
from tests.benchmarks.running import measure_section
from tests.benchmarks.section import PREPARED, Row, Rows, Scale, Section
from tests.benchmarks.sections import SECTIONS
from tests.benchmarks.work import STAMP, Work

Cell = Callable[[str, Path], object]
"""What the process of a cell does: given its name and its folder, it returns its exit code, or None for a row."""


class Two(Section):
    title = "Two cells"

    def cells(self, scale: Scale) -> Sequence[str]:
        return ["a", "b"]

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        raise NotImplementedError

    def figures(self, rows: Rows) -> dict[str, str]:
        return {}


class Resuming(Two):
    resumes = True


class Bench:
    """A section that is measured, call after call, by whatever is given as the process of a cell."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.folder, self.section = tmp_path / "a.json", tmp_path / "work", Two()
        self.code, self.cell = Code("abc", "1"), leaves()
        self.logs: list[Path] = []
        (tmp_path / "logs").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "logs"))
        monkeypatch.setattr(running, "run_to_end", self._process)
        monkeypatch.setattr(Code, "now", lambda: self.code)

    def _process(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path, limit: float) -> int | str:
        self.logs.append(log)
        code = self.cell(command[5], self.folder)
        log.write_text("its last words")
        if code is None:
            write_json(self.folder / "cell.json", {"value": 1})
        return 0 if code is None else code  # type: ignore[return-value]

    def measure(self) -> Results:
        return measure_section("a", self.section, "full", self.path, self.folder)

    def fails(self, cell: Cell) -> str:
        """A call that is ended by this cell; what it says."""
        before, self.cell = self.cell, cell
        with pytest.raises(InputError) as error:
            self.measure()
        self.cell = before
        return str(error.value)


def leaves(*names: str) -> Cell:
    """A cell that finds none of these in its folder, and leaves them there."""

    def cell(name: str, folder: Path) -> None:
        for left in names:
            (folder / left).mkdir()

    return cell


def dies(*names: str) -> Cell:
    return lambda name, folder: leaves(*names)(name, folder) or 1


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


# Whose row it is


def test_a_row_is_of_the_code_at_the_beginning_of_its_cell(bench):
    def cell(name: str, folder: Path) -> None:
        if name == "a":
            bench.code = Code("def", "2")

    bench.cell = cell
    assert {name: row["commit"] for name, row in bench.measure().rows.items()} == {"a": "abc+", "b": "def"}


def test_a_cell_that_fails_ends_the_call_with_its_last_words_and_its_log_stays(bench):
    said = bench.fails(lambda name, folder: 1 if name == "b" else None)
    of_a, of_b = bench.logs
    assert "b: 1\n  its last words" in said and str(of_b) in said
    assert of_b.exists() and not of_a.exists()
    assert list(Results.read(bench.path).rows) == ["a"]


def test_a_cell_without_a_row_has_failed(bench):
    assert "a: 0" in bench.fails(lambda name, folder: 0)


# Its folder


def test_every_cell_finds_its_folder_empty_but_for_what_is_prepared(bench):
    seen = {}

    def cell(name: str, folder: Path) -> None:
        seen[name] = {path.name for path in folder.iterdir()} - {STAMP}
        (folder / PREPARED).mkdir(exist_ok=True)
        (folder / "own").mkdir()
        (folder / "link").symlink_to(folder / "own")

    bench.cell = cell
    bench.measure()
    assert seen == {"a": set(), "b": {PREPARED}}


def test_a_cell_that_was_ended_is_measured_again_in_an_empty_folder(bench):
    bench.cell = leaves("own")
    bench.fails(dies("own"))
    assert len(bench.measure().rows) == 2


def test_a_cell_that_resumes_finds_what_it_left_and_its_seconds_are_added_up(bench, monkeypatch):
    clock = iter([0.0, 100.0, 1000.0, 1007.0, 2000.0, 2001.0])
    monkeypatch.setattr(running.time, "monotonic", lambda: next(clock))
    bench.section = Resuming()
    bench.fails(dies("own"))
    found = []
    bench.cell = lambda name, folder: found.append((name, (folder / "own").exists()))  # type: ignore[func-returns-value]
    rows = bench.measure().rows
    assert found == [("a", True), ("b", True)]
    assert [row["took_s"] for row in rows.values()] == [107.0, 1.0]


@pytest.mark.parametrize("what", ["code", "versions", "machine"])
def test_nothing_is_used_that_other_code_packages_or_machines_left(bench, monkeypatch, capsys, what):
    bench.section = Resuming()
    bench.fails(dies(PREPARED, "own"))
    if what == "code":
        bench.code = Code("def", "2")
    else:
        monkeypatch.setattr(f"tests.benchmarks.work.{what}", lambda: {"other": "1"})
    bench.cell = lambda name, folder: leaves(PREPARED, "own")(name, folder) if name == "a" else None
    bench.measure()
    assert f"is emptied: it was of another {what} (commit abc)" in capsys.readouterr().out


def test_another_commit_of_the_same_code_goes_on(bench):
    bench.section = Resuming()
    bench.fails(dies("own"))
    bench.code = Code("def", "1")
    bench.cell = lambda name, folder: None if (folder / "own").exists() else 1
    assert bench.measure().rows["a"]["commit"] == "def"


@pytest.mark.parametrize("thrown_away", [True, False], ids=["thrown away", "measured whole"])
def test_a_new_measurement_uses_nothing_of_an_earlier_one(bench, capsys, thrown_away):
    bench.section = Resuming()
    if thrown_away:
        bench.fails(dies("own"))
        Work(bench.folder, "full").ended()
    else:
        bench.cell = lambda name, folder: (folder / "own").mkdir(exist_ok=True)
        bench.measure()
        bench.path.unlink()
    seen: list[bool] = []
    bench.cell = lambda name, folder: seen.append((folder / "own").exists())  # type: ignore[func-returns-value]
    bench.measure()
    assert seen == [False, False]
    assert "emptied" not in capsys.readouterr().out


def test_a_folder_of_somebody_else_is_not_emptied(bench):
    (bench.folder / "thesis").mkdir(parents=True)
    with pytest.raises(InputError, match="no measurement has made it"):
        bench.measure()
    assert (bench.folder / "thesis").exists()


def test_sections_that_resume_are_those_that_say_so():
    assert [name for name, section in SECTIONS.items() if section.resumes] == ["health"]
