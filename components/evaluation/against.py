"""A candidate and the present champion on the candidate's own test prompts, for promotion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.config.consistency import EmbeddedConsistency
from components.evaluation.pairing import gains
from components.evaluation.sentences import comparison_sentences
from components.evaluation.suites import PromptSuite, held_out
from components.evaluation.summary import summarise
from components.files import sha256_tree
from components.layout import Layout
from components.seeds import derive

if TYPE_CHECKING:
    from components.config import Settings

SCHEMA = 1


def compare_with_champion(
    settings: Settings, evidence: Layout, candidate: Path, champion: Path, cache: Path
) -> dict[str, Any]:
    """Both checkpoints on the same prompts with the same seeds, paired. Loads torch, and nothing from the network.

    Args:
        settings: of the candidate's run, its `params.yaml`: how prompts are formatted and answers judged.
        evidence: the run's output; both answer the prompts of its `out/data/test.jsonl`. `out/data/consistency.json`
            is used if the settings have a consistency part (without the file the reward is compared without it).
        candidate: a checkpoint folder, as is ``champion``; both are refused unless they are safe to load.
        cache: a folder for answers that need not be made twice, such as `.state/evaluations` of the project.

    Returns:
        ``schema``; ``candidate``, ``champion``, ``prompts_sha256`` and ``settings_sha256``: what was compared;
        ``prompts`` and ``samples``; ``settled``: no verdict failed for want of time or memory; ``gain`` and
        ``greedy_gain`` of the candidate over the champion, as in `out/evaluation.json`; ``figures`` with ``candidate``
        and ``champion``; ``words``. What is settled, and not answered by servers, comes out the same to the byte.

    Raises:
        InputError: prompts or a checkpoint are missing, malformed, or not safe to load.
    """
    from components.evaluation.answering import answer_suites
    from components.evaluation.cache import Cache

    suite = _suite(settings, evidence)
    table = answer_suites(
        [candidate, champion],
        [suite],
        consistency=evidence.consistency,
        logs=cache / "logs",
        cache=Cache(cache),
        bar=_Silent(),
    )
    settled = all(answer.settled for (answers,) in table for answer in answers)
    after, before = ([answer.result for answer in answers] for (answers,) in table)
    chosen, seed = settings.evaluation, derive(settings.seed, "bootstrap")
    gain, greedy_gain = gains(before, after, chosen, derive(seed, "bootstrap"))
    ks = chosen.sizes(suite.samples)
    comparison = {
        "schema": SCHEMA,
        "candidate": sha256_tree(candidate),
        "champion": sha256_tree(champion),
        "prompts": len(suite.prompts),
        "samples": suite.samples,
        "settled": settled,
        "prompts_sha256": suite.prompts_sha256,
        "settings_sha256": suite.settings_sha256,
        "gain": gain,
        "greedy_gain": greedy_gain,
        "figures": {
            "candidate": summarise(after, suite.samples, ks, chosen.small),
            "champion": summarise(before, suite.samples, ks, chosen.small),
        },
    }
    return {**comparison, "words": comparison_sentences(comparison)}


def _suite(settings: Settings, evidence: Layout) -> PromptSuite:
    """The test prompts, put as the run put them."""
    if isinstance(settings.reward.consistency, EmbeddedConsistency) and not evidence.consistency.is_file():
        reward = settings.reward.model_copy(update={"consistency": None})
        settings = settings.model_copy(update={"reward": reward})
    return held_out(settings, evidence)


class _Silent:
    """Shows no progress."""

    def advance(self, done: int, note: str = "") -> None:
        """Say nothing."""
