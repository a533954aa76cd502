"""Accuracies, rewards, and groups that carry no gradient. Unscorable is neither right nor wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean, pstdev

from components.types import Group, mean_by_name


def means(columns: Mapping[str, Iterable[float]]) -> dict[str, float]:
    """The mean of each column that has a value: a mean of nothing does not exist."""
    filled = {name: list(values) for name, values in columns.items()}
    return {name: fmean(values) for name, values in filled.items() if values}


def outcome_signals(groups: Sequence[Group]) -> dict[str, float]:
    """What was right, what was rewarded, and in how many groups there is nothing to learn."""
    scores = [score for group in groups for score in group.scores]
    scorable = [score for score in scores if score.accuracy is not None]
    judged = [group.accuracies for group in groups if group.accuracies]
    parts, metrics = mean_by_name(s.parts for s in scorable), mean_by_name(s.metrics for s in scorable)
    return {
        **means(
            {
                "reward": (score.reward for score in scorable),
                "shaping": (sum(score.parts.values()) for score in scorable),
                "reward_std": (pstdev(rewards) for rewards in _rewards(groups)),
                "accuracy": chain.from_iterable(judged),
                "zero_variance_share": (len(set(values)) == 1 for values in judged),
                "all_right_share": (min(values) == 1 for values in judged),
                "all_wrong_share": (max(values) == 0 for values in judged),
                "ties_broken_share": (_tie_is_broken(group) for group in groups if group.accuracies),
                "unscorable_share": (score.accuracy is None for score in scores),
                "all_unscorable_share": (not group.accuracies for group in groups),
            }
        ),
        "effective_prompts": float(sum(group.informative for group in groups)),
        **_by_cluster(groups),
        **{f"part_{name}": mean for name, mean in parts.items()},
        **{f"metric_{name}": mean for name, mean in metrics.items()},
    }


def _rewards(groups: Sequence[Group]) -> Iterator[list[float]]:
    for group in groups:
        if rewards := [score.reward for score in group.scores if score.accuracy is not None]:
            yield rewards


def _tie_is_broken(group: Group) -> bool:
    """All equally right or wrong, and yet one is preferred."""
    rewards = {score.reward for score in group.scores if score.accuracy is not None}
    return not group.informative and len(rewards) > 1


def _by_cluster(groups: Sequence[Group]) -> dict[str, float]:
    """Share of groups without variance in each cluster that was drawn; prompts without a cluster are left out."""
    flat: dict[int, list[bool]] = {}
    for group in groups:
        if group.prompt.cluster >= 0 and group.accuracies:
            flat.setdefault(group.prompt.cluster, []).append(not group.informative)
    shares = {cluster: fmean(values) for cluster, values in sorted(flat.items())}
    found = {f"zero_variance_cluster_{cluster}": share for cluster, share in shares.items()}
    return {**found, "zero_variance_cluster_max": max(shares.values())} if shares else {}
