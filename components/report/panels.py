"""The plots over steps, as data: which signals share a panel, in which unit, against which setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from components.config import Settings
from components.health.signals import SIGNALS
from components.words import number, percent

Style = Literal["line", "marks", "area"]
Unit = Literal["%", "nats", "nats per token", "tokens", "groups", "before clipping", ""]


@dataclass(frozen=True)
class Series:
    """One signal of `records.jsonl`. ``marks`` is for signals measured now and then; areas are stacked."""

    signal: str
    label: str
    colour: str
    style: Style = "line"


@dataclass(frozen=True)
class Reference:
    """A setting that the panel's signals are read against."""

    label: str
    value: Callable[[Settings], float | None]


@dataclass(frozen=True)
class Panel:
    """One plot. Shares are stored in [0, 1] and shown as per cent; the y axis starts at 0 unless ``log``."""

    title: str
    unit: Unit
    series: tuple[Series, ...]
    reading: str
    full: bool = False
    """The y axis spans 0 to 100 %, whatever the values."""
    log: bool = False
    signed: bool = False
    reference: Reference | None = None
    total: str = ""
    """The signal that stacked areas add up to, where there is one."""
    prefix: str = ""
    """Signals of this prefix, whose names the settings give, are drawn too, as many as there are `MEMBERS`."""


MEMBERS = ("blue", "orange", "green", "purple", "red")
"""Colours of a prefix's signals; those beyond are not drawn."""


def expand(panel: Panel, recorded: Sequence[str]) -> Panel:
    """The panel with the signals of its prefix that were recorded."""
    names = [name for name in recorded if panel.prefix and name.startswith(panel.prefix) and name not in SIGNALS]
    found = (
        Series(name, name.removeprefix(panel.prefix)[:16], colour) for name, colour in zip(names, MEMBERS, strict=False)
    )
    return replace(panel, series=(*panel.series, *found))


def say(panel: Panel, value: float) -> str:
    """A value with the precision that its panel needs."""
    return percent(value) if panel.unit == "%" else number(value)


PANELS: dict[str, Panel] = {
    "accuracy": Panel(
        "Accuracy", "%",
        (
            Series("accuracy", "sampled", "blue"),
            Series("dev_pass_at_1", "dev pass@1", "orange", "marks"),
            Series("dev_pass_at_k", "dev pass@k", "purple", "marks"),
        ),
        "Raw verdicts. Sampled: all groups of the step, which the schedule keeps near the boundary on purpose.",
        full=True,
    ),
    "reward": Panel(
        "Reward", "", (Series("reward", "mean reward", "blue"),),
        "What the objective sees: accuracy plus shaping. It should move with accuracy.", signed=True,
    ),
    "entropy": Panel(
        "Entropy", "nats per token", (Series("entropy", "entropy", "blue"),),
        "Falls as the policy grows sure. Near 0 nothing is explored any more.",
    ),
    "zero_variance": Panel(
        "Groups without a gradient", "%",
        (
            Series("all_wrong_share", "all wrong", "orange", "area"),
            Series("all_right_share", "all right", "blue", "area"),
            Series("zero_variance_cluster_max", "worst cluster", "purple"),
        ),
        "Share of sampled groups whose completions all have the same verdict.", full=True, total="zero_variance_share",
    ),
    "groups": Panel(
        "Groups sampled and trained", "groups",
        (
            Series("groups_sampled", "sampled", "orange"),
            Series("groups_trained", "trained", "blue"),
            Series("schedule_ended", "ended early", "purple"),
            Series("schedule_skipped", "skipped", "green"),
        ),
        "Dynamic sampling draws more than it trains on; the distance is what it throws away. Ended early: not "
        "completed after the first completions were all alike. Skipped: prompts passed over because of a forecast.",
        reference=Reference("per step", lambda s: s.train.prompts_per_step),
    ),
    "length": Panel(
        "Completion length", "tokens",
        (Series("length_mean", "mean", "blue"), Series("length_p95", "95th pct.", "orange")),
        "Growth without accuracy is padding.",
        reference=Reference("limit", lambda s: s.rollout.max_new_tokens),
    ),
    "truncated": Panel(
        "Cut or unscorable completions", "%",
        (Series("truncated_share", "cut at limit", "orange"), Series("unscorable_share", "unscorable", "purple")),
        "Cut completions are scored as they stand; unscorable ones are neither right nor wrong.",
    ),
    "mismatch": Panel(
        "Sampler mismatch", "nats",
        (Series("mismatch_max", "largest", "orange"), Series("mismatch_mean", "mean", "blue")),
        "Distance between the sampler's and the learner's log-probabilities of the same tokens.", log=True,
    ),
    "grad_norm": Panel(
        "Gradient norm", "before clipping", (Series("grad_norm", "norm", "blue"),),
        "Spikes come before collapse.", reference=Reference("clipped to", lambda s: s.learner.grad_clip),
    ),
    "kl": Panel(
        "KL", "nats per token",
        (Series("kl_ref", "to SFT", "blue", "marks"), Series("kl_old", "to old policy", "orange")),
        "How far the policy has moved, from its SFT checkpoint and within the step (k3 estimates).",
    ),
    "clip": Panel(
        "Clipped tokens", "%",
        (Series("clip_high", "upper bound", "orange"), Series("clip_low", "lower bound", "blue")),
        "Tokens whose importance ratio left the trust region; 0 with one update a step.",
    ),
    "ratio": Panel(
        "Importance ratio", "",
        (
            Series("ratio_max", "largest", "orange"),
            Series("ratio_mean", "mean", "blue"),
            Series("ratio_min", "smallest", "purple"),
        ),
        "Updated against old policy, per token; 1 with one update a step.",
    ),
    "variety": Panel(
        "Variety of questions and answers", "%",
        (
            Series("unique_share", "unique texts", "blue"),
            Series("repetition_share", "repeats", "red"),
            Series("top_completion_share", "top text", "orange"),
            Series("top_prompt_share", "top question", "purple"),
        ),
        "Different texts in a group, 3-grams said before within a completion, and the shares of the most frequent text "
        "and question. One that dominates steers the policy.", full=True,
    ),
    "gap": Panel(
        "Training against held-out", "%",
        (Series("train_dev_gap", "gap", "orange", "marks"), Series("accuracy_jump", "largest jump", "purple")),
        "Sampled minus held-out accuracy on like prompts, and the largest rise of one question's accuracy within five "
        "steps. A gap that grows is memory or a gamed verifier.", signed=True,
    ),
    "canary": Panel(
        "Canaries", "%", (Series("canary_drop", "largest fall", "muted", "marks"),),
        "Greedy accuracy on frozen probe sets that training never sees, and the largest fall of one since it began.",
        full=True, prefix="canary_",
    ),
    "likelihood": Panel(
        "Canaries by likelihood", "%", (),
        "The probability that the policy gives the right choices of each probe set, nothing sampled.",
        full=True, prefix="likelihood_",
    ),
    "second": Panel(
        "Second verifier", "%",
        (
            Series("second_disagreement", "differs", "orange"),
            Series("second_doubted", "first alone", "purple"),
        ),
        "A sample of the completions, judged again by an independent verifier; “first alone” accepts what it refuses. "
        "A rise means that the reward is gamed.",
    ),
    "schedule": Panel(
        "Schedule", "%",
        (
            Series("schedule_coverage", "prompts seen", "blue"),
            Series("schedule_in_band", "in band", "orange"),
            Series("schedule_pool_easy", "easy", "green"),
            Series("schedule_pool_hard", "hard", "red"),
        ),
        "Share of training prompts visited so far, of drawn prompts at the policy's boundary, and, of a schedule with "
        "pools, of training prompts that were easy or hard when last measured.", full=True,
    ),
}  # fmt: skip
"""In reading order. The name is the panel's anchor on the page."""
