"""The shipped rules on synthetic runs: silent on healthy ones, in time on planted faults."""

import itertools
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from components.config.judgement import RuleSettings
from components.config.reading import read_rules
from components.health.monitor import replay
from components.types import StepRecord, Verdict

FILE = Path(__file__).parents[2] / "configs" / "health" / "default.yaml"
RULES = {name: RuleSettings.model_validate(rule) for name, rule in read_rules(FILE).items()}
Column = float | Callable[[int], float]
HEALTHY: dict[str, Column] = {
    "entropy": 1.0, "accuracy": 0.5, "reward": 0.5, "zero_variance_share": 0.1, "all_right_share": 0.05,
    "all_wrong_share": 0.05, "unscorable_share": 0.0, "truncated_share": 0.02, "mismatch_mean": 1e-5,
    "mismatch_max": 1e-3, "mismatch_k3": 1e-9, "mismatch_explained": 1e-3, "ess": 1.0, "attempts": 1.0,
    "groups_sampled": 8.0, "groups_trained": 8.0, "effective_prompts": 7.0, "distinct_prompts": 8.0,
    "top_prompt_share": 0.125, "nonfinite": 0.0, "updates_skipped": 0.0,
}  # fmt: skip


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
        signals |= {f"{name}_se": 0.02 for name in ("dev_pass_at_1", "dev_pass_at_k") if name in signals}
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


def acting(records: list[StepRecord]) -> list[Verdict]:
    """Verdicts that something is done about."""
    return [verdict for verdict in replay(RULES, records) if verdict.level != "warn"]


def rise(start: float, end: float, half: float) -> Callable[[int], float]:
    """A learning curve from ``start`` to ``end`` that is halfway at step ``half``."""
    return lambda step: start + (end - start) * (1 - 0.5 ** (step / half))


def test_every_rule_says_why_and_where_its_limit_comes_from() -> None:
    assert all(rule.why and rule.source for rule in RULES.values())


def rewarded(column: Column) -> dict[str, Column]:
    """Accuracy that is all of the reward."""
    return {"accuracy": column, "reward": column}


def dev(once: Column, of_several: Column) -> dict[str, Column]:
    return {"dev_pass_at_1": once, "dev_pass_at_k": of_several}


def test_a_healthy_run_is_silent() -> None:
    held_out = dev(rise(0.3, 0.65, 40), rise(0.6, 0.9, 40))
    healthy = run(200, noise=0.04, entropy=rise(1.2, 0.7, 60), **rewarded(rise(0.3, 0.7, 40)), **held_out)
    assert replay(RULES, healthy) == []


@pytest.mark.parametrize("dev_every", [5, 20])
def test_a_run_that_learns_a_deterministic_task_at_falling_entropy_is_not_stopped(dev_every: int) -> None:
    columns = {**rewarded(rise(0.3, 0.95, 15)), **dev(rise(0.3, 0.92, 15), rise(0.7, 0.98, 15))}
    learned = run(100, noise=0.04, dev_every=dev_every, entropy=rise(0.45, 0.08, 20), **columns)
    assert acting(learned) == []
    assert set(levels(learned)) == {"entropy_low", "entropy_halved"}


def test_a_run_whose_reward_has_saturated_is_not_stopped() -> None:
    groups = {"zero_variance_share": 0.95, "all_right_share": 0.93, "all_wrong_share": 0.02}
    solved = run(200, noise=0.01, entropy=0.05, **rewarded(0.97), **groups, **dev(0.96, 0.99))
    assert acting(solved) == []
    assert levels(solved)["converged"] == 19


def test_a_plateau_above_the_start_is_not_stopped() -> None:
    plateau = run(200, noise=0.03, entropy=0.2, **rewarded(rise(0.3, 0.6, 5)), **dev(0.6, 0.8))
    assert acting(plateau) == []


def test_a_schedule_that_holds_training_accuracy_at_the_boundary_is_not_stopped() -> None:
    held_out = dev(rise(0.3, 0.6, 60), rise(0.6, 0.85, 60))
    boundary = run(150, noise=0.05, entropy=rise(1.2, 0.2, 25), **rewarded(rise(0.8, 0.45, 10)), **held_out)
    assert acting(boundary) == []


def test_low_entropy_warns_at_the_51st_step() -> None:
    assert "entropy_low" not in levels(run(50, entropy=0.49))
    assert levels(run(51, entropy=0.49)) == {"entropy_low": 50}


def test_entropy_halved_by_step_150_warns_and_later_does_not() -> None:
    early = levels(run(200, entropy=lambda s: 2.0 if s < 100 else 0.9))
    assert early == {"entropy_halved": 104, "entropy_unrewarded": 109}
    assert levels(run(300, entropy=lambda s: 2.0 if s < 160 else 0.9)) == {"entropy_unrewarded": 169}


@pytest.mark.parametrize(("entropy", "rules"), [(0.4, {"entropy_collapse"}), (1.0, set()), (4.0, {"entropy_surge"})])
def test_a_fall_of_held_out_accuracy_acts_early_where_entropy_is_not_as_it_was(entropy: float, rules: set[str]) -> None:
    fall = dev(lambda s: 0.4 if s < 70 else 0.35, lambda s: 0.8 if s < 70 else 0.7)
    fall |= {"fall_evidence": lambda s: 6.0 * (s >= 79)}
    changed = run(120, entropy=lambda s: entropy if s >= 60 else 1.0, accuracy=lambda s: 0.5 + 0.002 * s, **fall)
    assert {verdict.rule for verdict in acting(changed)} == rules


def test_a_held_out_accuracy_that_was_high_by_chance_once_has_not_fallen() -> None:
    chance = dev(lambda s: 0.6 if s == 19 else 0.45, lambda s: 0.9 if s == 19 else 0.7)
    assert acting(run(120, entropy=0.4, **rewarded(rise(0.3, 0.5, 60)), **chance, fall_evidence=1.0)) == []


def test_an_overtrained_checkpoint_that_never_improves_is_stopped() -> None:
    stuck = run(100, entropy=0.1, accuracy=0.3, reward=lambda s: 0.3 - 0.0001 * s, **dev(0.3, 0.4))
    assert [(v.rule, v.step) for v in acting(stuck)] == [("entropy_stuck", 58)]


def test_prompts_beyond_the_policy_are_filtered_and_then_stop_the_run() -> None:
    groups = {"zero_variance_share": 1.0, "all_wrong_share": 1.0, "all_right_share": 0.0}
    hopeless = run(40, effective_prompts=0.0, **rewarded(0.0), **groups)
    assert [(v.rule, v.step) for v in acting(hopeless)] == [
        ("prompts_too_hard", 9),
        ("prompts_too_hard", 24),
        ("advantage_collapse", 38),
        ("prompts_too_hard", 39),
    ]


def test_mostly_constant_groups_warn() -> None:
    assert levels(run(20, zero_variance_share=0.75, all_right_share=0.4, all_wrong_share=0.35)) == {"zero_variance": 19}


def test_a_learning_rate_that_destroys_the_policy_is_stopped_within_five_steps_of_the_collapse() -> None:
    curve = [0.33, 0.34, 0.33, 0.3, 0.24, 0.15, 0.06, 0.02] + [0.0] * 12
    broken = run(20, **rewarded(lambda s: curve[s]))
    assert [(v.rule, v.step) for v in acting(broken)] == [("reward_collapse", 10)]


def test_a_run_that_had_learned_and_then_breaks_is_stopped_within_five_steps() -> None:
    broken = run(80, **rewarded(lambda s: min(0.9, 0.02 + 0.02 * s) if s < 60 else 0.0))
    assert [(v.rule, v.step) for v in acting(broken)] == [("reward_collapse", 63), ("reward_collapse", 73)]


def test_a_policy_that_never_solved_anything_has_no_reward_to_collapse() -> None:
    assert "reward_collapse" not in levels(run(100, accuracy=lambda s: 0.05 if s % 7 == 0 else 0.0))


def test_training_accuracy_below_half_of_its_start_warns_and_held_out_accuracy_decides() -> None:
    fall = rewarded(lambda s: 0.4 if s < 10 else 0.15)
    assert levels(run(60, **fall, dev_pass_at_1=0.4)) == {"reward_halved": 14}
    back, *again = acting(run(60, **fall, dev_pass_at_1=lambda s: 0.4 if s < 30 else 0.15, fall_evidence=6.0))
    assert (back.rule, back.level, back.step, back.clean) == ("held_out_collapse", "rollback", 39, 19)
    # They still hold, and say so every ten steps.
    assert {verdict.rule for verdict in again} == {"held_out_collapse", "held_out_falls"}


def test_distance_from_the_reference_alone_is_no_warning() -> None:
    assert levels(run(10, kl_ref=lambda s: 0.02 * s)) == {}


def test_a_weight_on_accuracy_is_not_taken_for_shaping() -> None:
    assert levels(run(10, accuracy=0.9, reward=9.0, shaping=0.0)) == {}
    assert "shaping_outweighs" in levels(run(10, accuracy=0.9, reward=4.9, shaping=4.0))


@pytest.mark.parametrize(
    ("signal", "rule", "level"),
    [
        ("broken_settings", "settings_differ", "rollback"),
        ("broken_sampler", "sampler_broken", "intervene"),
        ("broken_learner", "learner_broken", "rollback"),
        ("nonfinite_weights", "nonfinite_weights", "rollback"),
        ("nonfinite_tokens", "nonfinite_tokens", "intervene"),
        ("updates_skipped", "poisoned_batch", "intervene"),
    ],
)
def test_what_is_found_exactly_is_acted_on_in_that_step(signal: str, rule: str, level: str) -> None:
    (found,) = acting(run(10, **{signal: lambda s: float(s == 4)}))
    assert (found.rule, found.level, found.step, found.clean) == (rule, level, 4, 3)


def test_evidence_of_a_fall_is_acted_on() -> None:
    fall = {"fall_evidence": lambda s: 12.0 if s == 5 else -1.0, "fall_evidence_since": lambda s: 2.0}
    (found,) = acting(run(10, **fall))
    assert (found.rule, found.step, found.clean) == ("accuracy_fell", 5, 2)


def test_distance_that_doubles_while_held_out_accuracy_is_flat_warns() -> None:
    drift = {"kl_ref": lambda s: 0.02 + 0.0004 * s}
    assert "kl_unrewarded" in levels(run(150, **drift, dev_pass_at_1=0.4))
    assert "kl_unrewarded" not in levels(run(150, **drift, dev_pass_at_1=rise(0.3, 0.6, 60)))


@pytest.mark.parametrize(
    ("signal", "value", "rule", "step"),
    [
        ("mismatch_k3", 0.002, "mismatch", 4),
        ("mismatch_mean", 0.03, "mismatch_gap", 4),
        ("mismatch_max", 2.5, "mismatch_extreme", 4),
        ("ess", 0.4, "ess_low", 4),
        ("truncated_share", 0.5, "truncated", 9),
        ("second_compared", 0.0, "second_silent", 4),
    ],
)
def test_a_limit_held_for_its_streak_warns(signal: str, value: float, rule: str, step: int) -> None:
    faulty = run(12, **{signal: value})
    assert levels(faulty) == {rule: step}


def test_many_skipped_updates_take_the_run_back():
    often = acting(run(20, updates_skipped=lambda s: s >= 10, nonfinite=lambda s: s >= 10))
    assert ("nonfinite_again", "rollback", 14) in [(v.rule, v.level, v.step) for v in often]


@pytest.mark.parametrize(
    ("signal", "value", "rule", "level"),
    [
        ("mismatch_times", 1.5, "sampler_differs", "intervene"),
        ("repeat_evidence", 12.0, "sampler_repeats", "intervene"),
        ("reversal_evidence", 12.0, "updates_reversed", "rollback"),
        ("broken_schedule", 1.0, "schedule_differs", "intervene"),
        ("weights_still", 1.0, "tensor_stands", "rollback"),
        ("batch_torn", 1.0, "batch_torn", "stop"),
    ],
)
def test_a_part_that_breaks_in_the_middle_is_named(signal: str, value: float, rule: str, level: str) -> None:
    found = acting(run(30, updates_skipped=0.0, **{signal: lambda s: value if s >= 12 else 0.0}))
    assert (found[0].rule, found[0].level) == (rule, level)
    assert acting(run(30, updates_skipped=0.0, **{signal: 0.0})) == []


@pytest.mark.parametrize(
    ("explained", "rounding", "fault"), [(1e-3, 5e-4, 2e-3), (1e-2, 5e-3, 2e-2), (0.15, 0.05, 0.3)]
)
def test_a_gap_that_lasts_is_a_fault_only_where_the_number_formats_do_not_explain_it(
    explained: float, rounding: float, fault: float
) -> None:
    assert acting(run(30, mismatch_explained=explained, mismatch_k3=rounding)) == []
    found = acting(run(12, mismatch_explained=explained, mismatch_k3=fault))
    assert [(verdict.rule, verdict.level, verdict.step) for verdict in found] == [("mismatch", "intervene", 4)]


def test_a_question_that_fills_the_step_is_held_to_one_group_and_then_others_are_drawn_instead():
    flood = run(60, top_prompt_share=0.75, distinct_prompts=3.0, groups_trained=lambda s: 8.0 if s < 5 else 3.0)
    assert [(v.rule, v.level) for v in acting(flood)][:2] == [("one_question", "intervene")] * 2
    refilled = run(60, top_prompt_share=0.75, distinct_prompts=3.0, groups_trained=3.0, attempts=3.0)
    assert acting(refilled) == []


def test_a_second_verifier_that_differs_is_heard_and_one_that_differs_a_lot_takes_the_run_back():
    some = run(30, second_disagreement=lambda s: 0.1, agreement=0.0)
    assert acting(some)[0].rule == "verifiers_disagree"
    much = run(30, second_disagreement=lambda s: 0.6, agreement=0.0)
    assert next((v.rule, v.level, v.step) for v in acting(much)) == ("verifier_is_gamed", "rollback", 4)
    assert acting(run(30, second_disagreement=0.6, agreement=1.0)) == []


@pytest.mark.parametrize(("steps", "expected"), [({17}, []), ({17, 19}, [("verifiers_disagree", 19)])])
def test_a_second_verifier_that_differs_once_in_ten_small_samples_is_not_heard(steps, expected):
    """One of two completions in one step is a twentieth of ten such samples."""
    found = acting(run(26, second_disagreement=lambda s: 0.5 if s in steps else 0.0, agreement=0.0))
    assert [(verdict.rule, verdict.step) for verdict in found] == expected


# Published curves, read off their figures and tables


def test_the_published_run_that_lives_at_low_entropy_and_rises_is_let_be():
    held_out = dev(rise(0.3, 0.45, 150), rise(0.6, 0.75, 150))
    ads = run(400, noise=0.03, entropy=rise(0.9, 0.2, 30), **rewarded(rise(0.35, 0.5, 60)), **held_out)
    assert acting(ads) == []
    assert "entropy_low" in levels(ads)  # the seed rule would have called it a failure


def canary(*points: tuple[int, float]) -> Callable[[int], float]:
    """Straight lines through (step, score in per cent)."""

    def value(step: int) -> float:
        for (start, low), (end, high) in itertools.pairwise(points):
            if step <= end:
                return (low + (high - low) * max(0, step - start) / (end - start)) / 100
        return points[-1][1] / 100

    return value


def beyond(drop: float) -> dict[str, float]:
    """What one probe set of level rollback shows that has fallen so far, by the default limit of five points."""
    return {"canary_drop": drop, "canaries_beyond_rollback": float(drop > 0.05)}


@pytest.mark.parametrize(
    ("curve", "accuracy", "latest"),
    [
        (canary((0, 77), (50, 56), (125, 42)), rise(0.05, 1.0, 15), 60),
        (canary((0, 97), (240, 97), (275, 21)), lambda s: 0.0 if s < 240 else min(1.0, (s - 240) / 10), 250),
    ],
    ids=["Llama-3.2-3B", "Qwen2.5-7B"],
)
def test_the_published_one_shot_attacks_are_noticed_in_time(curve, accuracy, latest):
    """2606.10931: fairness falls; of the second nothing is seen for 240 steps, and then everything within 35."""
    records = [
        StepRecord(one.step, {**one.signals, **(beyond(curve(0) - curve(one.step)) if one.step % 10 == 0 else {})})
        for one in run(300, **rewarded(accuracy), top_prompt_share=1.0, distinct_prompts=1.0)
    ]
    first = next(verdict for verdict in replay(RULES, records) if verdict.rule == "canary_falls")
    assert (first.level, first.step <= latest) == ("rollback", True)
    assert levels(records)["one_question"] < 5  # what the batches are made of is seen before anything happens


def test_a_verifier_that_cannot_judge_acting() -> None:
    assert [v.rule for v in acting(run(5, unscorable_share=0.8))] == ["unscorable_flood", "unscorable"]


def test_a_log_of_another_trainer_with_nan_entropy_breaches_at_once() -> None:
    assert "entropy_collapse" in levels(run(25, entropy=lambda s: math.nan if s == 22 else 1.0))


def test_a_schedule_stands_where_prompts_repeat_but_not_where_all_of_them_are_too_hard() -> None:
    """Windows of ads stay at the easiest prompts of a policy that solves none: that is the policy's fault (GSM8K)."""
    stands: dict[str, Column] = {"schedule_repeated": 1.0, "schedule_coverage": 0.02}
    assert "schedule_stands" in levels(run(6, **stands))
    assert "schedule_stands" not in levels(run(6, **stands, all_wrong_share=1.0, **rewarded(0.0)))
