"""Rows of the page's tables: triage against its limits, before and after by slice, clusters."""

from __future__ import annotations

from dataclasses import dataclass

from components.report.run import Part, dig


@dataclass(frozen=True)
class Change:
    """A share in [0, 1] before and after reinforcement learning."""

    name: str
    prompts: int | None
    before: float | None
    after: float | None
    greedy_before: float | None = None
    greedy_after: float | None = None
    more_is_better: bool = True

    @property
    def difference(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def worse(self) -> bool:
        return self.difference is not None and (self.difference < 0 if self.more_is_better else self.difference > 0)


@dataclass(frozen=True)
class Limit:
    """A triage figure and the limit that it must respect (``at_least`` or at most)."""

    name: str
    value: float
    limit: float
    at_least: bool
    unit: str
    meaning: str
    scale: float
    """Largest value that the little bar shows."""

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True)
class Measured:
    """A part of the reward, or a figure that the verifier measures beside it; a mean before and after."""

    name: str
    rewarded: bool
    before: float | None
    after: float | None


def measured(evaluation: Part | None) -> list[Measured]:
    """Every reward part and metric that either policy's completions have."""
    found = []
    for kind, rewarded in (("parts", True), ("metrics", False)):
        before, after = (dig(evaluation, side, kind) or {} for side in ("sft", "trained"))
        found += [Measured(name, rewarded, before.get(name), after.get(name)) for name in {**before, **after}]
    return found


def overall(evaluation: Part | None, before: str = "sft") -> list[Change]:
    """Shares over all held-out prompts. ``before`` is whom the trained policy is compared with: sft or champion."""
    names = {
        "pass_at_1": "pass@1",
        "greedy": "greedy accuracy",
        "pass_at_k": f"pass@{dig(evaluation, 'k')}",
        "truncated_share": "cut at the length limit",
        "unscorable_share": "unscorable",
    }
    prompts = dig(evaluation, "prompts")
    return [
        Change(
            name=label,
            prompts=prompts,
            before=dig(evaluation, before, key),
            after=dig(evaluation, "trained", key),
            more_is_better=not key.endswith("_share"),
        )
        for key, label in names.items()
    ]


def changes_by_slice(evaluation: Part | None, kind: str) -> list[Change]:
    """pass@1 and greedy accuracy per family or difficulty level. ``kind`` is ``families`` or ``difficulty``."""
    before, after = dig(evaluation, "sft", kind) or {}, dig(evaluation, "trained", kind) or {}
    return [
        Change(
            name=name or "(none)",
            prompts=dig(before, name, "prompts") or dig(after, name, "prompts"),
            before=dig(before, name, "pass_at_1"),
            after=dig(after, name, "pass_at_1"),
            greedy_before=dig(before, name, "greedy"),
            greedy_after=dig(after, name, "greedy"),
        )
        for name in sorted({*before, *after}, key=_natural)
    ]


def _natural(name: str) -> tuple[float, str]:
    """Numbers by value, before words in alphabetical order."""
    try:
        return (float(name), name)
    except ValueError:
        return (float("inf"), name)


def triage_limits(triage: Part | None) -> list[Limit]:
    """The figures that triage judged, each against the limit that it recorded."""
    if triage is None:
        return []
    entropy, limits = triage["entropy"], triage["limits"]
    return [
        Limit("Entropy", entropy, limits["min_entropy"], True, "nats per token",
              "below it the policy is too sure of itself to explore", 2 * max(entropy, limits["min_entropy"], 1e-9)),
        Limit("Groups without a gradient", triage["zero_variance_share"], limits["max_zero_variance"], False, "%",
              "all right or all wrong at the training's group size", 1.0),
        Limit(f"pass@{triage['k']} − pass@1", triage["pass_at_k"] - triage["pass_at_1"], limits["min_passk_gap"], True,
              "points", "what more samples find: the room that RL has", 1.0),
    ]  # fmt: skip
