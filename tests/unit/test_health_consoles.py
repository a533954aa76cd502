"""What trainers print, names that were not read, and the mapping that is proposed for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.errors import InputError
from components.health.readers import load_names, read_log
from tests.unit.test_health_readers import log, signals

TRL_4 = (
    "{{'loss': 0.01, 'grad_norm': 0.5, 'completion_length': 200.5, 'rewards/correct': 0.75, 'reward': {}, 'kl': nan, "
    "'epoch': 0.1}}"
)
TRL_5 = (
    "{{'loss': '1.7e-08', 'completions/mean_length': '256', 'rewards/correct/mean': '-0.5', 'reward': '{}', "
    "'entropy': '0.4'}}"
)
SWIFT = "{{'loss': 0.1, 'reward': {}, 'completions/mean_length': 9.5, 'global_step/max_steps': '{}/50', 'part': '2%'}}"
OPENRLHF = (
    "(PPOTrainer pid=7) 2026-01-01 INFO ✨ Global step {}: {{'policy_loss': 0.1, 'reward': 0.5, 'kl': 0.02, "
    "'actor_grad_norm': 1.5, 'response_length': 300.0, 'critic_loss': 0.7, 'rollout/truncated_rate': 0.25}}"
)
SLIME = (
    "[rollout] rollout {step}: {{'rollout/raw_reward': 0.5, 'rollout/response_lengths': 9, 'rollout/truncated': 0.0}}\n"
    "[train] step {step}: {{'train/pg_loss': np.float64(0.1), 'train/entropy_loss': 0.3, 'train/grad_norm': 0.9}}"
)
NEMO = (
    "========================= Step {}/50 =========================\n▶ Generating responses\n📊 Training Results:\n"
    "  • Loss: 0.0219\n  • Generation KL Error: 0.0006\n  • Avg Reward: 0.25\n  • Mean Generation Length: 616.5\n\n"
    "⏱️  Timing:\n  • Total step time: 44.74s\n  • generation: 32.82s (73.4%)"
)


@pytest.mark.parametrize(
    ("lines", "format", "expected"),
    [
        (
            [f"  7%|{'█' * 9}| {n}/9 [00:01<00:09]\r{TRL_4.format(n)}" for n in (1, 2)],
            "trl",
            {"loss": 0.01, "grad_norm": 0.5, "length_mean": 200.5, "metric_correct": 0.75, "reward": 2.0},
        ),
        (
            [TRL_5.format(n) for n in (1, 2)],
            "trl",
            {"loss": 1.7e-8, "length_mean": 256.0, "metric_correct": -0.5, "reward": 2.0, "entropy": 0.4},
        ),
        (
            [SWIFT.format(n, n) for n in (1, 2)],
            "trl",
            {"loss": 0.1, "reward": 2.0, "length_mean": 9.5},
        ),
        (
            [OPENRLHF.format(n) for n in (1, 2)],
            "openrlhf",
            {"loss": 0.1, "reward": 0.5, "kl_ref": 0.02, "grad_norm": 1.5, "length_mean": 300.0, "value_loss": 0.7,
             "truncated_share": 0.25},
        ),
        (
            [SLIME.format(step=n) for n in (1, 2)],
            "slime",
            {"reward": 0.5, "length_mean": 9.0, "truncated_share": 0.0, "loss": 0.1, "entropy": 0.3,
             "grad_norm": 0.9},
        ),
        (
            [NEMO.format(n) for n in (1, 2)],
            "nemo-rl",
            {"loss": 0.0219, "mismatch_k3": 0.0006, "reward": 0.25, "length_mean": 616.5},
        ),
    ],
    ids=["TRL before 1.0", "TRL, transformers 5", "ms-swift", "OpenRLHF", "slime", "NeMo RL"],
)  # fmt: skip
def test_a_console_is_recognised_and_read(tmp_path, lines, format, expected):
    path = log(tmp_path, "Loading checkpoint shards: 50%", *lines, "{'not': 'a metric'}")
    assert read_log(path).format == format
    found = signals(path)
    assert list(found) == [1, 2]
    assert {name: value for name, value in found[2].items() if value == value} == pytest.approx(expected)


def test_entries_without_a_step_are_counted_and_evaluations_belong_to_the_one_before(tmp_path):
    evaluated = "{'eval_loss': 0.1, 'eval_rewards/accuracy_reward/mean': 0.5}"
    path = log(tmp_path, TRL_4.format(1), evaluated, TRL_4.format(2))
    assert [(step, "dev_pass_at_1" in one) for step, one in signals(path).items()] == [(1, True), (2, False)]
    assert "the console prints no step: its entries are counted" in read_log(path).remarks


def test_what_a_dictionary_holds_besides_numbers_is_never_evaluated(tmp_path):
    ran = tmp_path / "ran"
    path = log(tmp_path, f"{{'loss': 0.5, 'reward': open({str(ran)!r}, 'w'), 'kl': 0.25}}")
    assert signals(path) == {1: {"loss": 0.5, "kl_ref": 0.25}}
    assert not ran.exists()


def test_json_lines_of_ms_swift_say_their_step_as_part_of_all(tmp_path):
    path = log(tmp_path, *({"loss": 1.0, "reward": n, "global_step/max_steps": f"{n}/9"} for n in (5, 6)))
    assert [(step, found["reward"]) for step, found in signals(path).items()] == [(5, 5.0), (6, 6.0)]


# --- names that were not read

ODD = {
    "reward": 1.0, "train/clip_frac": 0.1, "rewards/math_correct/mean": 0.5, "rewards/math_correct/std": 0.1,
    "policy/len_mean": 30.0, "vf_loss": 0.2, "epoch": 0.1,
}  # fmt: skip


def test_names_that_were_not_read_are_listed_and_a_mapping_is_proposed(tmp_path):
    found = read_log(log(tmp_path, *({"step": n, "kl": 0.1, "loss": 1.0, **ODD} for n in (1, 2))))
    assert found.unread == ["policy/len_mean", "rewards/math_correct/std", "train/clip_frac", "vf_loss"]
    assert "length_mean: policy/len_mean" in found.proposal and "value_loss: vf_loss" in found.proposal
    assert "std" not in found.proposal


def test_a_proposal_is_a_mapping_that_reads_what_it_names(tmp_path):
    path = log(tmp_path, *({"step": n, "kl": 0.1, "loss": 1.0, **ODD} for n in (1, 2)))
    shipped = "configs/health/names/trl.yaml"
    proposal = read_log(path).proposal
    names = tmp_path / "names.yaml"
    names.write_text(proposal.replace(shipped, str(Path.cwd() / shipped)))
    assert load_names(names).reads("vf_loss")
    assert signals(path, names=names)[2]["length_mean"] == 30.0


def test_a_log_of_which_no_name_is_known_is_refused_with_a_mapping_to_begin_with(tmp_path):
    path = log(tmp_path, {"step": 1, "agent/score_mean": 0.5, "agent/entropy": 0.2})
    with pytest.raises(InputError, match="entropy: agent/entropy"):
        read_log(path, "jsonl")
