"""What a verifier cannot judge: from the sandbox to the advantage, the record of the step and the evaluation."""

from __future__ import annotations

import math

import pytest
import torch

from components.config.advantages import GdpoAdvantage, GrpoAdvantage, HrasAdvantage
from components.config.evaluation import EvaluationSettings
from components.config.reward import RewardSettings
from components.config.sandbox import SandboxSettings
from components.evaluation.results import PromptResult
from components.evaluation.summary import compare
from components.health.signals import step_signals
from components.objectives.advantages import ADVANTAGES, rewards_of
from components.rewards import Scorer
from components.types import Group, Score
from tests.unit.sandboxes import HOSTILE, PROMPT, completion

SILENT = ("raise no", "die", "return nan", "part inf")
MIXED = ("42", "raise no", "41", "die")


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    """One group in which nothing can be judged, one mixed, one sound."""
    items = [
        (PROMPT, [completion(text, tokens=2) for text in texts]) for texts in (SILENT, MIXED, ("42", "41", "41", "41"))
    ]
    with Scorer(RewardSettings(sandbox=SandboxSettings(timeout=2)), command=HOSTILE) as scorer:
        scores = scorer.score_groups(items)
    return [Group(p, (1,), tuple(cs), ss) for (p, cs), ss in zip(items, scores, strict=True)]


def test_every_completion_has_an_accuracy_or_a_reason(groups):
    assert [[score.accuracy for score in group.scores] for group in groups] == [
        [None] * 4, [1.0, None, 0.0, None], [1.0, 0.0, 0.0, 0.0],
    ]  # fmt: skip
    reasons = [str(score.unscorable).split(":")[0] for score in groups[0].scores]
    assert reasons == ["error", "crash", "error", "error"]


def test_a_group_without_a_judgement_has_no_accuracy_and_no_gradient(groups):
    assert groups[0].mean_accuracy is None
    assert [group.informative for group in groups] == [False, True, True]


def with_consistency(groups: list[Group]) -> list[Group]:
    return [
        Group(g.prompt, g.prompt_ids, g.completions, tuple(
            score if score.accuracy is None else Score(score.accuracy, {"consistency": 0.2 * i})
            for i, score in enumerate(g.scores)
        ))
        for g in groups
    ]  # fmt: skip


EVERY = [GrpoAdvantage(), GdpoAdvantage(kind="gdpo"), HrasAdvantage(kind="hras", warmup=0)]


@pytest.mark.parametrize("settings", EVERY, ids=lambda settings: settings.kind)
def test_what_was_not_judged_gets_no_advantage(groups, settings):
    found = ADVANTAGES[settings.kind](rewards_of(with_consistency(groups)), settings)
    assert torch.equal(found[0], torch.zeros(4))
    assert found[1, [1, 3]].tolist() == [0.0, 0.0]
    assert found.isfinite().all()
    assert found[1:].any(1).all()


@pytest.mark.parametrize("settings", [EVERY[0], EVERY[2]], ids=lambda settings: settings.kind)
def test_what_was_not_judged_changes_no_other_advantage_in_its_group(groups, settings):
    rated = with_consistency(groups)[1]
    judged = Group(PROMPT, (1,), rated.completions[::2], rated.scores[::2])
    mixed, alone = (ADVANTAGES[settings.kind](rewards_of([group]), settings)[0] for group in (rated, judged))
    assert mixed[[0, 2]].tolist() == pytest.approx(alone.tolist())


@pytest.mark.parametrize("settings", EVERY, ids=lambda settings: settings.kind)
def test_a_step_in_which_nothing_was_judged_has_no_advantages_at_all(groups, settings):
    assert not ADVANTAGES[settings.kind](rewards_of(groups[:1]), settings).any()


def test_the_record_of_the_step_counts_them(groups):
    found = step_signals(groups, groups, {}, 1)
    assert found["unscorable_share"] == 6 / 12
    assert found["all_unscorable_share"] == pytest.approx(1 / 3)
    assert found["accuracy"] == found["reward"] == pytest.approx(2 / 6)
    assert all(map(math.isfinite, found.values()))


def test_a_step_in_which_nothing_was_judged_has_no_reward_instead_of_a_zero(groups):
    found = step_signals(groups[:1], groups[:1], {}, 1)
    assert (found["unscorable_share"], found["all_unscorable_share"]) == (1.0, 1.0)
    assert not {"reward", "accuracy", "zero_variance_share"} & found.keys()


def test_the_evaluation_leaves_them_out_and_says_how_many(groups):
    results = [
        PromptResult(str(i), "f", 1, tuple(s.accuracy for s in g.scores), g.scores[0].accuracy, (2,) * 4, (False,) * 4)
        for i, g in enumerate(groups)
    ]
    found = compare(results, results, EvaluationSettings(samples=4, bootstrap=100), seed=0)
    assert found["sft"]["pass_at_1"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert found["sft"]["unscorable_share"] == 0.5
    assert found["gain"]["mean"] == 0.0
