"""How far sampler and learner may be apart: by their number formats, and by the first steps of the run."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import torch

from components.config import Settings
from components.config.rollout import TorchEngine
from components.config.servers import VllmEngine
from components.device import computes_in

FIRST = 4
"""Number of earlier steps that define what is usual."""
ROUNDING = 1e-9
"""Nats a token (k3) that rounding in single precision makes at most."""
TIMES, LEAST = 20.0, 1e-4
"""A gap is unusual from so many times the usual one on, and never below the second, nats a token (k3)."""
FORMATS: Mapping[str, float] = {
    "float32": 1e-3,
    "float16": 1e-3,
    "bfloat16": 1e-2,
    "fp8_e4m3": 0.15,
    "fp8_e5m2": 0.15,
    "int8": 0.15,
    "int4": 0.7,
}
"""Nats a token (k3) that a number format explains at most where it lasts for several steps. float32: NeMo RL's rule of
thumb; the others: three times the largest that lasted for five steps on SmolLM2-135M-Instruct (docs/sampler-gap.md)."""


def explained(settings: Settings, device: torch.device) -> float:
    """Nats a token (k3) that the coarsest number format of sampler and learner explains, on the policy's device."""
    learner = str(computes_in(settings.learner.compute_dtype, device)).removeprefix("torch.")
    return max(FORMATS.get(name, 0.0) for name in (learner, *_sampled_in(settings, device)))


def _sampled_in(settings: Settings, device: torch.device) -> tuple[str, ...]:
    """The number formats of the sampler: of its weights, and of a server's cache."""
    engine, own = settings.rollout.engine, settings.policy.dtype
    if isinstance(engine, TorchEngine):
        half = computes_in("auto", device) == torch.bfloat16
        named = {"policy": own, "auto": "bfloat16" if half else own}
        return (named.get(engine.precision, engine.precision),)
    weights = own if engine.dtype == "policy" else engine.dtype
    return (weights, engine.kv_cache_dtype) if isinstance(engine, VllmEngine) else (weights,)


class UsualGap:
    """``mismatch_k3`` of the first steps, and ``explained``: what the number formats explain (nats a token)."""

    def __init__(self, explained: float = FORMATS["float32"]) -> None:
        self._explained = explained
        self._first: list[float] = []

    def observe(self, signals: Mapping[str, float]) -> dict[str, float]:
        """Of a step that has measured the gap: ``mismatch_explained``, and once the first steps are over
        ``mismatch_times``, the gap as a multiple of what is usual at most."""
        gap = signals.get("mismatch_k3")
        if gap is None:
            return {}
        found = {"mismatch_explained": self._explained}
        if len(self._first) < FIRST:
            self._first.append(gap)
            return found
        return found | {"mismatch_times": gap / self.limit}

    @property
    def exact(self) -> bool:
        """Whether sampler and learner compute the same log-probabilities, but for rounding."""
        return bool(self._first) and max(self._first) < ROUNDING

    @property
    def limit(self) -> float:
        """Nats a token (k3) that are usual at most."""
        return max(LEAST, TIMES * fmean(self._first)) if self._first else LEAST

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"first": list(self._first)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._first = list(map(float, state["first"]))
