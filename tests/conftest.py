"""Shared by every test: one thread, no network, no personal settings."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.s3_server import S3Server

settings.register_profile("evenkeel", deadline=None)  # how busy the machine is, is no property of the code
settings.load_profile("evenkeel")

gc.disable()  # until the tests are collected


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: the garbage collector does not look through them again and again."""
    gc.freeze()
    gc.enable()


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


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_disks() -> Iterator[None]:
    """The machine keeps its power while tests run; those of what happens without it put a flush of their own there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_command_line() -> Iterator[None]:
    """The runner of command lines would build every command for each call, which takes a tenth of a second; a process
    of the command line builds them once."""
    import typer.testing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def _no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the caller that would change what is tested."""
    for name in ("EVENKEEL_DEBUG", "EVENKEEL_PROGRESS", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def _s3_server() -> Iterator[S3Server]:
    from tests.s3_server import S3Server  # a second that most tests need not wait

    with S3Server().running() as server:
        yield server


@pytest.fixture
def s3_server(_s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """An S3 server, and credentials for it where boto3 looks for them."""
    from tests.s3_server import KEYS

    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    from components.registry.s3 import probe

    yield _s3_server
    if _s3_server.app.ignores:
        _s3_server.app.ignores = set()
        probe._KNOWN.clear()
