"""Probe sets before and after training, a part of stage `evaluate`: every set on every checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from components.canaries.comparison import Side, compared
from components.canaries.items import Measured, ProbeSet
from components.canaries.measuring import measure_generation, measure_likelihood, scores_of
from components.canaries.sets import probe_sets
from components.config import Settings
from components.config.canaries import By
from components.evaluation.answering import KeptEngine
from components.files import sha256_tree, write_json
from components.health.records import read_records
from components.layout import Layout
from components.policy import Policy, load_policy
from components.rewards import Scorer
from components.rollout import Collector


def write_canaries(settings: Settings, layout: Layout, on_done: Callable[[int], None] = lambda done: None) -> None:
    """Write `out/canaries.json`: figures of the SFT checkpoint, the trained one and a champion, falls and verdicts.

    Args:
        on_done: called with the number of checkpoints that are done.

    Raises:
        InputError: a probe set is missing or malformed, or the champion cannot be loaded.
    """
    chosen = settings.health.canaries
    sets = probe_sets(chosen)
    checkpoints = {"sft": layout.sft_checkpoint, "trained": layout.train_checkpoint}
    if settings.evaluation.champion is not None:
        checkpoints["champion"] = settings.evaluation.champion.path
    sides = dict(_sides(settings, layout, checkpoints, sets, on_done)) if sets else {}
    found = compared(sets, chosen, sides, read_records(layout.records) if sets else ())
    write_json(layout.canaries, {**found, "checkpoint_sha256": sha256_tree(layout.train_checkpoint)})


def _sides(
    settings: Settings,
    layout: Layout,
    checkpoints: Mapping[str, Path],
    sets: Mapping[str, ProbeSet],
    on_done: Callable[[int], None],
) -> Iterator[tuple[str, Side]]:
    """What every checkpoint scores."""
    generate = any("generation" in one.by for one in settings.health.canaries.values())
    with Scorer(settings.reward, layout.consistency) as scorer, KeptEngine(layout.logs) as kept:
        for number, (side, checkpoint) in enumerate(checkpoints.items()):
            collector = None
            if generate:
                policy, engine = kept.load(checkpoint, settings)
                collector = Collector(policy, engine, scorer, settings.rollout)
            else:
                policy = load_policy(checkpoint, settings.policy)
            yield side, _measured(settings, policy, collector, sets)
            on_done(number + 1)


def _measured(settings: Settings, policy: Policy, collector: Collector | None, sets: Mapping[str, ProbeSet]) -> Side:
    marker = getattr(settings.reward.verifier, "marker", None)
    score = scores_of(policy, settings.rollout.temperature)
    found: dict[tuple[str, By], Measured] = {}
    for name, one in settings.health.canaries.items():
        for by in one.by:
            if by == "likelihood":
                found[name, by] = measure_likelihood(sets[name], one, policy, score)
            elif collector is not None:
                found[name, by] = measure_generation(sets[name], one, collector, marker)
    return found
