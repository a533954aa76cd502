"""What may be wrong with a run; each is planted by wrapping what the loop is given.

- `base` — the `Fault` seam, the clock, and wrappers that leave everything else alone
- `too_hard`, `too_easy`, `template_mismatch` — training prompts
- `repeated_prompt` — the schedule: one prompt again and again, rightly or wrongly labelled
- `hackable_verifier`, `verifier_noise`, `tie_breaking`, `length_gaming` — what is rewarded
- `mismatch_perturbed`, `mismatch_stale` — the sampler's weights
- `nan_burst`, `nan_weights` — numbers that are none
- `hot_symmetric_clip` — settings

`FAULTS` maps a name to what makes the fault of a seed.
"""

from collections.abc import Callable
from functools import partial

from tests.benchmarks.health.faults.base import Clock, Fault
from tests.benchmarks.health.faults.hackable_verifier import HackableVerifier
from tests.benchmarks.health.faults.hot_symmetric_clip import HotSymmetricClip
from tests.benchmarks.health.faults.length_gaming import LengthGaming
from tests.benchmarks.health.faults.mismatch_perturbed import MismatchPerturbed
from tests.benchmarks.health.faults.mismatch_stale import MismatchStale
from tests.benchmarks.health.faults.nan_burst import NanBurst
from tests.benchmarks.health.faults.nan_weights import NanWeights
from tests.benchmarks.health.faults.repeated_prompt import DuplicateFlood, OneBiased
from tests.benchmarks.health.faults.template_mismatch import TemplateMismatch
from tests.benchmarks.health.faults.tie_breaking import TieBreaking
from tests.benchmarks.health.faults.too_easy import TooEasy
from tests.benchmarks.health.faults.too_hard import TooHard
from tests.benchmarks.health.faults.verifier_noise import VerifierNoise

FAULTS: dict[str, Callable[[int], Fault]] = {
    "too_hard": TooHard,
    "too_easy": TooEasy,
    "hot_symmetric_clip": HotSymmetricClip,
    "hackable_verifier": HackableVerifier,
    "verifier_noise_5": partial(VerifierNoise, rate=0.05),
    "verifier_noise_10": partial(VerifierNoise, rate=0.1),
    "verifier_noise_20": partial(VerifierNoise, rate=0.2),
    "tie_breaking": TieBreaking,
    "length_gaming": LengthGaming,
    "mismatch_perturbed": MismatchPerturbed,
    "mismatch_stale": MismatchStale,
    "nan_burst": NanBurst,
    "nan_weights": NanWeights,
    "one_biased": OneBiased,
    "template_mismatch": TemplateMismatch,
    "duplicate_flood": DuplicateFlood,
}

__all__ = ["FAULTS", "Clock", "Fault"]
