"""Ratio families and what goes with them."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.corrections import IcePop, TokenTis
from components.config.exploration import ClipCov, KlCov, TopEntropy
from components.config.ppo import GaeAdvantage
from components.config.ratios import CispoRatio, DppoRatio, GmpoRatio, GspoRatio, LuspoRatio, Ratio, VespoRatio
from components.config.settings import Sections


def whole_sequences(s: Sections) -> Iterator[str]:
    """GSPO, LUSPO and GMPO have one ratio a sequence, which gives every token of it a gradient."""
    ratio, o = s.objective.ratio, s.objective
    if not isinstance(ratio, GspoRatio | LuspoRatio | GmpoRatio):
        return
    named = f"objective.ratio.kind {ratio.kind}"
    if isinstance(ratio, LuspoRatio) and o.aggregation.kind == "sequence_mean":
        yield (
            f"{named} weighs a sequence by its length (2602.05261), which objective.aggregation.kind sequence_mean "
            "undoes: that is gspo; use token_mean or fixed"
        )
    if not isinstance(ratio, LuspoRatio) and o.aggregation.kind != "sequence_mean":
        paper = "2507.20673" if isinstance(ratio, GmpoRatio) else "2507.18071"
        yield (
            f"{named} is a loss per sequence ({paper}), which objective.aggregation.kind {o.aggregation.kind} would "
            "weigh by length; use sequence_mean"
        )
    if ratio.kind == "gspo_token":
        return
    if isinstance(o.correction, IcePop):
        yield (
            f"objective.correction.kind icepop drops single tokens, but with {named} they keep the gradient of their "
            "sequence's ratio; use mask_sequence_geometric, or ratio gspo_token"
        )
    if isinstance(o.selection, ClipCov | TopEntropy):
        yield (
            f"objective.selection.kind {o.selection.kind} takes the gradient from single tokens, but with {named} they "
            "keep that of their sequence's ratio; use ratio gspo_token"
        )
    if o.redistribution is not None or isinstance(o.advantage, GaeAdvantage):
        source = "objective.redistribution" if o.redistribution is not None else "objective.advantage.kind gae"
        yield f"{source} gives every token an advantage of its own, which {named} would average; use ratio gspo_token"


def sampler_twice(s: Sections) -> Iterator[str]:
    """Methods with the sampler in the denominator have corrected the mismatch already."""
    ratio, correction = s.objective.ratio, s.objective.correction
    if is_relative_to_the_sampler(ratio) and correction is not None:
        yield (
            f"objective.ratio.kind {ratio.kind} is relative to the sampler, so objective.correction.kind "
            f"{correction.kind} would count the mismatch twice (2602.04879); set objective.correction to null"
        )


def is_relative_to_the_sampler(ratio: Ratio) -> bool:
    """Whether the ratio itself is taken against the sampler's policy."""
    return isinstance(ratio, DppoRatio) or (isinstance(ratio, CispoRatio) and ratio.anchor == "rollout")


def weights_of_sequences(s: Sections) -> Iterator[str]:
    """VESPO reshapes the weight of the whole sequence."""
    correction = s.objective.correction
    if isinstance(s.objective.ratio, VespoRatio) and not isinstance(correction, TokenTis | IcePop | None):
        yield (
            f"objective.ratio.kind vespo reshapes the weight of a sequence (2602.10693), and objective.correction.kind "
            f"{correction.kind} would multiply it by another one; use tis_token or icepop"
        )


def nothing_has_moved(s: Sections) -> Iterator[str]:
    """With one update the policy is the old one whenever a gradient is taken."""
    if s.learner.updates_per_step == 1 and isinstance(s.objective.selection, KlCov):
        yield (
            "objective.selection.kind kl_cov penalises what has moved since the rollout (2505.22617): nothing has, "
            "with learner.updates_per_step 1; raise it, or use clip_cov"
        )
