"""Settings that differ from their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.config import Settings

_UNSET = object()


@dataclass(frozen=True)
class Difference:
    """``default`` is None where the default configuration has no such setting."""

    key: str
    value: str
    default: str | None


def differences(settings: Settings) -> list[Difference]:
    """Every setting that is not at its default, in the order of the configuration.

    Health rules are left out: they come from a file of their own and the page lists them all.
    """
    defaults = _leaves(Settings().model_dump(mode="json"))
    found = []
    for key, value in _leaves(settings.model_dump(mode="json")).items():
        default = defaults.get(key, _UNSET)
        if value != default and not key.startswith("health.rules."):
            found.append(Difference(key, _show(value), None if default is _UNSET else _show(default)))
    return found


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            flat |= _leaves(value, f"{key}.")
        else:
            flat[key] = value
    return flat


def _show(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(_show(item) for item in value)
    return str(value)
