"""From a completion to a score. Torch-free.

- `base` — the `Verifier` seam
- `exact`, `numeric` — the verifiers
- `worker`, `process`, `sandbox` — the verifier runs in a process of its own, with limits of time and memory
- `shaping` — what is added to the raw accuracy
- `scorer` — all of it together, for the loop

`VERIFIERS` maps ``reward.verifier.kind`` to its class, which takes the other settings of that section by name.
"""

from collections.abc import Callable

from components.config.reward import Verifier as VerifierSettings
from components.rewards.base import Verifier
from components.rewards.exact import ExactVerifier
from components.rewards.numeric import NumericVerifier
from components.rewards.scorer import Scorer

VERIFIERS: dict[str, Callable[..., Verifier]] = {"exact": ExactVerifier, "numeric": NumericVerifier}


def build_verifier(settings: VerifierSettings) -> Verifier:
    """The verifier that the settings name."""
    return VERIFIERS[settings.kind](**settings.model_dump(exclude={"kind"}))


__all__ = ["VERIFIERS", "Scorer", "Verifier", "build_verifier"]
