"""A champion in the registry of models of a real MLflow server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from components.sinks.champion import Champion
from tests.code_graph import ROOT

pytestmark = [pytest.mark.sinks, pytest.mark.timeout(900)]


def register(uri: str, champion: Champion) -> str:
    """As a promotion does it."""
    command = [sys.executable, "-m", "components.sinks.champion"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": uri}
    text = json.dumps(asdict(champion))
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout


def test_each_champion_is_a_version_and_the_newest_has_the_alias_also_after_a_roll_back(mlflow_server: str) -> None:
    from mlflow import MlflowClient

    first = Champion("arithmetic", "a" * 64, {"evidence": "e" * 64, "by": "Ada"})
    second = Champion("arithmetic", "b" * 64, {"evidence": "f" * 64, "by": "Ada"})
    client = MlflowClient(mlflow_server)
    assert [register(mlflow_server, one) for one in (first, first, second)] == ["1", "1", "2"]
    found = client.get_model_version_by_alias("arithmetic", "champion")
    assert (found.version, found.tags["evenkeel.digest"], found.tags["evenkeel.evidence"]) == ("2", "b" * 64, "f" * 64)
    back = Champion("arithmetic", "a" * 64, {"evidence": "e" * 64, "by": "Bo"})
    assert register(mlflow_server, back) == "1"
    found = client.get_model_version_by_alias("arithmetic", "champion")
    assert (found.tags["evenkeel.by"], found.source) == ("Bo", f"evenkeel:/sha256/{'a' * 64}")
