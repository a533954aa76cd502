"""Is a manifest what the API server takes, without one: core kinds by their schemas, JobSets by that of their CRD."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
import kubernetes_validate

from tests.kubernetes.jobset_schema import SCHEMA

VERSION = "1.36"
VERSIONS = ("1.34", "1.37")
"""The oldest that JobSet 0.12 supports, and the newest that there are schemas of."""


@cache
def _jobset() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


def problems(manifest: dict[str, Any], version: str = VERSION) -> list[str]:
    """What a strict server would say; empty where it would take it."""
    if manifest.get("kind") != "JobSet":
        return _core(manifest, version)
    found = [f"{error.json_path}: {error.message}" for error in _jobset().iter_errors(manifest)]
    for replicated in manifest.get("spec", {}).get("replicatedJobs", []):
        job = {"apiVersion": "batch/v1", "kind": "Job", **replicated.get("template", {})}
        found += [f"{replicated.get('name')}: {problem}" for problem in _core(job, version)]
    return found


def _core(manifest: dict[str, Any], version: str) -> list[str]:
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{'.'.join(map(str, error.path))}: {error.message}"]
    return []
