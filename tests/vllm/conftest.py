"""Real vLLM servers for tests. One takes about a minute to start, so a module shares its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.processes import vllm_python
from components.rollout.servers import ServerEngine
from tests.vllm.tiny import engine_of, tiny


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.vllm)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(autouse=True, scope="session")
def _environment() -> None:
    try:
        vllm_python(None)
    except Exception as error:
        pytest.skip(f"no environment with vLLM (make vllm-env): {error}")


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerEngine]:
    """One server of the tied policy, which its own generation_config would have sampled greedily."""
    own = tiny()
    own.model.generation_config.update(do_sample=True, top_k=1, top_p=0.1, repetition_penalty=1.5, temperature=0.1)
    with engine_of(own, tmp_path_factory.mktemp("tied")) as engine:
        yield engine


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerEngine]:
    """Two servers that are found out quickly when they are bad."""
    options = {"canary_every": 1.0, "canary_timeout": 20.0, "sync_timeout": 20.0, "restarts": 10}
    with engine_of(tiny(), tmp_path_factory.mktemp("pair"), processes=2, **options) as engine:
        yield engine
