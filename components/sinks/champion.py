"""``python -m components.sinks.champion``: registers a champion in MLflow's registry of models, on the server of
MLFLOW_TRACKING_URI. Reads `Champion` as JSON from standard input; writes what it did to standard output.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from components.sinks.mlflow import client_of

ALIAS = "champion"


@dataclass(frozen=True)
class Champion:
    """``model`` is the registered model's name, ``tags`` say where the checkpoint comes from and who decided."""

    model: str
    digest: str
    tags: dict[str, str]


def register(champion: Champion, client: Any) -> str:
    """Make it a version of the model, unless it is one, and give that version the alias; returns the version.

    The weights stay in Evenkeel's registry: the version's source names them by digest.
    """
    from mlflow.exceptions import MlflowException

    try:
        client.get_registered_model(champion.model)
    except MlflowException:
        client.create_registered_model(champion.model)
    versions = client.search_model_versions(f"name = '{champion.model}'")
    same = [one for one in versions if one.tags.get("evenkeel.digest") == champion.digest]
    tags = {"evenkeel.digest": champion.digest, **{f"evenkeel.{name}": text for name, text in champion.tags.items()}}
    source = f"evenkeel:/sha256/{champion.digest}"
    made = same[0] if same else client.create_model_version(champion.model, source, tags=tags)
    for name, text in tags.items() if same else ():
        client.set_model_version_tag(champion.model, made.version, name, text)
    client.set_registered_model_alias(champion.model, ALIAS, made.version)
    return str(made.version)


if __name__ == "__main__":
    wanted, out = Champion(**json.load(sys.stdin)), os.dup(1)
    os.dup2(2, 1)  # what MLflow prints is for standard error
    os.write(out, register(wanted, client_of(None)).encode())
