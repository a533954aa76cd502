"""From a completion to a score. Torch-free, but for the classifier that `consistency.nli` loads in its own process.

- `base` — the `Verifier` seam
- `exact`, `numeric` — right or wrong
- `countdown` — an expression that reaches a target with given numbers
- `structure` — code skeletons: overlap of names, tree edit distance
- `consistency` — does the answer follow from the thinking?
- `worker`, `process`, `sandbox` — a verifier runs in a process of its own, with limits of time and memory
- `shaping` — what is added to the raw accuracy
- `scorer` — all of it together, for the loop

`VERIFIERS` maps ``reward.verifier.kind`` and ``reward.consistency.kind`` to a class, which takes the other settings of
that section by name.
"""

from collections.abc import Callable, Mapping
from typing import Any

from components.config.consistency import Consistency
from components.config.verifiers import Verifier as VerifierSettings
from components.rewards.base import Judgement, Verifier
from components.rewards.consistency import EmbeddedVerifier, NliVerifier
from components.rewards.countdown import CountdownVerifier
from components.rewards.exact import ExactVerifier
from components.rewards.numeric import NumericVerifier
from components.rewards.scorer import Scorer
from components.rewards.structure import StructureVerifier

VERIFIERS: dict[str, Callable[..., Verifier]] = {
    "exact": ExactVerifier,
    "numeric": NumericVerifier,
    "structure": StructureVerifier,
    "countdown": CountdownVerifier,
    "embedded": EmbeddedVerifier,
    "nli": NliVerifier,
}

HANDLED_OUTSIDE = {"kind", "sandbox", "sha256", "min_auc"}
"""Settings of a verifier's section that are not its own."""


def build_verifier(settings: VerifierSettings | Consistency, model: Mapping[str, Any] | None = None) -> Verifier:
    """The verifier that the settings name; ``model`` is what it has learned, where it is one that learns."""
    learned = {} if model is None else {"model": model}
    return VERIFIERS[settings.kind](**settings.model_dump(exclude=HANDLED_OUTSIDE), **learned)


__all__ = ["VERIFIERS", "Judgement", "Scorer", "Verifier", "build_verifier"]
