"""What a prepared checkpoint comes from, as a name: a folder that is used again holds it only for the same origin."""

from __future__ import annotations

from collections.abc import Sequence

from components.config import Settings
from components.files import dump_json, sha256_bytes, sha256_file
from tests.benchmarks.machine import machine, versions
from tests.code_graph import modules


def origin(settings: Settings, stages: Sequence[str]) -> str:
    """Twelve digits of all that makes what the stages write: settings, code, packages, the machine."""
    parts = {
        "settings": settings.model_dump(mode="json"),
        "stages": list(stages),
        "code": {name: sha256_file(path) for name, path in modules("components").items()},
        "packages": versions(),
        "machine": machine(),
    }
    return sha256_bytes(dump_json(parts).encode())[:12]
