"""A manifest as text, for people and for `kubectl apply`."""

from __future__ import annotations

from typing import Any

import yaml


class _Plain(yaml.SafeDumper):
    """Repeats what occurs twice instead of pointing at it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(manifest: dict[str, Any]) -> str:
    """One YAML document."""
    return yaml.dump(manifest, Dumper=_Plain, sort_keys=False, width=120)
