"""Strict validation against the schemas of Kubernetes' own kinds: an unknown field is an error."""

from __future__ import annotations

from functools import cache
from typing import Any

import kubernetes_validate

VERSIONS = ("1.34.0", "1.37.0")
"""The oldest that JobSet 0.12 supports, and the newest there are schemas of."""
FOREIGN = {"jobset.x-k8s.io", "kueue.x-k8s.io", "monitoring.coreos.com"}
"""API groups that are not Kubernetes' own."""


def is_core(manifest: dict[str, Any]) -> bool:
    return str(manifest["apiVersion"]).split("/")[0] not in FOREIGN


def validate(manifest: dict[str, Any], version: str = VERSIONS[-1]) -> None:
    """Raises `kubernetes_validate.ValidationError` where a field is unknown, missing or of another type."""
    kubernetes_validate.validate(manifest, version, strict=True)


@cache
def newest() -> str:
    return str(kubernetes_validate.latest_version())
