"""The rules for logs of other trainers, on runs with rewards of unknown scale: silent on noise, in time on faults."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from components.health.monitor import GRAVE
from components.health.other_runs import FALL, LOST, REST, OwnScale, judge_other, on_own_scale
from components.health.rulebook import LOG_RULES, load_rules
from components.types import StepRecord, Verdict

RULES = load_rules(LOG_RULES)
STEPS, FAULT = 200, 100
Column = float | Callable[[int], float]
HEALTHY: dict[str, Column] = {
    "kl_ref": 0.01, "grad_norm": 0.3, "length_mean": 200.0, "truncated_share": 0.05, "entropy": 0.5, "nonfinite": 0.0,
}  # fmt: skip


def run(steps: int = STEPS, **columns: Column) -> list[StepRecord]:
    """A run that is healthy except for the given columns: a constant, or a function of the step."""
    made = [
        StepRecord(step, {n: value(step) if callable(value) else value for n, value in {**HEALTHY, **columns}.items()})
        for step in range(steps)
    ]
    return list(on_own_scale(made))


def said(**columns: Column) -> list[Verdict]:
    return judge_other(RULES, run(**columns))


def few(right: Column = 0.5, completions: int = 8, seed: int = 0) -> Callable[[int], float]:
    """The mean of a few answers, right with a probability of ``right``: as noisy as logs of small runs are."""
    stream = random.Random(seed)

    def reward(step: int) -> float:
        share = right(step) if callable(right) else right
        return sum(stream.random() < share for _ in range(completions)) / completions

    return reward


def changed(reward: Callable[[int], float], scale: float = 1.0, rise: float = 0.0) -> Callable[[int], float]:
    return lambda step: scale * reward(step) + rise * step


def after(value: float, before: float = 0.0) -> Callable[[int], float]:
    return lambda step: value if step >= FAULT else before


HEALTHY_RUNS: dict[str, dict[str, Column]] = {
    "eight completions a step": {"reward": few()},
    "two completions a step": {"reward": few(0.3, completions=2)},
    "a reward of hundreds and format parts": {"reward": changed(few(0.6), scale=300)},
    "negative rewards that rise": {"reward": changed(few(0.5), scale=-1, rise=1 / 200)},
    "entropy falls to a fifth while the reward doubles": {
        "reward": few(lambda step: 0.3 + step / 600), "entropy": lambda step: 0.5 - 0.002 * step,
    },
    "gradients of 0 but for some steps": {
        "reward": few(0.9), "grad_norm": changed(few(0.3, 1), scale=0.5),
    },
    "one step of a large divergence": {"reward": few(), "kl_ref": lambda step: 8.0 if step == FAULT else 0.01},
    "one step of a large gradient": {"reward": few(), "grad_norm": lambda step: 90.0 if step == FAULT else 0.3},
    "longer answers and a higher reward": {
        "reward": few(lambda step: 0.2 + step / 300), "length_mean": lambda step: 200.0 + 3 * step,
    },
    "a value loss that falls": {"reward": few(), "value_loss": lambda step: 10.0 / (1 + step)},
}  # fmt: skip


@pytest.mark.parametrize("columns", HEALTHY_RUNS.values(), ids=HEALTHY_RUNS)
def test_healthy_runs_are_left_in_peace(columns):
    assert said(**columns) == []


FAULTS: dict[str, tuple[dict[str, Column], str, int]] = {
    "reward of 0 or 1 gone": ({"reward": few(after(0.0, 0.5))}, "reward_collapse", 20),
    "reward gone, two completions a step": ({"reward": few(after(0.0, 0.5), 2)}, "reward_collapse", 40),
    "reward of hundreds gone": ({"reward": changed(few(after(0.0, 0.5)), scale=500)}, "reward_collapse", 20),
    "back to the lowest reward, all of them negative": (
        {"reward": lambda step: -1.0 + (step / FAULT if step < FAULT else 0.0)}, "reward_collapse", 20,
    ),
    "reward halved": ({"reward": few(after(0.3, 0.7))}, "reward_fell", 60),
    "one number as the reward": ({"reward": after(0.25, 0.5)}, "reward_constant", 0),
    "divergence stays high": ({"reward": few(), "kl_ref": after(3.0, 0.01)}, "kl_far", 15),
    "divergence of thousands": ({"reward": few(), "kl_ref": after(2000.0, 0.01)}, "kl_explodes", 2),
    "answers cut off": ({"reward": few(), "truncated_share": after(0.9)}, "truncated", 10),
    "answers grow, the reward does not": (
        {"reward": few(), "length_mean": after(900.0, 200.0)}, "length_runs_away", 40,
    ),
    "gradients jump again and again": (
        {"reward": few(), "grad_norm": lambda s: 90.0 if s >= FAULT and s % 12 == 0 else 0.3}, "gradient_jumps", 60,
    ),
    "numbers that are none": ({"reward": few(), "nonfinite": after(1.0)}, "numbers_broken", 10),
    "the loss of the value model explodes": ({"reward": few(), "value_loss": after(50.0, 0.5)}, "value_loss_grows", 10),
    "the value model explains nothing": (
        {"reward": few(), "explained_variance": after(-0.5, 0.6)}, "critic_explains_nothing", 30,
    ),
    "no group has a gradient": ({"reward": few(), "zero_variance_share": after(1.0)}, "no_gradient", 30),
    "entropy and reward fall together": (
        {"reward": few(after(0.2, 0.7)), "entropy": after(0.05, 0.5)}, "entropy_gone", 40,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "rule", "within"), FAULTS.values(), ids=FAULTS)
def test_what_goes_wrong_is_named_in_time_and_not_before(columns, rule, within):
    found = judge_other({rule: RULES[rule]}, run(**columns))
    assert len(found) == 1, "nothing is said twice"
    assert (0 if rule == "reward_constant" else FAULT) <= found[0].step <= FAULT + within


def test_a_reward_that_is_gone_after_a_few_steps_is_named_too():
    verdicts = said(reward=lambda step: (0.9, 0.75, 0.95, 0.8)[step] if step < 4 else 0.0)
    assert "reward_collapse" in [verdict.rule for verdict in verdicts if verdict.step < 15]


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1e-6, 0.0)])
def test_the_scale_of_the_reward_does_not_matter(scale, shift):
    rewards = few(after(0.0, 0.4), seed=3)
    values = [rewards(step) for step in range(STEPS)]
    plain, scaled = (
        [OwnScale.observe(one, v * s) for v in values] for one, s in ((OwnScale(), 1.0), (OwnScale(), scale))
    )
    for one, other in itertools.islice(zip(plain, scaled, strict=True), 3, None):
        assert one[FALL] == pytest.approx(other[FALL]) and one[LOST] == pytest.approx(other[LOST])


def test_of_eight_thousand_steps_of_noise_hardly_one_is_warned_of():
    rules = {name: RULES[name] for name in ("reward_collapse", "reward_fell")}
    verdicts = [
        verdict
        for seed, share in itertools.product(range(10), (0.1, 0.3, 0.5, 0.9))
        for verdict in judge_other(rules, run(reward=few(share, seed=seed)))
    ]
    assert [verdict for verdict in verdicts if verdict.level in GRAVE] == []
    assert len(verdicts) <= 40 * STEPS / 200 / 4


def test_a_rule_speaks_again_only_after_a_long_rest():
    columns = {"truncated_share": lambda step: 0.9 if step % 20 < 8 or step >= 300 else 0.0}
    rule = {"truncated": RULES["truncated"]}
    assert len(judge_other(rule, run(steps=250, **columns))) == 1
    rested = {"truncated_share": lambda step: 0.9 if step < 20 or step >= 20 + 2 * REST else 0.0}
    assert len(judge_other(rule, run(steps=250, **rested))) == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200])
def test_a_reward_that_is_no_measurement_is_passed_over(value):
    records = run(reward=lambda step: value if step == 50 else 0.5)
    assert FALL not in records[50].signals
    assert math.isfinite(records[-1].signals[FALL])
