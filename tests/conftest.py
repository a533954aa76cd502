"""Shared by every test: one thread, no network, nobody's personal settings."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("evenkeel", deadline=None)  # how busy the machine is, is no property of the code
settings.load_profile("evenkeel")

# Before anything imports torch.
os.environ.update(
    {
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "DVC_NO_ANALYTICS": "1",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "GIT_AUTHOR_NAME": "test",
        "GIT_AUTHOR_EMAIL": "test@localhost",
        "GIT_COMMITTER_NAME": "test",
        "GIT_COMMITTER_EMAIL": "test@localhost",
        "COLUMNS": "120",
    }
)


@pytest.fixture(autouse=True, scope="session")
def _private_prefect(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One database for all runs of a session, made by the first of them; Prefect reads this when it is imported."""
    os.environ["PREFECT_HOME"] = str(tmp_path_factory.mktemp("prefect"))


@pytest.fixture(autouse=True)
def _no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the caller that would change what is tested."""
    for name in ("EVENKEEL_DEBUG", "EVENKEEL_PROGRESS", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)
