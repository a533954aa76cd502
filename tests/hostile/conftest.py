"""One server and one project for all cases, a folder for each, and a table of how they ended."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.cases import Case, End, check
from tests.hostile.ground import build_project, build_registry
from tests.hostile.runner import Server, served

FIGURES = "hostile"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_project(tmp_path_factory.mktemp("ground") / "project")


@pytest.fixture(scope="session")
def registry(project: Path, server: Server) -> Path:
    """A registry in the project: a champion, a candidate that was rejected, and one that waits for its approval."""
    return build_registry(project, server)


@pytest.fixture
def folder(project: Path) -> Iterator[Path]:
    """An empty folder of the project."""
    with tempfile.TemporaryDirectory(dir=project, prefix="case-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def hostile(server: Server, folder: Path, request: pytest.FixtureRequest) -> Callable[[Case], End]:
    """Runs a case and checks its end."""

    def run(case: Case) -> End:
        if case.needs_registry:
            request.getfixturevalue("registry")
        end = server.end_of(case, folder)
        figures = (end.code, end.seconds, end.memory)
        request.node.user_properties.append((FIGURES, (request.node.path.stem.removeprefix("test_"), *figures)))
        check(end)
        return end

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line a kind of input: cases, exit codes, the slowest, the largest."""
    found: dict[str, list[tuple[int, float, int]]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, (kind, *figures) in getattr(report, "user_properties", ()):
                if name == FIGURES and report.when == "call":
                    found.setdefault(kind, []).append(tuple(figures))
    for kind, ends in sorted(found.items()):
        codes = ", ".join(f"{code}: {sum(one[0] == code for one in ends)}" for code in sorted({one[0] for one in ends}))
        slowest, largest = max(one[1] for one in ends), max(one[2] for one in ends) / 2**20
        terminalreporter.write_line(
            f"{kind:<16} {len(ends):>5} cases  {codes}  slowest {slowest:.1f} s  most {largest:.0f} MiB"
        )
