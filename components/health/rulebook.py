"""A file of health rules, typed and compiled, and whether rules are sound: checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from components.config.judgement import HealthSettings, RuleSettings
from components.config.reading import read_rules
from components.config.shipped import PROJECT_CONFIGS
from components.errors import InputError
from components.health.monitor import Monitor
from components.health.responses.knobs import check_action

DEFAULT_RULES = PROJECT_CONFIGS / "health" / "default.yaml"
"""For our own runs."""
LOG_RULES = PROJECT_CONFIGS / "health" / "logs.yaml"
"""For the logs of other trainers."""


def load_rules(path: Path = DEFAULT_RULES) -> dict[str, RuleSettings]:
    """The rules of a file, in its order, each known to compile.

    Raises:
        InputError: the file is missing or malformed, it holds no rule, or a rule is wrong; names rule and key.
    """
    tree = read_rules(path)
    try:
        rules = HealthSettings.model_validate({"rules": tree}).rules
    except ValidationError as error:
        said = "\n".join(f"  - {_say(problem)}" for problem in error.errors())
        raise InputError(f"not health rules:\n{said}", where=path, how="correct the rules above") from error
    if not rules:
        raise InputError("a health file without a rule", where=path, how="write one under `rules:`")
    try:
        check_rules(rules)
    except InputError as error:
        raise InputError(error.what, where=f"{path}, {error.where}", how=error.how) from error
    return rules


def check_rules(rules: Mapping[str, RuleSettings]) -> None:
    """Raise an `InputError` for the first malformed rule or impossible action."""
    Monitor(rules)
    for name, rule in rules.items():
        for action in rule.action:
            check_action(action, name)


def _say(problem: Any) -> str:
    keys = [str(part) for part in problem["loc"][1:]]
    if problem["type"] == "extra_forbidden":
        near = get_close_matches(keys[-1], RuleSettings.model_fields, n=1)
        return f"{'.'.join(keys)}: unknown key{f'; did you mean {near[0]}?' if near else ''}"
    return f"{'.'.join(keys)}: {problem['msg']}"
