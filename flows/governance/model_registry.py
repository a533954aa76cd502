"""A champion in the registries of others: a model version in MLflow, where the candidate's settings name a model.

The server is that of MLFLOW_TRACKING_URI where the decision is carried out: a candidate's settings are not trusted with
the name and password of whoever promotes it. A failure is reported and changes nothing about the decision.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from components.config import load
from components.config.sinks import MlflowSink
from components.errors import EvenkeelError
from components.layout import Layout
from components.registry import PromotionRecord, Store, champion
from components.sinks import SINKS
from components.sinks.champion import Champion

SERVER = "MLFLOW_TRACKING_URI"
SECONDS = 60.0
"""For a server that does not answer."""


def register_champion(store: Store, record: PromotionRecord) -> list[str]:
    """Register the champion that this record made, if it is the champion still; returns lines to print. Never raises
    for a registry or a server."""
    try:
        present = champion(store)
        if not record.effective or record.evidence is None or present is None or present.digest != record.digest:
            return []
        sections = load(Layout(store.tree(record.evidence)).params).sinks.values()
        models = sorted({one.model for one in sections if isinstance(one, MlflowSink) and one.model})
        return [_registered(model, record) for model in models]
    except (EvenkeelError, OSError) as error:
        return [f"the champion was not registered with MLflow: {error}"]


PASSWORD = re.compile(r"//[^/@\s]+@")
"""User and password in an address."""


def _registered(model: str, record: PromotionRecord) -> str:
    if SERVER not in os.environ:
        return f"not registered as model {model} of MLflow: {SERVER} is not set here"
    if not SINKS["mlflow"].installed:
        return f"not registered as model {model} of MLflow: the package mlflow is not installed"
    command = [sys.executable, "-m", "components.sinks.champion"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    tags = {"evidence": record.evidence or "", "record": str(record.number), "by": record.by, "at": record.at}
    tags["gate"] = str(record.gate.get("result", ""))
    try:
        done = subprocess.run(
            command,
            input=json.dumps(asdict(Champion(model, record.digest, tags))),
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not registered as model {model} of MLflow: no answer within {SECONDS:.0f} seconds"
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return f"not registered as model {model} of MLflow: {PASSWORD.sub('//', said[0])}"
    return f"registered with MLflow: model {model}, version {done.stdout.strip()}, alias champion"
