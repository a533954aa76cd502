"""Ratio families: how far one batch may move the policy.

- `clip` — PPO, clip-higher, dual clip
- `gspo` — one ratio a sequence, its token variant, and LUSPO
- `gmpo` — geometric mean of clipped tokens
- `dppo` — a bound on probability instead of ratio
- `unclipped` — CISPO, SAPO, VESPO, TOPR, DRO, in which no token loses its gradient
- `entry` — what `RATIOS` holds of each, and the contract that is tried on all of them

`RATIOS` maps ``objective.ratio.kind`` to a `RatioEntry`; ``kind: python`` names one from outside. Each takes ``logp [B,
R]``, `TokenInputs` and its settings, and returns a `TokenLoss` to be minimised. On policy all of them have the gradient
of -A log pi (for `gspo` and `gmpo`: under the mean over the sequence).
"""

from components.catalog import Catalog
from components.config.objective import ObjectiveSettings
from components.config.ratios import (
    CispoRatio,
    ClipRatio,
    DppoKlRatio,
    DppoTvRatio,
    DroRatio,
    GmpoRatio,
    GspoRatio,
    LuspoRatio,
    SapoRatio,
    ToprRatio,
    VespoRatio,
)
from components.errors import InputError
from components.objectives.ratios.clip import clip
from components.objectives.ratios.dppo import dppo_kl, dppo_tv
from components.objectives.ratios.entry import RatioEntry
from components.objectives.ratios.gmpo import gmpo
from components.objectives.ratios.gspo import gspo, gspo_token
from components.objectives.ratios.unclipped import cispo, dro, sapo, topr, vespo

RATIOS = Catalog(
    RatioEntry,
    {
        "clip": RatioEntry(clip, ClipRatio),
        "gspo": RatioEntry(gspo, GspoRatio),
        "gspo_token": RatioEntry(gspo_token, GspoRatio),
        "luspo": RatioEntry(gspo, LuspoRatio),
        "gmpo": RatioEntry(gmpo, GmpoRatio),
        "cispo": RatioEntry(cispo, CispoRatio),
        "sapo": RatioEntry(sapo, SapoRatio),
        "dppo_tv": RatioEntry(dppo_tv, DppoTvRatio, corrects_sampler=True),
        "dppo_kl": RatioEntry(dppo_kl, DppoKlRatio, corrects_sampler=True),
        "vespo": RatioEntry(vespo, VespoRatio),
        "topr": RatioEntry(topr, ToprRatio),
        "dro": RatioEntry(dro, DroRatio, without_advantage=True),
    },
)


def check_correction(settings: ObjectiveSettings) -> None:
    """Refuse a correction next to a ratio that declares ``corrects_sampler``.

    Raises:
        InputError: the mismatch between sampler and learner would count twice.
    """
    if settings.correction is not None and RATIOS.choose(settings.ratio).entry.corrects_sampler:
        raise InputError(
            f"the ratio is relative to the sampler, so objective.correction.kind {settings.correction.kind} would "
            "count the mismatch twice",
            where="objective.correction",
            how="set objective.correction to null",
        )


__all__ = ["RATIOS", "RatioEntry", "check_correction"]
