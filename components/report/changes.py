"""What is different: settings against the champion's run or against their defaults, and where each side began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.config import Settings
from components.report.run import Run, dig

UNSET = object()
"""Stands for the value of a setting that a tree does not have."""
ASIDE = ("health.rules.", "evaluation.champion", "sinks.")
"""Rules come from a file of their own and the page lists them all; the champion differs from itself by nature; sinks
are no part of a run."""

NAMED = ("health.canaries.", "evaluation.suites.")
"""Sections that a configuration names, with defaults of their own."""


@dataclass(frozen=True)
class Difference:
    """``value`` or ``other`` is None where that side has no such setting."""

    key: str
    value: str | None
    other: str | None


def differences(settings: Settings) -> list[Difference]:
    """Every setting that is not at its default, in the order of the configuration; health rules are left out."""
    found = compared(settings.model_dump(mode="json"), Settings().model_dump(mode="json"))
    own = _leaves(settings.model_dump(mode="json", exclude_defaults=True))
    return [one for one in found if one.value is not None and (one.key in own or not one.key.startswith(NAMED))]


def changed(run: Run) -> list[Difference] | None:
    """Settings that differ from those of the present champion's run; None where they are not known."""
    params = dig(run.champion, "params")
    return compared(run.settings.model_dump(mode="json"), params) if isinstance(params, Mapping) else None


def compared(mine: Mapping[str, Any], others: Mapping[str, Any]) -> list[Difference]:
    """Settings in which two trees differ, in the order of the first."""
    found = across([mine, others]).items()
    return [Difference(key, *map(shown, values)) for key, values in found if not key.startswith(ASIDE)]


def across(trees: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Settings in which some of the trees differ, by dotted path: the value in each tree, or `UNSET`."""
    every = [_leaves(tree) for tree in trees]
    keys = dict.fromkeys(key for leaves in every for key in leaves)
    found = {key: [leaves.get(key, UNSET) for leaves in every] for key in keys}
    return {key: values for key, values in found.items() if any(value != values[0] for value in values)}


def shown(value: Any) -> str | None:
    """A value as the page shows it; None for `UNSET`."""
    return None if value is UNSET else _show(value)


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
