"""Ratio families: how far one batch may move the policy.

- `clip` — PPO, clip-higher, dual clip
- `gspo` — one ratio a sequence, its token variant, and LUSPO
- `gmpo` — geometric mean of clipped tokens
- `cispo` — clipped weight, unclipped gradient
- `sapo` — a soft gate
- `dppo` — a bound on probability instead of ratio
- `vespo` — the sequence's weight, reshaped
- `topr` — imitates what was good, forgets what was bad
- `dro` — a quadratic price in place of a clip

Each takes ``logp [B, R]``, `TokenInputs` and its settings, and returns a `TokenLoss` to be minimised. On policy all of
them have the gradient of -A log pi (for `gspo` and `gmpo`: under the mean over the sequence).
"""

from collections.abc import Callable

from components.objectives.ratios.cispo import cispo
from components.objectives.ratios.clip import clip
from components.objectives.ratios.dppo import dppo_kl, dppo_tv
from components.objectives.ratios.dro import dro
from components.objectives.ratios.gmpo import gmpo
from components.objectives.ratios.gspo import gspo, gspo_token
from components.objectives.ratios.sapo import sapo
from components.objectives.ratios.topr import topr
from components.objectives.ratios.vespo import vespo
from components.objectives.tokens import TokenLoss

RATIOS: dict[str, Callable[..., TokenLoss]] = {
    "clip": clip,
    "gspo": gspo,
    "gspo_token": gspo_token,
    "luspo": gspo,
    "gmpo": gmpo,
    "cispo": cispo,
    "sapo": sapo,
    "dppo_tv": dppo_tv,
    "dppo_kl": dppo_kl,
    "vespo": vespo,
    "topr": topr,
    "dro": dro,
}

WITHOUT_ADVANTAGE = frozenset({"dro"})
"""Families whose loss has a term that no advantage multiplies: there a token without advantage has a gradient, too."""

__all__ = ["RATIOS", "WITHOUT_ADVANTAGE"]
