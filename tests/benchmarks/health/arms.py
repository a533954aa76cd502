"""With and without responses: what differs between two runs of the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.config.judgement import RuleSettings
from components.config.reading import find_rules, read_rules
from components.files import dump_json, sha256_bytes

DEFAULT_RULES = find_rules(Path("configs/demo.yaml"), "default")


@dataclass(frozen=True)
class Arm:
    """``name`` is the folder of its runs; ``changes`` are settings over all others."""

    name: str = "plain"
    changes: dict[str, Any] = field(default_factory=dict)


PLAIN_ARM = Arm()
"""The monitor is off: nothing acts, and every rule can be replayed on what was stored."""


def rules_of(path: Path) -> dict[str, RuleSettings]:
    """The rules of one health file."""
    return {name: RuleSettings.model_validate(rule) for name, rule in read_rules(path).items()}


def arms_of(which: str, rules: Path) -> list[Arm]:
    """The arms that ``plain``, ``respond`` or ``both`` stand for."""
    respond = responding(read_rules(rules))
    return {"plain": [PLAIN_ARM], "respond": [respond], "both": [PLAIN_ARM, respond]}[which]


def responding(rules: Mapping[str, Any]) -> Arm:
    """The arm in which these rules act; its name holds their digest, so that other rules have runs of their own."""
    digest = sha256_bytes(dump_json(dict(rules)).encode())[:8]
    return Arm(f"respond-{digest}", {"health": {"enabled": True, "rules": dict(rules), "responses": {"enabled": True}}})
