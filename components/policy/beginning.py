"""Where training begins: a checkpoint, and what is trained of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from components.config import Settings
from components.policy.loading import load_policy
from components.policy.lora import adapted
from components.policy.outline import outline
from components.policy.policy import Policy
from components.seeds import derive


def beginning(path: Path, settings: Settings, *, apart: bool) -> tuple[Policy, Mapping[str, Tensor] | None]:
    """A checkpoint's policy, with a new adapter where the settings have one.

    Args:
        apart: its weights are returned apart from it, each read when it is used; otherwise they are its own.

    Raises:
        InputError: as `load_policy` and `adapted`.
    """
    policy, weights = outline(path, settings.policy) if apart else (load_policy(path, settings.policy), None)
    return adapted(policy, settings.policy.lora, derive(settings.seed, "lora")), weights
