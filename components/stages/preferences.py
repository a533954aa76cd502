"""What stage `dpo` does where the settings enable it: direct preference optimisation on stored pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

from components.config import Settings, substance
from components.config.pins import check_digest
from components.directories import write_directory
from components.dpo.dataset import check_lengths, hold_out, import_pairs, read_pairs
from components.dpo.pairs import Pair
from components.dpo.trainer import DpoTrainer
from components.errors import InputError
from components.evaluation.answering import answer_suites
from components.evaluation.cache import shared
from components.evaluation.suites import PromptSuite
from components.evaluation.suites import held_out as test_prompts
from components.evaluation.summary import compare
from components.files import sha256_tree, write_json, write_jsonl
from components.layout import Layout
from components.learner.supervised_leader import SHARED, builder_of, has_ranks
from components.policy import Policy
from components.policy.beginning import beginning
from components.progress import Progress, progress
from components.resume import ResumeState, identity, run_steps
from components.seeds import derive
from components.tools import build_tool

LAST = 10
"""Steps over which the final training figures are means."""


def optimize(settings: Settings, layout: Layout) -> None:
    """Train on the pairs and compare with the start on held-out prompts; write `out/dpo` and its metrics."""
    start = {"sft": layout.sft_checkpoint, "train": layout.train_checkpoint}[settings.dpo.start]
    policy, weights = beginning(start, settings, apart=has_ranks(settings))
    pairs, held_out = hold_out(load_pairs(policy, settings, layout), settings.dpo.held_out, settings.seed)
    if not pairs:
        how = "raise train.keep_pairs, lower dpo.held_out, or name a file under dpo.pairs"
        raise InputError("there is no pair to train on", where=pairs_file(settings, layout), how=how)
    suite = test_prompts(settings, layout)
    with progress("dpo", settings.dpo.steps + 2 * len(suite.prompts)) as bar:
        trainer = DpoTrainer(policy, pairs, settings.dpo, settings.seed, held_out, build=builder_of(settings, weights))

        def fill(directory: Path) -> None:
            trainer.learner.save_policy(directory / layout.dpo_checkpoint.name)
            write_jsonl(directory / "log.jsonl", log)

        with closing(trainer.learner):
            log = train(trainer, start, settings, layout, bar)
            measured = trainer.measure(held_out)
            write_directory(layout.dpo, fill)
        evaluation = evaluate(start, suite, settings, layout, bar)
    write_json(
        layout.dpo_metrics,
        {
            "steps": settings.dpo.steps,
            "start": settings.dpo.start,
            "start_sha256": sha256_tree(start),
            "checkpoint_sha256": sha256_tree(layout.dpo_checkpoint),
            "pairs": {"trained": len(pairs), "held_out": len(held_out)},
            "trained": means(log[-LAST:]),
            "held_out": measured,
            "evaluation": evaluation,
        },
    )


def pairs_file(settings: Settings, layout: Layout) -> Path:
    """Where the pairs stand."""
    return layout.pairs if settings.dpo.pairs is None else settings.dpo.pairs.path


def load_pairs(policy: Policy, settings: Settings, layout: Layout) -> list[Pair]:
    """The run's own pairs, or those that the settings name.

    Raises:
        InputError: they are missing, changed, malformed, or longer than the model's positions.
    """
    path, named = pairs_file(settings, layout), settings.dpo.pairs
    if named is None:
        pairs = read_pairs(path)
    else:
        check_digest(path, named.sha256)
        tool = build_tool(settings.rollout.tool) if settings.rollout.tool else None
        pairs = import_pairs(path, policy, tool)
    check_lengths(pairs, policy.max_positions)
    return pairs


def train(trainer: DpoTrainer, start: Path, settings: Settings, layout: Layout, bar: Progress) -> list[dict[str, Any]]:
    """Run or resume the steps; returns the log, one row a step."""
    sections = dict.fromkeys(("seed", "threads", "policy", "dpo"), True)
    depends_on = substance(settings, {**sections, "learner": {*SHARED, "compute_dtype"}, "rollout": {"tool"}})
    inputs = {"start": start, "pairs": pairs_file(settings, layout)}
    resume = ResumeState(layout.state / "dpo", identity(depends_on, inputs))

    def on_row(row: dict[str, Any]) -> None:
        bar.advance(row["step"] + 1, health_line(row))

    return run_steps(trainer, resume, settings.dpo.steps, settings.dpo.checkpoint_every, on_row)


def health_line(row: Mapping[str, float]) -> str:
    """The live line: whether the pairs come apart, and whether the chosen falls with the rejected."""
    shown = {"loss": "loss", "reward_accuracy": "acc", "chosen_change": "chosen", "rejected_change": "rejected"}
    return "  ".join(f"{word} {row[name]:.2f}" for name, word in shown.items() if name in row)


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean of every figure over some rows of the log."""
    names = sorted(set.intersection(*(set(row) for row in rows)) - {"step"})
    return {name: fmean(row[name] for row in rows) for name in names}


def evaluate(start: Path, suite: PromptSuite, settings: Settings, layout: Layout, bar: Progress) -> dict[str, Any]:
    """The start and the outcome on the prompts of stage `evaluate`, with the same seeds: all figures compare."""
    cache, done = shared(layout, settings.evaluation.reuse), settings.dpo.steps
    checkpoints = start, layout.dpo_checkpoint
    table = answer_suites(
        checkpoints, [suite], consistency=layout.consistency, logs=layout.logs, cache=cache, bar=bar, done=done
    )
    before, after = ([answer.result for answer in answers] for (answers,) in table)
    found = compare(before, after, settings.evaluation, derive(settings.seed, "bootstrap"))
    return {"start": found.pop("sft"), "dpo": found.pop("trained"), **found}
