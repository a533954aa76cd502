"""Watching, measuring, judging and proposing."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from components.config.base import Section


class RuleSettings(Section):
    """One health rule. ``when`` is an expression over signals; see `configs/health/default.yaml`."""

    when: str = Field(min_length=1, description="Condition over the current step's signals and their history.")
    streak: int = Field(1, ge=1, description="Consecutive steps on which it must hold.")
    level: Literal["warn", "stop"] = "warn"
    why: str = Field(min_length=1, description="What it means, for the person who reads the verdict.")
    source: str = Field("", description="Where the rule comes from.")


class HealthSettings(Section):
    """The monitor. ``rules`` is filled from the file named under ``rules_file`` when the configuration is loaded."""

    enabled: bool = True
    rules_file: str = Field("default", description="Name of a file in configs/health, without .yaml.")
    rules: dict[str, RuleSettings] = Field(default_factory=dict)


class EvaluationSettings(Section):
    """Stage `evaluate`: SFT checkpoint and trained policy on the same test prompts."""

    prompts: int = Field(512, ge=2, description="Test prompts at the most.")
    samples: int = Field(4, ge=2, description="Completions per prompt at the training temperature.")
    bootstrap: int = Field(2000, ge=100, description="Resamples of the prompts for the confidence interval.")


class GateSettings(Section):
    """Stage `gate`: what a checkpoint must show before a person is asked."""

    min_gain: float = Field(0.0, description="Lower end of the 95 % interval of the pass@1 gain must exceed this.")
    max_truncated: float = Field(
        0.1, ge=0, le=1, description="Share of test completions that may hit the length limit."
    )
    max_unscorable: float = Field(0.01, ge=0, le=1)


class RegistrySettings(Section):
    """Where candidates, promotion records and aliases are kept."""

    kind: Literal["directory"] = "directory"
    path: Path = Field(Path("registry"), description="Folder of the store, shared by all runs.")


class LaunchSettings(Section):
    """Where the training stage runs."""

    kind: Literal["inline"] = "inline"
