"""A fake project, and `evenkeel serve` on it. Each module has its own; starting takes some twenty seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import fake_line
from tests.served.service import Service


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/served/" in item.path.as_posix():
            item.add_marker(pytest.mark.served)
            item.add_marker(pytest.mark.timeout(900))  # a busy machine takes minutes where an idle one takes seconds


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed project like this one whose stages take almost no time; `train.steps=400` takes eight seconds."""
    return fake_line.build(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def service(project: Path) -> Iterator[Service]:
    """`evenkeel serve` on the project."""
    with Service(project) as service:
        yield service
