"""The strict schema of JobSets, derived from their CRD: ``python -m tests.kubernetes.jobset_schema CRD.yaml OUT.json``.

A server drops fields that it does not know; a schema without them says so. What a job's template may hold is left out:
that is `batch/v1`, which kubernetes-validate knows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

VERSION = "v1alpha2"
SCHEMA = Path(__file__).parent / "schemas" / "jobset-v1alpha2.json"
KEPT = (
    "type",
    "required",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "format",
)


def derive(crd: dict[str, Any], release: str) -> dict[str, Any]:
    """The schema of the version that is served, every object closed."""
    version = next(one for one in crd["spec"]["versions"] if one["name"] == VERSION and one["served"])
    schema = version["schema"]["openAPIV3Schema"]
    found = strict({**schema, "properties": {k: v for k, v in schema["properties"].items() if k != "status"}})
    found["properties"]["metadata"] = {"type": "object"}
    found["required"] = ["apiVersion", "kind", "metadata", "spec"]
    return {
        "$comment": f"Derived from the CRD of JobSet {release} (Apache-2.0) by tests/kubernetes/jobset_schema.py",
        **found,
    }


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """The same without prose and without anything that is not named."""
    found = {key: schema[key] for key in KEPT if key in schema}
    if "properties" in schema:
        found["properties"] = {name: strict(one) for name, one in schema["properties"].items()}
        found["additionalProperties"] = False
        if {"completions", "parallelism"} <= schema["properties"].keys():  # a Job's specification
            return {"type": "object"}
    elif isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = strict(schema["additionalProperties"])
    if "items" in schema:
        found["items"] = strict(schema["items"])
    return found


def main(source: str, out: str, release: str) -> None:
    crd = yaml.safe_load(Path(source).read_text("utf-8"))
    Path(out).write_text(json.dumps(derive(crd, release), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
