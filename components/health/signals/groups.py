"""What the groups of a step show: accuracies, rewards, groups without a gradient, texts, which questions it had; and
the dev split, whose prompts are fixed, with the gap between what is trained on and like prompts of it.

Unscorable is neither right nor wrong. A question is its text: copies under other ids are the same question.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean, pstdev, stdev
from typing import Any

from components.evaluation.passing import pass_at_k
from components.files import sha256_bytes
from components.types import Group, mean_by_name

SPAN = 5
"""Steps within which a rise of a question's accuracy counts as a jump (2606.10931)."""
ENOUGH = 4
"""Groups of a step that must have their like in the dev split; of fewer the gap is noise."""


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


def text_signals(groups: Sequence[Group]) -> dict[str, float]:
    """Lengths are in tokens; texts count as the same when they are equal."""
    pairs = [pair for group in groups for pair in zip(group.completions, group.scores, strict=True)]
    if not pairs:
        return {}
    lengths = sorted(len(completion.token_ids) for completion, _ in pairs)
    found = means(
        {
            "length_mean": lengths,
            "length_right": (len(c.token_ids) for c, s in pairs if s.accuracy == 1),
            "length_wrong": (len(c.token_ids) for c, s in pairs if s.accuracy is not None and s.accuracy < 1),
            "truncated_share": (c.finish_reason == "length" for c, _ in pairs),
            "repetition_share": (repetition(c.token_ids) for c, _ in pairs),
            "unique_share": (
                len({c.text for c in g.completions}) / len(g.completions) for g in groups if g.completions
            ),
        }
    )
    if "length_right" in found and "length_wrong" in found:
        found["length_gap"] = found["length_right"] - found["length_wrong"]
    counts = Counter(completion.text for completion, _ in pairs)
    found["top_completion_share"] = counts.most_common(1)[0][1] / len(pairs)
    return {**found, "length_p95": float(lengths[math.ceil(0.95 * len(lengths)) - 1])}


def repetition(tokens: Sequence[int], n: int = 3) -> float:
    """Share of n-grams that stood in the same completion before; 0 for what is too short to have one."""
    count = len(tokens) - n + 1
    if count < 1:
        return 0.0
    return 1 - len({tuple(tokens[i : i + n]) for i in range(count)}) / count


def question_signals(groups: Sequence[Group]) -> dict[str, float]:
    """How many different questions there were, and the share of the most frequent one."""
    if not groups:
        return {}
    counts = Counter(group.prompt.text for group in groups)
    return {
        "distinct_prompts": float(len(counts)),
        "top_prompt_share": counts.most_common(1)[0][1] / len(groups),
    }


class Jumps:
    """Remembers how well each question was answered in the last `SPAN` steps."""

    def __init__(self) -> None:
        self._recent: deque[dict[str, float]] = deque(maxlen=SPAN)
        self.latest = 0.0

    def observe(self, groups: Sequence[Group]) -> dict[str, float]:
        """``accuracy_jump``: the largest rise over the last steps' lowest; {} where no question came again."""
        found: dict[str, list[float]] = {}
        for group in groups:
            if group.accuracies:
                found.setdefault(sha256_bytes(group.prompt.text.encode())[:16], []).extend(group.accuracies)
        now = {question: fmean(values) for question, values in found.items()}
        rises = [now[q] - min(before) for q in now if (before := [step[q] for step in self._recent if q in step])]
        self._recent.append(now)
        self.latest = max(rises, default=0.0)
        return {"accuracy_jump": self.latest} if rises else {}

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"recent": [dict(step) for step in self._recent], "latest": self.latest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        if set(state) != {"recent", "latest"}:
            raise ValueError(f"state of jumps has {sorted(state)}")
        self._recent = deque(({str(q): float(a) for q, a in step.items()} for step in state["recent"]), maxlen=SPAN)
        self.latest = float(state["latest"])


def dev_signals(groups: Sequence[Group], samples: int) -> dict[str, float]:
    """``dev_pass_at_1`` and ``dev_pass_at_k`` (k = ``samples``) with standard errors over prompts; {} of nothing."""
    counts = [(len(g.accuracies), sum(a == 1.0 for a in g.accuracies)) for g in groups if g.accuracies]
    if not counts:
        return {}
    columns = {
        "dev_pass_at_1": [right / n for n, right in counts],
        "dev_pass_at_k": [pass_at_k(n, right, min(samples, n)) for n, right in counts],
    }
    # Summed as they stand and divided once: the very number that earlier records hold.
    found = {name: sum(values) / len(values) for name, values in columns.items()}
    if len(counts) > 1:
        found |= {f"{name}_se": stdev(values) / math.sqrt(len(values)) for name, values in columns.items()}
    return found


def like_gap(sampled: Sequence[Group], dev: Sequence[Group]) -> dict[str, float]:
    """``train_dev_gap``: sampled minus dev accuracy over prompts of the same family and difficulty.

    Training accuracy is measured on what the schedule chose, so the plain difference says nothing (2606.22305). Here
    every kind of prompt that both have counts with its share of the sampled groups. {} where fewer than `ENOUGH` groups
    have their like.
    """
    ours, theirs = _by_kind(sampled), _by_kind(dev)
    shared = [kind for kind in ours if kind in theirs]
    groups = sum(len(ours[kind]) for kind in shared)
    if groups < ENOUGH:
        return {}
    gaps = (len(ours[kind]) * (fmean(ours[kind]) - fmean(theirs[kind])) for kind in shared)
    return {"train_dev_gap": sum(gaps) / groups}


def _by_kind(groups: Sequence[Group]) -> dict[tuple[str, float], list[float]]:
    found: dict[tuple[str, float], list[float]] = {}
    for group in groups:
        if (accuracy := group.mean_accuracy) is not None:
            found.setdefault((group.prompt.family, group.prompt.difficulty), []).append(accuracy)
    return found
