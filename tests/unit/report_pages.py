"""The pages of fabricated runs, as fixtures that a test imports."""

from __future__ import annotations

import pytest
import report_fixture as fixture

from components.layout import Layout
from components.report import load_run, render


def page(layout: Layout, *overrides: str) -> str:
    return render(load_run(fixture.settings("train.steps=60", *overrides), layout)).replace("\u00a0", " ")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page(fixture.healthy(tmp_path_factory.mktemp("healthy")))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page(fixture.stopped(tmp_path_factory.mktemp("stopped")), "triage.override=to see")
