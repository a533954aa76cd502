"""Stage `evaluate`: SFT checkpoint, trained policy, and the champion if there is one, on the same held-out prompts.

No choice is made here or before by what the test split says: training keeps its checkpoints by the dev split alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.config import Settings
from components.config.evaluation import EvaluationSettings
from components.config.pins import check_digest
from components.config.sources import computed
from components.evaluation.answering import answer_suites
from components.evaluation.cache import shared
from components.evaluation.contamination import Found, search, training_rows
from components.evaluation.results import Answered, PromptResult
from components.evaluation.sentences import result_sentences
from components.evaluation.suites import PromptSuite, held_out, suites
from components.evaluation.summary import against_champion, compare, headline
from components.files import sha256_tree, write_json, write_jsonl
from components.layout import Layout
from components.progress import progress
from components.seeds import derive
from components.stages.canaries import write_canaries
from components.working import working

SHOWN_SAMPLES = 200
Sides = Sequence[Sequence[Answered]]
"""What SFT checkpoint, trained policy and perhaps a champion answer, prompt by prompt."""


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/evaluation.json` (see `components.evaluation.summary`) and greedy completions of SFT checkpoint and
    trained policy.

    Raises:
        InputError: the champion or a suite is missing, is not the one whose digest is pinned, or cannot be loaded.
    """
    chosen = [held_out(settings, layout), *suites(settings)]
    checkpoints = [layout.sft_checkpoint, layout.train_checkpoint, *_champion(settings.evaluation)]
    rows = training_rows({"sft": layout.split("sft"), "train": layout.split("train")})
    generated = computed(settings.data.source)
    with working("searching the training data for test prompts"):
        found = search(chosen, rows, settings.evaluation.contamination, generated)
    answers = len(checkpoints) * sum(len(suite.prompts) for suite in chosen)
    with progress("evaluate", answers + (len(checkpoints) if settings.health.canaries else 0)) as bar:
        cache = shared(layout, settings.evaluation.reuse)
        table = answer_suites(
            checkpoints, chosen, consistency=layout.consistency, logs=layout.logs, cache=cache, bar=bar
        )
        write_canaries(settings, layout, lambda done: bar.advance(answers + done, "probe sets"))
    by_suite: list[Sides] = [[row[i] for row in table] for i in range(len(chosen))]
    with working("computing the figures", len(chosen), "suites") as work:
        figures = {}
        for suite, sides in zip(chosen, by_suite, strict=True):
            figures[suite.name] = judged(suite, sides, settings) | {"prompts_sha256": suite.prompts_sha256}
            work.add()
    evaluation = figures.pop(chosen[0].name) | {
        "suites": figures,
        "contamination": contamination(found, by_suite, settings),
        "checkpoint_sha256": sha256_tree(layout.train_checkpoint),
    }
    write_json(layout.evaluation, {**evaluation, "words": result_sentences(evaluation)})
    write_jsonl(layout.samples, kept([shown(*pair) for pair in zip(*by_suite[0][:2], strict=True)]))


def kept(rows: Sequence[dict[str, Any]], most: int = SHOWN_SAMPLES) -> list[dict[str, Any]]:
    """At most so many samples, in their order: what got worse, and the first of the others."""
    answers = [(row["sft"]["accuracy"], row["trained"]["accuracy"]) for row in rows]
    worse = [number for number, (before, after) in enumerate(answers) if before == 1 and after not in (None, 1)]
    chosen = list(dict.fromkeys([*worse, *range(len(rows))]))[:most]
    return [rows[number] for number in sorted(chosen)]


def _champion(settings: EvaluationSettings) -> list[Path]:
    champion = settings.champion
    if champion is None:
        return []
    check_digest(champion.path, champion.sha256)
    return [champion.path]


def judged(suite: PromptSuite, sides: Sides, settings: Settings) -> dict[str, Any]:
    """The figures of one suite."""
    before, after, *champion = _results(sides)
    seed = derive(settings.seed, "bootstrap")
    figures = compare(before, after, settings.evaluation, seed, suite.samples)
    for results in champion:
        figures = against_champion(figures, results, after, settings.evaluation, seed)
    return figures


def contamination(found: Sequence[Found], by_suite: Sequence[Sides], settings: Settings) -> dict[str, Any]:
    """What was found in the training data, with the figures that are left without it."""
    seed = derive(settings.seed, "bootstrap")
    rows = {}
    for one, sides in zip(found, by_suite, strict=True):
        before, after = ([r for r in side if r.id not in one.matches] for side in _results(sides)[:2])
        without = headline(before, after, settings.evaluation, seed) if one.matches and before else None
        rows[one.suite.name] = one.to_dict() | {"without": without}
    worst = max(found, key=lambda one: one.share)
    return {"worst_share": worst.share, "worst": worst.suite.name, "suites": rows}


def _results(sides: Sides) -> list[list[PromptResult]]:
    return [[answer.result for answer in side] for side in sides]


def shown(before: Answered, after: Answered) -> dict[str, Any]:
    """The greedy completions of both policies, for the report."""

    def side(answered: Answered) -> dict[str, Any]:
        return {"text": answered.text, "accuracy": answered.result.greedy}

    prompt = before.prompt
    return {
        "id": prompt.id,
        "family": prompt.family,
        "prompt": prompt.text,
        "answer": prompt.answer,
        "sft": side(before),
        "trained": side(after),
    }
