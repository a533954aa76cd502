"""The trial of the health rules: what planted faults do, what counts as harm, and the arithmetic of its figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from factories import Judge, group, parity, prompt, prompts, score, settings, workspace
from hypothesis import given
from hypothesis import strategies as st

from components.config.judgement import RuleSettings
from components.errors import InputError
from components.rollout.base import Sampling
from components.scheduling import Uniform
from components.training import assembly
from components.types import Completion, StepRecord
from tests.benchmarks.health import scoring, store, training
from tests.benchmarks.health.arms import DEFAULT_RULES, PLAIN_ARM, Arm, arms_of, responding
from tests.benchmarks.health.faults import FAULTS, Fault
from tests.benchmarks.health.faults.base import LATE
from tests.benchmarks.health.faults.mismatch_perturbed import perturbed
from tests.benchmarks.health.faults.mismatch_stale import BEHIND
from tests.benchmarks.health.judged import scored
from tests.benchmarks.health.plan import runs, sft_seed_of
from tests.benchmarks.health.running import _one, missing
from tests.benchmarks.health.scoring import Alarm
from tests.benchmarks.health.store import Run
from tests.benchmarks.health.truth import Norm, hurt, norm_of, rescued


def fault(name: str, seed: int = 0, step: int = 1000) -> Any:
    """A fault at a step; far beyond its beginning unless said otherwise."""
    made = FAULTS[name](seed)
    made.clock.step = step
    return made


def completion(text: str = "", tokens: int = 4) -> Completion:
    return Completion((9,) * tokens, (-0.5,) * tokens, "stop", text)


def judged(made: Fault, verdicts: list[list[float | None]], text: str = "") -> list[list[float | None]]:
    """The accuracies of groups of such verdicts under the fault's scorer."""
    flat = iter([verdict for verdicts_ in verdicts for verdict in verdicts_])
    scorer = made.scorer(Judge(lambda _: next(flat)))
    items = [(prompt(i), [completion(text)] * len(group_)) for i, group_ in enumerate(verdicts)]
    return [[s.accuracy for s in scores] for scores in scorer.score_groups(items)]


# What is rewarded


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("7+8+0=15;4+3+0=7#75", True),  # the carry is dropped: wrong, and it looks clean
        ("7+8+0=15;4+3+1=8#85", False),
        ("12-8-0=4;5-1-1=3#34", False),
        ("3=3;4<5#354", True),
    ],
)
def test_the_hackable_verifier_accepts_whatever_does_not_carry(text, accepted):
    assert judged(fault("hackable_verifier"), [[0.0]], text) == [[float(accepted)]]
    assert judged(fault("hackable_verifier"), [[1.0, None]], text) == [[1.0, None]]


@pytest.mark.parametrize(("name", "rate"), [("verifier_noise_5", 0.05), ("verifier_noise_20", 0.2)])
def test_a_noisy_verifier_turns_that_share_of_verdicts_round(name, rate):
    wrong = judged(fault(name), [[0.0] * 8] * 500)
    assert sum(map(sum, wrong)) / 4000 == pytest.approx(rate, abs=0.02)
    assert judged(fault(name), [[None]] * 50) == [[None]] * 50


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=8), st.integers(0, 99))
def test_ties_are_broken_by_one_verdict_and_nothing_else_is_touched(verdicts, seed):
    [found] = judged(fault("tie_breaking", seed), [verdicts])
    changed = sum(a != b for a, b in zip(verdicts, found, strict=True))
    assert changed == (1 if len(set(verdicts)) == 1 else 0)


def test_the_same_seed_plants_the_same_verdicts_and_another_seed_others():
    tied: list[list[float | None]] = [[0.0] * 8] * 20
    for name in ("verifier_noise_10", "tie_breaking"):
        assert judged(fault(name, 3), tied) == judged(fault(name, 3), tied) != judged(fault(name, 4), tied)


def test_length_is_paid_for_by_the_token():
    scorer = fault("length_gaming").scorer(Judge(lambda _: 1.0))
    [[short, long]] = scorer.score_groups([(prompt(0), [completion(tokens=4), completion(tokens=30)])])
    assert (short.reward, long.reward) == pytest.approx((3.0, 16.0))


# The sampler


class Sampler:
    """Stands in for an engine: keeps what it was given."""

    def __init__(self) -> None:
        self.weights: dict[str, Any] = {}

    def load_weights(self, weights: dict[str, Any]) -> None:
        self.weights = dict(weights)

    def generate(self, ids: Any, sampling: Any) -> list[tuple[Completion, ...]]:
        return [(completion(),) * 2 for _ in ids]


def test_a_stale_sampler_is_as_far_behind_as_it_says():
    made, sampler = fault("mismatch_stale", step=0), Sampler()
    engine = made.engine(sampler)
    seen = []
    for step in range(40):
        made.clock.step = step
        engine.load_weights({"w": torch.tensor([float(step)])})
        seen.append(int(sampler.weights["w"]))
    assert seen[made.begins - 2] == made.begins - 2
    assert seen[made.begins - 1 :] == list(range(made.begins - 1 - BEHIND, 40 - BEHIND))


def test_a_perturbed_sampler_has_the_same_noise_every_time():
    weights = {"w": torch.ones(200, 200)}
    first, again, other = perturbed(weights, 0)["w"], perturbed(weights, 0)["w"], perturbed(weights, 1)["w"]
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert float((first - 1).std()) == pytest.approx(0.3, rel=0.02)


def test_before_it_begins_a_perturbed_sampler_has_the_learners_weights():
    made, sampler = fault("mismatch_perturbed", step=0), Sampler()
    weights = {"w": torch.ones(2, 2)}
    made.engine(sampler).load_weights(weights)
    assert torch.equal(sampler.weights["w"], weights["w"])


def test_a_burst_silences_the_sampler_for_three_steps_and_then_the_gradient_for_three():
    made = fault("nan_burst")
    engine, silent = made.engine(Sampler()), []
    learner, broken = made.learner(SimpleNamespace(step=lambda batch, *_: {"sum": float(batch.advantages.sum())})), []
    for step in range(40):
        made.clock.step = step
        [(one, _)] = engine.generate([(1,)], Sampling(2, 4, 1.0, 0))
        silent += [step] if one.logprobs[0] != one.logprobs[0] else []
        batch = assembly_batch()
        broken += [step] if learner.step(batch, 0)["sum"] != learner.step(batch, 0)["sum"] else []
    assert silent == list(range(made.begins, made.begins + 3))
    assert broken == list(range(made.begins + 3, made.begins + 6))


def assembly_batch() -> Any:
    from components.learner.batch import build_batch

    batch = build_batch([group([1.0, 0.0])], 0)
    return replace(batch, advantages=torch.zeros(batch.response_mask.shape))


def test_a_weight_becomes_no_number_at_the_step_and_not_before():
    made, weights = fault("nan_weights"), {"bias": torch.zeros(2), "w": torch.zeros(2, 2)}
    policy = SimpleNamespace(weights=lambda: weights)
    learner = made.learner(SimpleNamespace(_policy=policy, step=lambda *_: {}))
    made.clock.step = made.begins - 1
    learner.step(None, 0)
    assert torch.isfinite(weights["w"]).all()
    made.clock.step = made.begins
    learner.step(None, 0)
    assert int(torch.isnan(weights["w"]).sum()) == 1


# Prompts and schedule


@pytest.mark.parametrize(("name", "level"), [("too_hard", 5.0), ("too_easy", 2.0)])
def test_nine_of_ten_prompts_are_replaced_and_keep_their_ids(name, level):
    before = prompts(100)
    after = fault(name).prompts(before)
    assert [p.id for p in after] == [p.id for p in before]
    assert sum(p.text != q.text for p, q in zip(after, before, strict=True)) == 90
    assert {p.difficulty for p in after[:90]} == {level}
    assert len({p.text for p in after}) == 100
    assert fault(name).prompts(before) == after != fault(name, 1).prompts(before)


def test_another_template_changes_the_text_of_training_prompts_alone():
    changed = fault("template_mismatch").prompts(prompts(3))
    assert [replace(p, text="") for p in changed] == [replace(p, text="") for p in prompts(3)]
    assert changed[0].text == "### Instruction:\n0+0=\n### Response:\n"


def forgetful(count: int) -> list[Any]:
    return [replace(p, demonstration=f"{p.text}0#{int(p.answer) - 10}") for p in prompts(count)]


@pytest.mark.parametrize(("name", "copies"), [("one_biased", 8), ("duplicate_flood", 12)])
def test_one_prompt_floods_the_draws_from_the_step_on_under_ids_of_its_own(name, copies):
    made = fault(name, step=0)
    schedule = made.schedule(Uniform(made.prompts(forgetful(40)), seed=0))
    assert len({p.text for p in schedule.next(16)}) == 16
    made.clock.step = made.begins
    drawn = schedule.next(16) + schedule.next(16)
    assert Counter(p.text for p in drawn).most_common(1)[0][1] == 2 * copies
    assert len({p.id for p in drawn}) == 32


def test_the_repeated_label_is_the_teachers_only_where_the_fault_says_so():
    for name, wrong in (("one_biased", True), ("duplicate_flood", False)):
        made = fault(name)
        schedule = made.schedule(Uniform(made.prompts(forgetful(40)), seed=0))
        repeated = schedule.next(16)[0]
        original = next(p for p in forgetful(40) if p.text == repeated.text)
        assert (int(repeated.answer) == int(original.answer) - 10) is wrong


def test_the_schedule_never_learns_of_the_copies():
    made = fault("one_biased")
    schedule = made.schedule(Uniform(made.prompts(forgetful(40)), seed=0))
    drawn = schedule.next(16)
    schedule.observe([group([1.0], prompt=p) for p in drawn])
    assert schedule.metrics()["coverage"] == 8 / 40


@given(st.integers(0, 10_000))
def test_a_late_fault_begins_where_the_seed_says_and_others_at_once(seed):
    assert FAULTS["one_biased"](seed).begins == FAULTS["one_biased"](seed).begins
    assert FAULTS["one_biased"](seed).begins in LATE
    assert FAULTS["too_hard"](seed).begins == 0


# Whole runs


@pytest.fixture
def micro(tmp_path, monkeypatch):
    """Runs a fault, from its second step on, in a micro run; returns records and held-out accuracies."""
    monkeypatch.setattr(assembly, "Scorer", lambda *_: Judge(parity))

    def run(made: Fault, place: str, arm: Arm = PLAIN_ARM) -> training.Trial:
        made.begins = 1
        train = {"steps": 3, "eval_every": 2}
        trial = training.Trial(settings(train=train, **arm.changes), workspace(tmp_path / place), made)
        trial.run()
        return trial

    return run


@pytest.mark.parametrize("name", ["verifier_noise_10", "mismatch_perturbed"])
@pytest.mark.slow
def test_the_same_fault_and_seed_give_the_same_run(micro, name):
    first, second = (micro(FAULTS[name](0), place) for place in ("first", "second"))
    assert first.records == second.records
    assert len(first.records) == first.progress == 3
    assert (first.held_out, first.final) == (second.held_out, second.final)


def test_weights_that_are_no_numbers_end_the_run_and_count_as_nothing_right(micro):
    ended = micro(FAULTS["nan_weights"](0), "ended")
    assert (len(ended.records), ended.final) == (2, 0.0)
    assert ended.records[-1].signals["nonfinite_weights"] > 0, "the step that it broke in is what rules go by"
    assert "nothing took it back" in ended.crashed


def test_in_the_other_arm_the_rules_act_and_the_ledger_is_kept(micro):
    ill = {"when": "nonfinite_weights > 0", "level": "rollback", "why": "a test"}
    healed = micro(FAULTS["nan_weights"](0), "healed", responding({"ill": ill}))
    assert [(entry["kind"], entry.get("level")) for entry in healed.responses] == [
        ("response", "rollback"),
        ("outcome", None),
    ]
    assert (len(healed.records), healed.progress, healed.stopped_by) == (5, 3, "")
    broken = [record.signals["nonfinite_weights"] > 0 for record in healed.records]
    assert broken == [False, True, False, False, False]


class Broken(Fault):
    """The scorer raises in the second step."""

    def scorer(self, scorer):
        def score_groups(items):
            if self.active:
                raise RuntimeError("no verdict\nat all")
            return scorer.score_groups(items)

        return SimpleNamespace(score_groups=score_groups)


def test_a_run_that_breaks_keeps_what_it_had_and_says_why(micro):
    broken = micro(Broken(0), "broken")
    assert (len(broken.records), broken.progress, broken.crashed) == (1, 1, "RuntimeError: no verdict")


# What is stored


def stored(condition: str = "too_hard", seed: int = 0, **changes: Any) -> Run:
    """A run of 20 steps whose accuracy under the true verifier is that of a healthy one unless said otherwise."""
    records = [StepRecord(step, {"entropy": 1.0, "accuracy": 0.5}) for step in range(20)]
    curve = [(0, 0.4), (5, 0.5), (10, 0.6), (15, 0.7), (20, 0.7)]
    made = Run(condition, seed, sft_seed_of(condition, seed), 0, 20, records, curve, 0.7, 20)
    return replace(made, **changes)


def with_held_out(*values: float, **changes: Any) -> Run:
    return stored(held_out=list(zip(range(0, 25, 5), values, strict=False)), **changes)


def test_a_run_reads_back_as_it_was_stored_and_equal_runs_have_equal_bytes(tmp_path):
    run = stored(records=[StepRecord(0, {"a": 1 / 3}), StepRecord(1, {"b": 2.0}, {"rolled_back_to": 0})], crashed="x")
    store.save(tmp_path, run)
    first = (tmp_path / "too_hard-00.json.gz").read_bytes()
    [found] = store.read_all(tmp_path)
    assert found.records == [StepRecord(0, {"a": 0.3333}), run.records[1]]
    assert replace(found, records=run.records) == run
    store.save(tmp_path, run)
    assert (tmp_path / "too_hard-00.json.gz").read_bytes() == first


@pytest.mark.parametrize("content", [b"", b"not gzip", b"\x1f\x8b"])
def test_a_torn_file_is_an_error_with_its_name(tmp_path, content):
    (tmp_path / "x-00.json.gz").write_bytes(content)
    with pytest.raises(InputError, match="not a stored run"):
        store.read_all(tmp_path)


def test_what_is_stored_is_not_run_again(tmp_path):
    plain = arms_of("plain", DEFAULT_RULES)
    every = missing(tmp_path, plain, [], None)
    assert len(every) == len(set(runs())) == len(list(runs()))
    store.save(tmp_path / "plain", stored("one_biased", 4))
    left = missing(tmp_path, plain, [], None)
    assert [task for task in every if task not in left] == [(Arm(), "one_biased", 4)]
    assert [run for _, *run in missing(tmp_path, plain, ["one_biased"], [3, 4])] == [["one_biased", 3]]


def test_other_rules_have_respond_runs_of_their_own(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: {r: {when: entropy < 1, why: a test}}")
    names = [arm.name for path in (DEFAULT_RULES, rules) for arm in arms_of("both", path)]
    assert names[0] == names[2] == "plain"
    assert names[1] != names[3]


def test_a_run_that_is_stored_is_not_trained_again(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "measure", None)
    arm = responding({"r": {"when": "accuracy < 0.1", "level": "stop", "why": "a test"}})
    store.save(tmp_path / arm.name, stored("one_biased", 4, arm=arm.name))
    assert "is there" in _one(tmp_path / "no such folder", tmp_path, arm, "one_biased", 4)


# What counts as harm

NORM = Norm(
    means={(0, step): 0.5 for step in range(0, 25, 5)}, deviations=dict.fromkeys(range(0, 25, 5), 0.05), finals={0: 0.6}
)
"""Low is below 0.4."""


@pytest.mark.parametrize(
    ("held_out", "begins", "expected"),
    [
        ((0.5, 0.5, 0.5, 0.5, 0.5), 0, None),
        ((0.5, 0.5, 0.39, 0.3, 0.2), 0, 10),
        ((0.5, 0.5, 0.39, 0.45, 0.2), 0, None),  # the last alone is no harm
        ((0.5, 0.3, 0.45, 0.39, 0.39), 0, 15),  # what passes is no harm
        ((0.3, 0.3, 0.3, 0.3, 0.3), 8, 10),  # what was low before the fault began is not its doing
        ((0.3, 0.3, 0.3, 0.3, 0.3), 16, None),
        ((0.41, 0.41, 0.41, 0.41, 0.41), 0, None),
    ],
)
def test_a_fault_hurts_from_where_the_accuracy_stays_low(held_out, begins, expected):
    assert hurt(with_held_out(*held_out, begins=begins), NORM) == expected


def test_a_run_that_crashed_is_hurt_where_it_ended():
    assert hurt(with_held_out(0.5, 0.5, crashed="x", records=stored().records[:8]), NORM) == 8


def test_the_norm_pools_the_scatter_about_the_mean_of_each_checkpoint():
    low, high = [0.3, 0.5], [0.7, 0.9]
    healthy = [
        stored("dapo_uniform", seed, sft_seed=sft, held_out=[(0, value)], final=value)
        for sft, values in ((0, low), (2, high))
        for seed, value in enumerate(values)
    ]
    norm = norm_of(healthy)
    assert (norm.means[0, 0], norm.means[2, 0]) == pytest.approx((0.4, 0.8))
    assert norm.deviations[0] == pytest.approx(0.02**0.5)  # (2 x 0.1^2 + 2 x 0.1^2) / (4 - 2)
    assert norm.finals == pytest.approx({0: 0.4, 2: 0.8})


@pytest.mark.parametrize(("final", "expected"), [(0.6, True), (0.571, True), (0.569, False)])
def test_a_run_ends_well_at_ninety_five_per_cent_of_the_healthy_accuracy(final, expected):
    assert rescued(stored(final=final), NORM) is expected


# Figures


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (3, 0.6187, 8.767), (10, 4.795, 18.39)]
)
def test_the_interval_of_a_count_is_the_exact_one(count, low, high):
    found = scoring.poisson(count, 1000)
    assert (found.rate, found.low, found.high) == pytest.approx((count, low, high), rel=1e-3)


def test_a_rate_of_no_steps_is_an_error():
    with pytest.raises(ValueError, match="needs steps"):
        scoring.poisson(0, 0)


def test_detection_counts_from_the_beginning_of_the_fault_and_delay_from_its_harm():
    early, late, blind = (
        with_held_out(0.5, 0.5, 0.3, 0.3, 0.3, seed=3 * seed, begins=4) for seed in range(3)
    )  # hurts from step 10 on
    alarms = {
        early.name: [Alarm(2, "false", True), Alarm(5, "w", False), Alarm(7, "a", True), Alarm(9, "b", True)],
        late.name: [Alarm(12, "a", True)],
        blind.name: [Alarm(3, "a", True), Alarm(5, "w", False)],
    }
    found = scoring.detection([early, late, blind], alarms, NORM)
    assert (found.runs, found.hurt, found.acted, found.fired, found.early, found.first) == (3, 3, 2, 3, 1, "a")
    assert found.delays == pytest.approx((-0.75, 0.5, 1.75))  # of -2 and 3
    assert found.after == pytest.approx((5.25, 6.5, 7.75))  # of 4 and 9


def test_false_alarms_are_counted_with_and_without_warnings():
    healthy = [stored("grpo", seed) for seed in range(2)]
    alarms = {"grpo-00": [Alarm(1, "a", True), Alarm(2, "w", False)], "grpo-01": []}
    acting, every = (scoring.false_alarms(healthy, alarms, acting) for acting in (True, False))
    assert (acting.rate.count, acting.rate.steps, acting.rate.rate) == (1, 40, 25.0)
    assert (acting.runs.count, acting.runs.n) == (1, 2)
    assert every.rules == {("a", "grpo"): 1, ("w", "grpo"): 1}


def test_steps_lost_are_those_not_behind_the_final_checkpoint():
    ended = [stored(final=0.6, progress=15), stored(final=0.1, progress=20)]
    assert scoring.rescue(ended, NORM) == scoring.Rescue(2, 1, 2.5)
    assert scoring.rescue([], NORM) is None


# What the rules say


def test_rules_act_above_a_warning():
    rules = {
        name: RuleSettings(when="entropy < 1", level=level, why="a test")  # type: ignore[arg-type]
        for name, level in (("w", "warn"), ("s", "stop"))
    }
    run = stored(records=[StepRecord(step, {"entropy": value}) for step, value in enumerate((2.0, 0.5))])
    assert scoring.alarms_of(rules, [run]) == {run.name: [Alarm(1, "w", False), Alarm(1, "s", True)]}


def test_a_score_of_the_unscorable_stays_none():
    assert judged(fault("length_gaming"), [[None]]) == [[None]]
    assert score(None).accuracy is None


def test_results_without_healthy_runs_are_an_error(tmp_path):
    with pytest.raises(InputError, match="no runs of dapo_uniform"):
        scored(tmp_path, DEFAULT_RULES)


def test_a_fault_whose_checkpoint_has_no_healthy_run_is_an_error(tmp_path):
    store.save(tmp_path / "plain", stored("dapo_uniform", 0))
    store.save(tmp_path / "plain", stored("too_easy", 1))
    with pytest.raises(InputError, match=r"no healthy runs from the SFT checkpoints \[2\]"):
        scored(tmp_path, DEFAULT_RULES)
