"""From a completion to a score. Torch-free, but for what `pair_classifier` loads in a worker process.

- `base` — the `Verifier` seam, equality with the reference, and what stands for the rubric of an environment, which
  judges episodes (`components.environments`)
- `countdown` — an expression that reaches a target with given numbers
- `numeric` (with `units`), `symbolic`, `multiple_choice`, `json_answer` — right or wrong
- `reasoning_gym` — the scorers of that library
- `grammar` — what an answer says and whether it is the reference, for `numeric` and `symbolic`
- `answers` — where a completion states its answer
- `pair_classifier` — a learned judge
- `functions` — what is imported from outside the project: verifiers and reward functions
- `code` — Python code, run against tests
- `structure` — code `skeleton`: overlap of names, tree edit distance
- `consistency` — does the answer follow from the thinking? By `alignment` of the two, or by a `pair_classifier`
- `sandbox`, `pool`, `process` — the parent's side of the worker processes in which a verifier runs
- `worker` — their own side: limits of time, memory and files, no network, and the codes that begin the reason of what
  is unscorable
- `seccomp`, `privileges` — what the kernel refuses them: calls; files, and power over others
- `scorer` — all of it together with what is added to the raw accuracy, for the loop

`VERIFIERS` maps ``reward.verifier.kind`` and ``reward.consistency.kind`` to a class, which takes the other settings of
that section by name.
"""

from collections.abc import Callable, Mapping
from typing import Any

from components.config.consistency import Consistency
from components.config.verifiers import PythonVerifier
from components.config.verifiers import Verifier as VerifierSettings
from components.rewards.base import EnvironmentVerifier, ExactVerifier, Judgement, Verifier, VerifierEntry
from components.rewards.code import CodeVerifier
from components.rewards.consistency import EmbeddedVerifier, NliVerifier
from components.rewards.countdown import CountdownVerifier
from components.rewards.functions import OutsideVerifier
from components.rewards.json_answer import JsonVerifier
from components.rewards.multiple_choice import MultipleChoiceVerifier
from components.rewards.numeric import NumericVerifier
from components.rewards.pair_classifier import ClassifierVerifier
from components.rewards.reasoning_gym import ReasoningGymVerifier
from components.rewards.scorer import Scorer
from components.rewards.structure import StructureVerifier
from components.rewards.symbolic import MathVerifier

VERIFIERS: dict[str, Callable[..., Verifier]] = {
    "exact": ExactVerifier,
    "numeric": NumericVerifier,
    "math": MathVerifier,
    "multiple_choice": MultipleChoiceVerifier,
    "json": JsonVerifier,
    "code": CodeVerifier,
    "classifier": ClassifierVerifier,
    "structure": StructureVerifier,
    "countdown": CountdownVerifier,
    "reasoning_gym": ReasoningGymVerifier,
    "environment": EnvironmentVerifier,
    "embedded": EmbeddedVerifier,
    "nli": NliVerifier,
}

HANDLED_OUTSIDE = {"kind", "sandbox", "sha256", "min_auc"}
"""Settings of a verifier's section that are not its own."""


def build_verifier(settings: VerifierSettings | Consistency, model: Mapping[str, Any] | None = None) -> Verifier:
    """The verifier that the settings name; ``model`` is what it has learned, where it is one that learns."""
    if isinstance(settings, PythonVerifier):
        return OutsideVerifier(settings)
    learned = {} if model is None else {"model": model}
    return VERIFIERS[settings.kind](**settings.model_dump(exclude=HANDLED_OUTSIDE), **learned)


__all__ = ["VERIFIERS", "Judgement", "Scorer", "Verifier", "VerifierEntry", "build_verifier"]
