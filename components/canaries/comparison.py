"""Probe sets before and after training: figures of every side, the falls with their intervals, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from components.canaries.figures import falls, figures, gravest, margin_falls, margin_limit, score_limit
from components.canaries.items import Measured, ProbeSet
from components.config.canaries import By, CanarySettings
from components.types import StepRecord

Side = Mapping[tuple[str, By], Measured]
"""What one checkpoint scored, by set and by way of measuring."""
SIGNALS: dict[By, str] = {"generation": "canary_", "likelihood": "likelihood_"}
NO_SETS = "no probe sets are configured (health.canaries)"


def compared(
    sets: Mapping[str, ProbeSet],
    settings: Mapping[str, CanarySettings],
    sides: Mapping[str, Side],
    records: Iterable[StepRecord],
) -> dict[str, Any]:
    """`out/canaries.json` without the checkpoint's digest.

    Args:
        sides: ``sft`` and ``trained``, and ``champion`` where there is one.
        records: those of the training, for the worst that was seen on the way.
    """
    if not sets:
        return {"said": NO_SETS, "sets": {}}
    steps = list(records)
    found = {}
    for name, one in settings.items():
        ways = {by: _way(name, by, one, sides, steps) for by in one.by}
        source = one.generated if one.path is None else str(one.path)
        head = {"source": source, "sha256": sets[name].sha256, "probes": len(sets[name].probes), "level": one.level}
        limits = one.model_dump(mode="json", include={"max_drop", "max_drop_se", "max_margin_drop"})
        found[name] = {**head, "format": one.format if one.generated is None else "generated", **limits, "by": ways}
    return {"said": "", "sets": found}


def _way(
    name: str, by: By, settings: CanarySettings, sides: Mapping[str, Side], records: list[StepRecord]
) -> dict[str, Any]:
    measured = {side: results[name, by] for side, results in sides.items()}
    before, after = measured["sft"].outcomes, measured["trained"].outcomes
    probes, limit = measured["sft"].set, score_limit(settings)
    drops = falls(probes, [one.score for one in before], [one.score for one in after])
    margins = margin_falls(probes, [one.margin for one in before], [one.margin for one in after])
    drop = gravest(drops, limit)
    too_far = any(one.beyond(margin_limit(settings)) for one in margins)
    return {
        **{side: figures(one) for side, one in measured.items()},
        "drop": drop.to_dict(),
        "drops": [one.to_dict() for one in drops],
        "margin_drops": [one.to_dict() for one in margins] if by == "likelihood" else [],
        "verdict": "fail" if too_far else drop.verdict(limit),
        "while_training": worst(name, by, records),
    }


def worst(name: str, by: By, records: Iterable[StepRecord]) -> dict[str, float] | None:
    """The lowest score while training and its step, steps that were undone included; None where it was not probed."""
    signal = f"{SIGNALS[by]}{name}"
    seen = [(record.signals[signal], record.step) for record in records if signal in record.signals]
    if not seen:
        return None
    score, step = min(seen)
    return {"score": score, "step": step, "first": seen[0][0]}
