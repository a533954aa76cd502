"""The GRPO loop: what a step records, and that stopping in between changes no byte."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from factories import Judge, parity, policy, prompts, settings, workspace
from training_runs import judged_by_parity, killed, outputs, records, train

from components.errors import InputError, NoCandidate, PeerLost
from components.files import append_line, read_json, read_jsonl, sha256_tree
from components.health.monitor import Monitor
from components.health.signals import dev_signals, find_signal
from components.layout import Layout
from components.learner.batch import build_batch
from components.learner.build import build_learner
from components.policy import load_policy
from components.progress import PROGRESS_VARIABLE
from components.rollout import Collector, build_engine
from components.stages import train as stage
from components.training import assembly, conduct, soundness
from components.training import update as updating
from components.training.heldout import HeldOut
from components.training.reference import reads_reference
from components.training.run import RunState
from components.types import StepRecord
from tests.tiers import slow_but

__all__ = ["judged_by_parity"]  # of every test here

ONE_STEP = {"steps": 1}
KL = {"knob": "objective.kl.beta", "to": 0.05}
STOP_AT_2 = {"rules": {"enough": {"when": "accuracy >= 0", "streak": 3, "level": "stop", "why": "a test"}}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """An uninterrupted run."""
    return train(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A run with a rule that reads the distance to the start."""
    far = {"when": "kl_ref > 1e9", "why": "w"}
    return train(tmp_path_factory.mktemp("measured"), settings(health={"rules": {"far": far}}))


# What a run leaves


def test_a_run_trains_every_step_and_says_so(finished):
    metrics = read_json(finished.train_metrics)
    assert [row["step"] for row in records(finished)] == list(range(5))
    assert (metrics["outcome"], metrics["steps"], metrics["stopped_by"], metrics["reason"]) == (
        "completed",
        5,
        None,
        "",
    )
    assert (metrics["triage"], metrics["override"], metrics["checkpoint_step"]) == ("accept", "", 5)
    assert metrics["final"] == records(finished)[-1]["signals"]
    assert metrics["checkpoint_sha256"] == sha256_tree(finished.train_checkpoint)


def test_the_trained_policy_loads_and_differs_from_the_one_it_started_from(finished):
    before, after = (
        load_policy(path, settings().policy) for path in (finished.sft_checkpoint, finished.train_checkpoint)
    )
    assert all(not torch.equal(w, before.weights()[name]) for name, w in after.weights().items())


def test_every_signal_is_documented_and_within_its_bounds(finished):
    for row in records(finished):
        for name, value in row["signals"].items():
            assert find_signal(name).low <= value <= find_signal(name).high, (row["step"], name)


def test_dev_figures_and_the_distance_to_the_start_exist_on_evaluation_steps_only(measured):
    sometimes = {"dev_pass_at_1", "dev_pass_at_1_se", "dev_pass_at_k", "dev_pass_at_k_se", "kl_ref"}
    found = {row["step"]: sometimes & row["signals"].keys() for row in records(measured)}
    assert found == {step: sometimes if step % 3 == 0 else set() for step in range(5)}


def test_the_signals_of_a_step_describe_its_first_policy(measured):
    first, *_, last = [row["signals"] for row in records(measured) if "kl_ref" in row["signals"]]
    assert first["kl_ref"] == pytest.approx(0.0, abs=1e-6)
    assert last["kl_ref"] > 1e-3


def test_the_sampler_has_the_learners_weights_at_every_step(finished):
    assert max(row["signals"]["mismatch_max"] for row in records(finished)) < 1e-4


def test_the_curves_have_a_row_a_step_and_a_column_a_signal(finished):
    header, *rows = finished.curves.read_text().splitlines()
    names = sorted({name for row in records(finished) for name in row["signals"]})
    assert header.split(",") == ["step", *names]
    assert [row.split(",")[0] for row in rows] == [str(step) for step in range(5)]


def test_dynamic_sampling_and_the_schedule_show_in_the_record(finished):
    signals = [row["signals"] for row in records(finished)]
    assert any(s["groups_sampled"] > s["groups_trained"] for s in signals)
    assert all(s["groups_sampled"] == 4 * s["attempts"] for s in signals)
    assert signals[-1]["schedule_coverage"] > signals[0]["schedule_coverage"]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(finished, tmp_path):
    assert outputs(train(tmp_path / "again")) == outputs(finished)
    other = train(tmp_path / "other", settings(seed=1))
    assert sha256_tree(other.train_checkpoint) != sha256_tree(finished.train_checkpoint)


# Killed and started again


@pytest.mark.parametrize(
    ("method", "times", "after"),
    slow_but(
        [
            ("append", 1, True),
            *(("checkpoint", times, after) for times in (1, 2, 3) for after in (False, True)),
            ("append", 4, False),
        ],
        ("append", 1, True),
        ("checkpoint", 1, False),
        ("checkpoint", 2, True),
        ("append", 4, False),
    ),
)
def test_a_run_killed_anywhere_ends_with_the_same_bytes(finished, tmp_path, method, times, after):
    layout = workspace(tmp_path)
    with killed(method, times, after=after):
        stage.run(settings(), layout)
    assert not layout.train_metrics.exists()
    assert outputs(train(tmp_path)) == outputs(finished)


def test_a_log_that_was_torn_by_the_kill_is_repaired(finished, tmp_path):
    layout = workspace(tmp_path)
    with killed("append", 4):
        stage.run(settings(), layout)
    with (layout.state / "train" / "records.jsonl").open("ab") as log:
        log.write(b'{"step": 4, "sig')
    assert outputs(train(tmp_path)) == outputs(finished)


def test_a_finished_run_is_not_trained_again(finished, tmp_path, monkeypatch):
    train(tmp_path)
    monkeypatch.setattr(RunState, "append", lambda *_: pytest.fail("a step was repeated"))
    assert outputs(train(tmp_path)) == outputs(finished)


def test_other_settings_start_afresh(tmp_path):
    fast, slow = (settings(learner={"lr": lr}, train={"steps": 2}) for lr in (1e-2, 1e-4))
    assert read_json(train(tmp_path, fast).train_metrics)["final"]["lr"] == pytest.approx(1e-2)
    assert read_json(train(tmp_path, slow).train_metrics)["final"]["lr"] == pytest.approx(1e-4)
    assert outputs(train(tmp_path / "fresh", slow)) == outputs(Layout(tmp_path))


def test_settings_that_training_does_not_depend_on_keep_the_state(tmp_path, monkeypatch):
    train(tmp_path)
    monkeypatch.setattr(RunState, "append", lambda *_: pytest.fail("a step was repeated"))
    train(tmp_path, settings(gate={"min_gain": 0.5}, evaluation={"samples": 3}))


def test_a_log_that_is_shorter_than_its_checkpoint_is_an_error(tmp_path):
    layout = train(tmp_path)
    log = layout.state / "train" / "records.jsonl"
    log.unlink()
    append_line(log, {"step": 0})
    with pytest.raises(InputError, match="expected 5 rows, found 1"):
        train(tmp_path)


# The monitor


def test_a_rule_that_says_stop_ends_the_run_and_is_recorded(tmp_path):
    layout = train(tmp_path, settings(health=STOP_AT_2))
    metrics = read_json(layout.train_metrics)
    assert (metrics["outcome"], metrics["steps"], metrics["checkpoint_step"]) == ("stopped", 3, 0)
    assert metrics["stopped_by"] == "enough"
    assert "a test" in metrics["reason"]
    verdicts = list(read_jsonl(layout.train / "verdicts.jsonl"))
    assert [(v["rule"], v["level"], v["step"]) for v in verdicts] == [("enough", "stop", 2)]
    assert [row["notes"]["verdicts"] for row in records(layout)] == [[], [], verdicts]


def test_a_stopped_run_stays_stopped_when_it_is_started_again(tmp_path, monkeypatch):
    chosen = settings(health=STOP_AT_2)
    before = outputs(train(tmp_path, chosen))
    monkeypatch.setattr(RunState, "append", lambda *_: pytest.fail("a step was repeated"))
    assert outputs(train(tmp_path, chosen)) == before


@pytest.mark.parametrize("after", [False, True])
def test_a_streak_goes_on_through_a_kill(tmp_path, after):
    chosen = settings(health=STOP_AT_2)
    expected = outputs(train(tmp_path / "whole", chosen))
    layout = workspace(tmp_path / "killed")
    with killed("checkpoint", 1, after=after):
        stage.run(chosen, layout)
    assert outputs(train(tmp_path / "killed", chosen)) == expected


def test_a_warning_is_recorded_and_the_run_goes_on(tmp_path):
    rule = {**STOP_AT_2["rules"]["enough"], "level": "warn"}
    layout = train(tmp_path, settings(health={"rules": {"enough": rule}}))
    assert read_json(layout.train_metrics)["outcome"] == "completed"
    assert [v["step"] for v in read_jsonl(layout.train / "verdicts.jsonl")] == [2]


def test_a_monitor_that_breaks_does_not_end_the_training_and_the_record_says_so(tmp_path, monkeypatch, capsys):
    def broken(monitor: Monitor, record: StepRecord) -> list[Any]:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Monitor, "observe", broken)
    layout = train(tmp_path, settings(health=STOP_AT_2))
    assert read_json(layout.train_metrics)["outcome"] == "completed"
    assert ["monitor_failed" in row["notes"] for row in records(layout)] == [True, False, False, False, False]
    assert "the health monitor broke at step 0 and is off: ZeroDivisionError: a bug" in capsys.readouterr().err


GRAVE = {"when": "entropy > -1 and step < 1", "level": "rollback", "part": "policy", "why": "planted"}
"""Asks for a roll-back in the first step, so that a diagnosis is made."""


@pytest.mark.parametrize(
    ("module", "look"), [(updating, "rows_of"), (updating, "effect"), (soundness, "inspect"), (conduct, "diagnosed")]
)
def test_no_look_that_breaks_ends_the_training(tmp_path, monkeypatch, module, look):
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(module, look, broken)
    layout = train(tmp_path, settings(health={"rules": {"grave": GRAVE}}))
    assert read_json(layout.train_metrics)["outcome"] == "completed"
    assert [row["step"] for row in records(layout) if "monitor_failed" in row["notes"]] == [0]


def test_a_server_that_is_lost_during_a_look_is_no_fault_of_the_monitor(tmp_path, monkeypatch):
    def lost(*_: Any, **__: Any) -> None:
        raise PeerLost("no server is left")

    monkeypatch.setattr(updating, "effect", lost)
    with pytest.raises(PeerLost, match="no server is left"):
        train(tmp_path)


def test_a_monitor_that_is_off_says_nothing(tmp_path):
    layout = train(tmp_path, settings(health={**STOP_AT_2, "enabled": False}))
    assert read_json(layout.train_metrics)["outcome"] == "completed"
    assert list(read_jsonl(layout.train / "verdicts.jsonl")) == []


# Prompts that carry no gradient


def test_steps_without_a_gradient_change_no_weight_and_are_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "Scorer", lambda *_: Judge(lambda _: 0.0))
    layout = train(tmp_path)
    assert [row["signals"]["groups_trained"] for row in records(layout)] == [0.0] * 5
    assert all("loss" not in row["signals"] for row in records(layout))
    weights = (path / "model.safetensors" for path in (layout.sft_checkpoint, layout.train_checkpoint))
    assert len({path.read_bytes() for path in weights}) == 1


def test_a_verifier_that_judges_nothing_trains_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "Scorer", lambda *_: Judge(lambda _: None))
    signals = records(train(tmp_path, settings(train=ONE_STEP)))[0]["signals"]
    assert (signals["unscorable_share"], signals["groups_trained"]) == (1.0, 0.0)
    assert not {"accuracy", "reward", "zero_variance_share", "dev_pass_at_1"} & signals.keys()


@pytest.mark.parametrize(
    "sections",
    [
        {"rollout": {"dynamic_sampling": None}},
        {"schedule": {"kind": "uniform"}},
        {"schedule": {"kind": "forecast"}, "rollout": {"two_stage": {"first": 2}}},
        {"schedule": {"kind": "greso"}, "rollout": {"dynamic_sampling": {"sized": True}}},
        {
            "objective": {
                "kl": {"kind": "k3_straight_through"},
                "correction": None,
                "aggregation": {"kind": "sequence_mean"},
            }
        },
        {"learner": {"updates_per_step": 1}},
        {"objective": {"advantage": {"kind": "grpo", "std": "none"}}},
    ],
)
def test_every_method_trains_to_the_same_bytes_after_a_kill(tmp_path, sections):
    chosen = settings(**sections, train={"steps": 3})
    expected = outputs(train(tmp_path / "whole", chosen))
    layout = workspace(tmp_path / "killed")
    with killed("checkpoint", 1):
        stage.run(chosen, layout)
    assert outputs(train(tmp_path / "killed", chosen)) == expected


# Triage


def test_a_refusal_of_triage_is_an_answer_and_not_an_error(tmp_path):
    with pytest.raises(NoCandidate, match=r"triage refused[^$]*no entropy[^$]*no gap") as caught:
        train(tmp_path, verdict="refuse")
    assert caught.value.exit_code == 3
    assert "triage.override" in str(caught.value)
    assert not Layout(tmp_path).train.exists()


@pytest.mark.parametrize("reason", ["", "   "])
def test_an_override_needs_a_reason(tmp_path, reason):
    with pytest.raises(NoCandidate):
        train(tmp_path, settings(triage={"override": reason}), verdict="refuse")


def test_an_override_is_recorded_with_its_reason(tmp_path):
    layout = train(tmp_path, settings(triage={"override": "to see it stop"}, train=ONE_STEP), verdict="refuse")
    metrics = read_json(layout.train_metrics)
    assert (metrics["triage"], metrics["override"]) == ("overridden", "to see it stop")


def test_a_reason_that_was_not_needed_overrides_nothing(tmp_path):
    metrics = read_json(train(tmp_path, settings(triage={"override": "in case"}, train=ONE_STEP)).train_metrics)
    assert (metrics["triage"], metrics["override"]) == ("accept", "")


def test_training_without_triage_is_an_error(tmp_path):
    workspace(tmp_path).triage.unlink()
    with pytest.raises(InputError, match="file not found") as caught:
        train(tmp_path)
    assert "triage stage" in str(caught.value.how)


def test_training_prompts_too_few_for_the_schedule_are_an_error(tmp_path):
    with pytest.raises(InputError, match="ADS needs 2 clusters"):
        train(tmp_path, train=4)


# The live line


def test_progress_is_reported_during_the_run_in_a_line_and_to_prometheus(tmp_path, monkeypatch):
    notes = tmp_path / "progress.jsonl"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(notes))
    textfile = tmp_path / "evenkeel.prom"
    train(tmp_path / "run", settings(health={**STOP_AT_2, "prometheus": {"textfile": textfile}}))
    lines = [row["note"] for row in read_jsonl(notes) if row["note"]]
    assert lines[0].startswith("acc ") and lines[0].endswith("  healthy")
    assert lines[-1].endswith("  stopped: enough")
    for sample in ('verdicts_total{level="stop",rule="enough"', 'responses_total{level="stop",rule="enough"', "step{"):
        (line,) = [line for line in textfile.read_text().splitlines() if line.startswith(f"evenkeel_{sample}")]
        assert float(line.rpartition(" ")[2]) == (2 if sample == "step{" else 1)


# Held-out prompts and the reference


def held_out(accuracy: Any, count: int = 3, samples: int = 4) -> HeldOut:
    micro = policy()
    collector = Collector(micro, build_engine(micro, settings().rollout), Judge(accuracy), settings().rollout)
    return HeldOut(collector, prompts(count), samples)


def dev_figures(measured: HeldOut, seed: int) -> dict[str, float]:
    return dev_signals(measured.sample(seed), measured.samples)


def test_held_out_accuracy_repeats_with_its_seed():
    measured = held_out(parity)
    assert dev_figures(measured, 1) == dev_figures(measured, 1)
    assert len({dev_figures(measured, seed)["dev_pass_at_1"] for seed in range(5)}) > 1


def test_held_out_pass_at_k_counts_prompts_with_a_right_sample():
    outcomes = iter([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, None, None])
    assert dev_figures(held_out(lambda _: next(outcomes)), 0) == {
        "dev_pass_at_1": pytest.approx((0.25 + 0 + 1) / 3),
        "dev_pass_at_k": pytest.approx(2 / 3),
        "dev_pass_at_1_se": pytest.approx(0.3004626),
        "dev_pass_at_k_se": pytest.approx(1 / 3),
    }


def test_held_out_figures_of_nothing_do_not_exist():
    assert dev_figures(held_out(lambda _: None), 0) == {}


def test_the_reference_stays_where_it_was_when_the_policy_moves():
    micro = policy()
    learner = build_learner(micro, settings(), reference=True)
    measured = held_out(parity)
    groups = measured._collector.groups(prompts(2), measured._collector.sampling(seed=0))
    batch = build_batch(groups, micro.pad_id)
    before = learner.reference(batch)
    with torch.no_grad():
        for parameter in micro.model.parameters():
            parameter.add_(1.0)
    assert torch.equal(learner.reference(batch), before)
    assert torch.allclose(before[batch.response_mask], batch.rollout_logp[batch.response_mask], atol=1e-4)


@pytest.mark.parametrize(
    ("sections", "read"),
    [
        ({"health": {"enabled": False}}, False),
        ({"health": {"rules": {"any": {"when": "kl_old > 1", "why": "w"}}}}, False),
        ({"health": {"rules": {"far": {"when": "kl_old > 1", "unless": "kl_ref < 1", "why": "w"}}}}, True),
        (
            {"health": {"rules": {"far": {"when": "kl_old > 1", "why": "w", "level": "intervene", "action": [KL]}}}},
            True,
        ),
        ({"health": {"enabled": False}, "objective": {"kl": {"kind": "k2"}}}, True),
    ],
)
def test_a_learner_keeps_a_reference_where_the_loss_or_a_rule_reads_it_or_may_do_so(sections, read):
    chosen = settings(**sections)
    assert reads_reference(chosen) == read
    learner, groups = build_learner(policy(), chosen, reference=read), held_out(parity).sample(seed=0)
    batch = build_batch(groups, pad_id=0)
    if read:
        assert torch.allclose(learner.reference(batch), learner.logprobs(batch), atol=1e-5)
    else:
        with pytest.raises(ValueError, match="without a reference"):
            learner.reference(batch)
