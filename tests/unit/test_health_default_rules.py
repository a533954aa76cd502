"""The shipped rules on synthetic runs: silent on healthy ones, in time on planted faults."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from components.config.judgement import RuleSettings
from components.config.load import read_rules
from components.health import replay
from components.types import StepRecord, Verdict

FILE = Path(__file__).parents[2] / "configs" / "health" / "default.yaml"
RULES = {name: RuleSettings.model_validate(rule) for name, rule in read_rules(FILE).items()}
Column = float | Callable[[int], float]
HEALTHY: dict[str, Column] = {
    "entropy": 1.0,
    "accuracy": 0.5,
    "reward": 0.5,
    "zero_variance_share": 0.1,
    "all_right_share": 0.05,
    "all_wrong_share": 0.05,
    "unscorable_share": 0.0,
    "truncated_share": 0.02,
    "mismatch_mean": 1e-5,
    "mismatch_max": 1e-3,
    "mismatch_k3": 1e-9,
    "ess": 1.0,
    "nonfinite": 0.0,
}


def run(steps: int, noise: float = 0.0, dev_every: int = 20, **columns: Column) -> list[StepRecord]:
    """A run that is healthy except for the given columns: a constant, or a function of the step."""
    stream = random.Random(0)
    records = []
    for step in range(steps):
        signals = {
            name: float(value(step) if callable(value) else value)
            for name, value in {**HEALTHY, **columns}.items()
            if not name.startswith("dev_") or (step + 1) % dev_every == 0
        }
        shake = stream.gauss(0, noise)
        for name in ("accuracy", "reward"):
            signals[name] = min(1.0, max(0.0, signals[name] + shake))
        records.append(StepRecord(step, signals))
    return records


def levels(records: list[StepRecord]) -> dict[str, int]:
    """Rule -> step of its first verdict."""
    found: dict[str, int] = {}
    for verdict in replay(RULES, records):
        found.setdefault(verdict.rule, verdict.step)
    return found


def stops(records: list[StepRecord]) -> list[Verdict]:
    return [verdict for verdict in replay(RULES, records) if verdict.level == "stop"]


def rise(start: float, end: float, half: float) -> Callable[[int], float]:
    """A learning curve from ``start`` to ``end`` that is halfway at step ``half``."""
    return lambda step: start + (end - start) * (1 - 0.5 ** (step / half))


def test_every_rule_says_why_and_where_its_limit_comes_from() -> None:
    assert all(rule.why and rule.source for rule in RULES.values())


def test_a_healthy_run_is_silent() -> None:
    healthy = run(
        200,
        noise=0.04,
        entropy=rise(1.2, 0.7, 60),
        accuracy=rise(0.3, 0.7, 40),
        reward=rise(0.3, 0.7, 40),
        dev_pass_at_1=rise(0.3, 0.65, 40),
        dev_pass_at_k=rise(0.6, 0.9, 40),
    )
    assert replay(RULES, healthy) == []


@pytest.mark.parametrize("dev_every", [5, 20])
def test_a_run_that_learns_a_deterministic_task_at_falling_entropy_is_not_stopped(dev_every: int) -> None:
    learned = run(
        100,
        noise=0.04,
        dev_every=dev_every,
        entropy=rise(0.45, 0.08, 20),
        accuracy=rise(0.3, 0.95, 15),
        reward=rise(0.3, 0.95, 15),
        dev_pass_at_1=rise(0.3, 0.92, 15),
        dev_pass_at_k=rise(0.7, 0.98, 15),
    )
    assert stops(learned) == []
    assert set(levels(learned)) == {"entropy_low", "entropy_halved"}


def test_a_run_whose_reward_has_saturated_is_not_stopped() -> None:
    solved = run(
        200,
        noise=0.01,
        entropy=0.05,
        accuracy=0.97,
        reward=0.97,
        zero_variance_share=0.95,
        all_right_share=0.93,
        all_wrong_share=0.02,
        dev_pass_at_1=0.96,
        dev_pass_at_k=0.99,
    )
    assert stops(solved) == []
    assert levels(solved)["converged"] == 19


def test_a_plateau_above_the_start_is_not_stopped() -> None:
    plateau = run(
        200,
        noise=0.03,
        entropy=0.2,
        accuracy=rise(0.3, 0.6, 5),
        reward=rise(0.3, 0.6, 5),
        dev_pass_at_1=0.6,
        dev_pass_at_k=0.8,
    )
    assert stops(plateau) == []


def test_a_schedule_that_holds_training_accuracy_at_the_boundary_is_not_stopped() -> None:
    boundary = run(
        150,
        noise=0.05,
        entropy=rise(1.2, 0.2, 25),
        accuracy=rise(0.8, 0.45, 10),
        reward=rise(0.8, 0.45, 10),
        dev_pass_at_1=rise(0.3, 0.6, 60),
        dev_pass_at_k=rise(0.6, 0.85, 60),
    )
    assert stops(boundary) == []


def test_low_entropy_warns_at_the_51st_step() -> None:
    assert "entropy_low" not in levels(run(50, entropy=0.49))
    assert levels(run(51, entropy=0.49)) == {"entropy_low": 50}


def test_entropy_halved_by_step_150_warns_and_later_does_not() -> None:
    assert levels(run(200, entropy=lambda s: 2.0 if s < 100 else 0.9)) == {"entropy_halved": 104}
    assert levels(run(300, entropy=lambda s: 2.0 if s < 160 else 0.9)) == {}


def test_falling_held_out_pass_at_k_stops_only_while_entropy_is_low() -> None:
    falling: dict[str, Column] = {"dev_pass_at_1": 0.4, "dev_pass_at_k": lambda s: 0.8 - 0.002 * s}
    (stop,) = stops(run(120, entropy=0.4, accuracy=lambda s: 0.5 + 0.002 * s, **falling))
    assert (stop.rule, stop.step) == ("entropy_collapse", 79)
    assert stop.evidence["dev_pass_at_k"] == pytest.approx([0.762, 0.722, 0.682, 0.642])
    assert stops(run(120, entropy=1.0, **falling)) == []


def test_an_overtrained_checkpoint_that_never_improves_is_stopped() -> None:
    stuck = run(
        100,
        entropy=0.1,
        accuracy=0.3,
        reward=lambda s: 0.3 - 0.0001 * s,
        dev_pass_at_1=0.3,
        dev_pass_at_k=0.4,
    )
    assert [(v.rule, v.step) for v in stops(stuck)] == [("entropy_stuck", 58)]


def test_prompts_beyond_the_policy_stop_after_twenty_steps() -> None:
    hopeless = run(40, accuracy=0.0, reward=0.0, zero_variance_share=1.0, all_wrong_share=1.0, all_right_share=0.0)
    assert [(v.rule, v.step) for v in stops(hopeless)] == [("advantage_collapse", 19)]
    assert stops(hopeless[:19]) == []


def test_mostly_constant_groups_warn() -> None:
    assert levels(run(20, zero_variance_share=0.75, all_right_share=0.4, all_wrong_share=0.35)) == {"zero_variance": 19}


def test_a_learning_rate_that_destroys_the_policy_is_stopped_within_five_steps_of_the_collapse() -> None:
    curve = [0.33, 0.34, 0.33, 0.3, 0.24, 0.15, 0.06, 0.02] + [0.0] * 12
    broken = run(20, accuracy=lambda s: curve[s], reward=lambda s: curve[s])
    assert [(v.rule, v.step) for v in stops(broken)] == [("reward_collapse", 10)]


def test_a_run_that_had_learned_and_then_breaks_is_stopped_within_five_steps() -> None:
    broken = run(
        80,
        accuracy=lambda s: min(0.9, 0.02 + 0.02 * s) if s < 60 else 0.0,
        reward=lambda s: min(0.9, 0.02 + 0.02 * s) if s < 60 else 0.0,
    )
    assert [(v.rule, v.step) for v in stops(broken)] == [("reward_collapse", 63)]


def test_a_policy_that_never_solved_anything_has_no_reward_to_collapse() -> None:
    assert "reward_collapse" not in levels(run(100, accuracy=lambda s: 0.05 if s % 7 == 0 else 0.0))


def test_training_accuracy_below_half_of_its_start_warns_and_held_out_accuracy_decides() -> None:
    fall = {"accuracy": lambda s: 0.4 if s < 10 else 0.15, "reward": lambda s: 0.4 if s < 10 else 0.15}
    assert levels(run(60, **fall, dev_pass_at_1=0.4)) == {"reward_halved": 14}
    (stop,) = stops(run(60, **fall, dev_pass_at_1=lambda s: 0.4 if s < 30 else 0.15))
    assert (stop.rule, stop.step) == ("held_out_collapse", 39)


def test_a_policy_far_from_its_reference_warns() -> None:
    assert levels(run(10, kl_ref=lambda s: 0.02 * s)) == {"kl_drift": 6}


def test_distance_that_doubles_while_held_out_accuracy_is_flat_warns() -> None:
    drift = {"kl_ref": lambda s: 0.02 + 0.0004 * s}
    assert "kl_unrewarded" in levels(run(150, **drift, dev_pass_at_1=0.4))
    assert "kl_unrewarded" not in levels(run(150, **drift, dev_pass_at_1=rise(0.3, 0.6, 60)))


@pytest.mark.parametrize(
    ("signal", "value", "rule", "step"),
    [
        ("mismatch_k3", 0.002, "mismatch", 4),
        ("mismatch_mean", 0.03, "mismatch", 4),
        ("mismatch_max", 2.5, "mismatch_extreme", 4),
        ("ess", 0.4, "ess_low", 4),
        ("unscorable_share", 0.1, "unscorable", 2),
        ("truncated_share", 0.5, "truncated", 9),
        ("second_compared", 0.0, "second_silent", 4),
    ],
)
def test_a_limit_held_for_its_streak_warns(signal: str, value: float, rule: str, step: int) -> None:
    faulty = run(12, **{signal: value})
    assert levels(faulty) == {rule: step}
    assert stops(faulty) == []


def test_one_non_finite_update_stops() -> None:
    assert [(v.rule, v.step) for v in stops(run(9, nonfinite=lambda s: s == 7))] == [("nonfinite", 7)]


def test_tokens_without_a_number_are_said_and_do_not_stop() -> None:
    assert "nonfinite_tokens" in levels(run(9, nonfinite_tokens=lambda s: 0.01 if s == 7 else 0.0))
    assert not stops(run(9, nonfinite_tokens=lambda s: 0.01 if s == 7 else 0.0))


def test_a_verifier_that_cannot_judge_stops() -> None:
    assert [v.rule for v in stops(run(5, unscorable_share=0.8))] == ["unscorable_flood"]


def test_a_log_of_another_trainer_with_nan_entropy_breaches_at_once() -> None:
    assert "entropy_collapse" in levels(run(25, entropy=lambda s: math.nan if s == 22 else 1.0))
