"""Rows of the page's tables: triage against its limits, figures other than accuracy, what a verdict saw."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from components.report.run import Part, dig
from components.types import Verdict
from components.words import ABSENT, number

RECENT = 5
"""Values of each signal of a verdict that the table shows; the verdict itself carries more."""


@dataclass(frozen=True)
class Limit:
    """A triage figure and the least that it must be; ``met`` where that holds or another figure makes up for it."""

    name: str
    value: float
    limit: float
    unit: str
    meaning: str
    scale: float
    """Largest value that the little bar shows."""
    met: bool


@dataclass(frozen=True)
class PolicyFigures:
    """A figure other than accuracy, by policy. ``share`` is shown as per cent."""

    name: str
    note: str
    share: bool
    sides: dict[str, float | None]


SIDES = {"sft": "SFT", "trained": "Trained", "champion": "Champion"}
CALIBRATION = (
    ("length of right answers", "tokens", False, "length", "right_mean"),
    ("length of wrong answers", "tokens", False, "length", "wrong_mean"),
    ("accuracy, if every cut answer were wrong", "", True, "truncation", "if_wrong"),
    ("accuracy, if every cut answer were right", "", True, "truncation", "if_right"),
    ("calibration error of the majority", "share that agrees against share that is right", True, "agreement", "ece"),
)
FIGURES = {"truncated_share": "cut at the length limit", "unscorable_share": "unscorable"}


def other_figures(evaluation: Part | None) -> list[PolicyFigures]:
    """What a policy pays for its accuracy: lengths, cut and unscorable answers, parts of the reward, other metrics."""
    if evaluation is None:
        return []
    present = {side: title for side, title in SIDES.items() if dig(evaluation, side)}

    def row(name: str, note: str, share: bool, *keys: str) -> PolicyFigures:
        return PolicyFigures(
            name, note, share, {title: dig(evaluation, side, *keys) for side, title in present.items()}
        )

    rows = [row(title, "", True, key) for key, title in FIGURES.items()]
    rows += [row("length, mean", "tokens", False, "length_mean"), row("reward, mean", "", False, "reward")]
    rows += [row(title, note, share, "calibration", *keys) for title, note, share, *keys in CALIBRATION]
    for kind, note in (("parts", "reward part"), ("metrics", "measured only")):
        names = {name: None for side in present for name in dig(evaluation, side, kind) or {}}
        rows += [row(name, note, False, kind, name) for name in names]
    return [one for one in rows if any(value is not None for value in one.sides.values())]


def natural(name: str) -> tuple[float, str]:
    """A key for sorting: by the number that a name begins with, before words in alphabetical order."""
    found = re.match(r"\d+(\.\d+)?", name)
    return (float(found[0]) if found else math.inf, name)


def last_values(verdict: Verdict) -> list[str]:
    """``entropy … 0.21, 0.15, 0.08``: the last values of every signal that the rule looked at."""
    lines = []
    for signal, window in verdict.evidence.items():
        values = ", ".join(ABSENT if value is None else number(value) for value in window[-RECENT:])
        lines.append(f"{signal}{' …' if len(window) > RECENT else ''} {values}")
    return lines


def triage_limits(triage: Part | None) -> list[Limit]:
    """The figures that triage judged, each against the limit that it recorded."""
    if triage is None:
        return []
    limits, prompts, k = triage["limits"], triage["step"]["prompts"], triage["k"]
    teaching, headroom, entropy = triage["teaching"], 1 - triage["pass_at_1"], triage["entropy"]
    gap = triage["pass_at_k"] - triage["pass_at_1"]
    explores = gap >= limits["min_passk_gap"] or entropy >= limits["min_entropy"]
    return [
        Limit("Groups of a step with a gradient", teaching, limits["min_teaching"], f"of {prompts}",
              "as expected from the samples, with the refills of dynamic sampling", float(prompts),
              teaching >= limits["min_teaching"]),
        Limit("1 − pass@1", headroom, limits["min_headroom"], "points", "what is left to gain", 1.0,
              headroom >= limits["min_headroom"]),
        Limit(f"pass@{k} − pass@1", gap, limits["min_passk_gap"], "points",
              "what more samples find; enough entropy makes up for it", 1.0, explores),
        Limit("Entropy", entropy, limits["min_entropy"], "nats",
              "per sampled token; enough pass@k − pass@1 makes up for it", 1.0, explores),
    ]  # fmt: skip
