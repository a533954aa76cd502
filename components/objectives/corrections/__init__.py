"""Corrections for the gap between the sampler's and the trainer's log-probabilities.

- `token` — truncated weights (TIS) and IcePop
- `sequence` — weights and masks of whole completions, by product or by geometric mean; OPSM, which looks at how far the
  policy is from the sampler

Each of `CORRECTIONS` takes ``old_logp``, ``rollout_logp`` and ``mask``, all ``[B, R]``, and its settings, and returns
weights ``[B, R]`` that multiply the token loss outside the clip. No gradient flows through them. A token with weight 0
still counts in the denominators: the estimator stays linear in the data.
"""

from collections.abc import Callable

from torch import Tensor

from components.objectives.corrections.sequence import (
    mask_sequence_geometric,
    mask_sequence_product,
    off_policy_mask,
    tis_sequence_geometric,
    tis_sequence_product,
)
from components.objectives.corrections.token import icepop, importance, tis_token

CORRECTIONS: dict[str, Callable[..., Tensor]] = {
    "tis_token": tis_token,
    "tis_sequence_product": tis_sequence_product,
    "tis_sequence_geometric": tis_sequence_geometric,
    "icepop": icepop,
    "mask_sequence_product": mask_sequence_product,
    "mask_sequence_geometric": mask_sequence_geometric,
}

__all__ = ["CORRECTIONS", "importance", "off_policy_mask"]
