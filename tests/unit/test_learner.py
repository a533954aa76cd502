"""One update: batches, exact gradients under any split, signals, and saving to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import gpt2, group, policy, same, settings
from torch import Tensor

from components.config.corrections import TokenTis
from components.config.objective import ObjectiveSettings
from components.errors import InputError
from components.learner.base import Learner
from components.learner.batch import Batch, build_batch
from components.learner.build import build_learner
from components.learner.signals import TokenTotals, mismatch_signals, reference_signals
from components.objectives.advantages import ADVANTAGES, rewards_of
from components.objectives.objective import Terms
from components.objectives.tokens import TokenLoss
from components.policy import Policy
from components.policy.weights import Superseded
from components.training.credit import Credit
from components.types import Group

OBJECTIVE = ObjectiveSettings()
TIS = TokenTis(cap=2.0)
PROMPT_IDS = [(2, 20, 3), (2, 20, 21, 22, 3)]


def sampled() -> list[Group]:
    """Eight completions of different lengths to two prompts; two of them are longer than the rest together."""
    tokens = [[[30, 1], [31, 32, 33, 1], [34] * 9, [1]], [[40, 41, 1], [42, 1], [43, 44] * 5 + [1], [45, 46, 47, 1]]]
    rewards = [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
    return [group(r, prompt_ids=p, tokens=t) for r, p, t in zip(rewards, PROMPT_IDS, tokens, strict=True)]


def learner_of(micro: Policy, *, micro_batch_tokens: int = 10_000, **sections: Any) -> Learner:
    """A learner whose gradients are not clipped. Splits below what the settings allow are for these tests."""
    chosen = {"lr": 1e-3, "warmup": 0, "updates_per_step": 1, "grad_clip": 1e9, **sections.pop("learner", {})}
    resolved = settings(learner=chosen, **sections)
    learner = resolved.learner.model_copy(update={"micro_batch_tokens": micro_batch_tokens})
    return build_learner(micro, resolved.model_copy(update={"learner": learner}))


def batch_of(groups: Sequence[Group]) -> Batch:
    """A batch with its advantages."""
    return Credit(None, None, None, OBJECTIVE).assign(build_batch(groups, pad_id=0), groups, step=0).batch


def ready(learner: Learner, groups: Sequence[Group], *, drift: float = 0.1) -> Batch:
    """A batch whose sampler and reference differ a little from the present policy."""
    batch = batch_of(groups)
    generator = torch.Generator().manual_seed(0)
    noise = [drift * torch.randn(batch.response_mask.shape, generator=generator) for _ in range(2)]
    logp = learner.logprobs(batch)
    return replace(batch, rollout_logp=logp + noise[0], ref_logp=logp + noise[1])


def gradients(micro: Policy) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in micro.model.named_parameters()}


def close(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float = 1e-6) -> bool:
    return one.keys() == other.keys() and all(
        torch.allclose(one[name], other[name], rtol=1e-4, atol=tolerance) for name in one
    )


# Batches


def test_every_completion_is_a_row_with_its_prompt_advantage_and_sampler_log_probabilities():
    groups = [group([1.0, 0.0], tokens=[[30, 1], [31, 32, 1]], logp=-2.0)]
    batch = batch_of(groups)
    assert batch.input_ids.tolist() == [[2, 20, 3, 30, 1, 0], [2, 20, 3, 31, 32, 1]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1, 1, 0], [1] * 6]
    assert batch.response_mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.advantages.tolist() == pytest.approx(torch.tensor([[1.0, 1.0, 0.0], [-1.0] * 3]), abs=1e-5)
    assert batch.rollout_logp.tolist() == [[-2.0, -2.0, 0.0], [-2.0] * 3]
    assert (batch.old_logp, batch.ref_logp) == (None, None)


def test_advantages_travel_with_their_completions_whatever_the_order_of_the_groups():
    def by_completion(groups: list[Group]) -> dict[tuple[int, ...], float]:
        batch = batch_of(groups)
        return {
            tuple(ids[mask].tolist()): round(advantage[0].item(), 5)
            for ids, mask, advantage in zip(
                batch.input_ids[:, -batch.responses :], batch.response_mask, batch.advantages, strict=True
            )
        }

    groups = sampled()
    found = by_completion(groups)
    assert by_completion(groups[::-1]) == found
    expected = ADVANTAGES["grpo"](rewards_of(groups), OBJECTIVE.advantage).flatten().tolist()
    tokens = [c.token_ids for g in groups for c in g.completions]
    assert found == {ids: pytest.approx(a, abs=1e-5) for ids, a in zip(tokens, expected, strict=True)}


def test_micro_batches_hold_every_row_once_and_only_the_columns_they_need():
    batch = batch_of(sampled())
    width = batch.input_ids.shape[1]
    for tokens in (1, width, 3 * width, 5 * width, 10_000):
        parts = list(batch.micro_batches(tokens))
        assert sum(len(part) for part in parts) == 8
        assert all(len(part) == 1 or part.input_ids.numel() <= tokens for part in parts)
        assert all(part.attention_mask.any(0).all() for part in parts)
        assert sum(int(part.response_mask.sum()) for part in parts) == int(batch.response_mask.sum())


def test_an_unscorable_completion_keeps_its_row_but_has_no_token_in_the_loss():
    batch = batch_of([group([1.0, None, 0.0])])
    assert len(batch) == 3
    assert batch.response_mask.sum(1).tolist() == [1, 0, 3]
    assert (batch.advantages[1] == 0).all()


# Gradients


KL = {"kl": {"kind": "k2", "beta": 0.1}}
OBJECTIVES = [
    {"aggregation": {"kind": "token_mean"}, "kl": None, "correction": None},
    {"aggregation": {"kind": "token_mean"}, **KL},
    {"aggregation": {"kind": "sequence_mean"}, **KL},
]


def width() -> int:
    return batch_of(sampled()).input_ids.shape[1]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("rows", [1, 2, 4, 5])
@pytest.mark.parametrize("updates", [1, 2])
def test_gradient_and_signals_do_not_depend_on_the_split_into_micro_batches(rows, objective, updates):
    whole_policy, split_policy = policy(), policy()
    options: dict[str, Any] = {"objective": objective, "learner": {"updates_per_step": updates}}
    whole = learner_of(whole_policy, **options)
    split = learner_of(split_policy, micro_batch_tokens=rows * width(), **options)
    batch = ready(whole, sampled())
    expected, found = whole.step(batch, seed=0), split.step(batch, seed=0)
    assert close(gradients(split_policy), gradients(whole_policy))
    assert found == {name: pytest.approx(value, rel=1e-4, abs=1e-6) for name, value in expected.items()}
    assert close(split.weights(), whole.weights(), tolerance=1e-5)


def test_log_probabilities_do_not_depend_on_the_split_either():
    micro = policy()
    batch = batch_of(sampled())
    found = [learner_of(micro, micro_batch_tokens=rows * width()).logprobs(batch) for rows in (1, 3, 8)]
    assert all(torch.allclose(logp[batch.response_mask], found[0][batch.response_mask], atol=1e-5) for logp in found)


def update(groups: Sequence[Group], change: Callable[[Batch], Batch] = lambda batch: batch) -> dict[str, Tensor]:
    """Gradient of one update on these groups."""
    micro = policy()
    learner = learner_of(micro, objective=OBJECTIVES[1])
    learner.step(change(ready(learner, groups, drift=0.0)), seed=0)
    return gradients(micro)


def test_the_gradient_is_reinforce_when_nothing_has_moved():
    micro = policy()
    learner = learner_of(micro, objective={"aggregation": {"kind": "token_mean"}})
    batch = ready(learner, sampled(), drift=0.0)
    learner.step(batch, seed=0)
    plain = policy()
    logits = plain.model(
        batch.input_ids, attention_mask=batch.attention_mask, position_ids=positions(batch.attention_mask)
    ).logits[:, -batch.responses - 1 : -1]
    logp = torch.log_softmax(logits, -1).gather(-1, batch.input_ids[:, -batch.responses :, None]).squeeze(-1)
    loss = -(batch.advantages * logp)[batch.response_mask].sum() / batch.response_mask.sum()
    loss.backward()
    assert close(gradients(micro), gradients(plain))


def positions(attention_mask: Tensor) -> Tensor:
    return (attention_mask.cumsum(-1) - 1).clamp(min=0)


@pytest.mark.parametrize("pad_id", [0, 1, 77])
def test_the_padding_token_does_not_matter(pad_id):
    groups = sampled()

    def repad(batch: Batch) -> Batch:
        return replace(batch, input_ids=torch.where(batch.attention_mask.bool(), batch.input_ids, pad_id))

    assert close(update(groups, repad), update(groups))


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), float("-inf")])
def test_what_stands_in_padded_places_does_not_matter(junk):
    def spoil(batch: Batch) -> Batch:
        names = ("advantages", "rollout_logp", "ref_logp")
        return replace(batch, **{name: torch.where(batch.response_mask, getattr(batch, name), junk) for name in names})

    groups = sampled()
    assert same(update(groups, spoil), update(groups))


def test_the_order_of_the_groups_does_not_matter():
    assert close(update(sampled()[::-1]), update(sampled()))


def test_an_unscorable_completion_is_as_good_as_absent():
    tokens = [[30, 1], [31, 32, 33, 1], [34] * 9, [35, 1]]
    with_it = group([1.0, 0.0, None, 0.0], tokens=tokens)
    without = group([1.0, 0.0, 0.0], tokens=[tokens[0], tokens[1], tokens[3]])
    assert close(update([with_it]), update([without]))


def test_a_batch_without_a_gradient_changes_nothing():
    micro = policy()
    learner = learner_of(micro, objective={"aggregation": {"kind": "token_mean"}})
    signals = learner.step(ready(learner, [group([1.0, 1.0])], drift=0.0), seed=0)
    assert (signals["loss"], signals["grad_norm"], signals["nonfinite"]) == (0.0, 0.0, 0.0)
    assert same(learner.weights(), policy().weights())


@pytest.mark.parametrize("updates", [1, 2])
def test_the_old_policy_is_the_learner_before_its_first_update(updates):
    learner = learner_of(policy(), learner={"updates_per_step": updates, "lr": 0.01})
    batch = batch_of(sampled())
    expected = mismatch_signals(replace(batch, old_logp=learner.logprobs(batch)), TIS)
    signals = learner.step(batch, seed=0)
    assert {name: signals[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert (signals["ratio_max"] > 1.001) == (updates > 1)


# Updates


def steps(learner: Learner, count: int, start: int = 0) -> list[dict[str, float]]:
    return [learner.step(batch_of(sampled()), seed=step) for step in range(start, start + count)]


def test_the_update_makes_right_answers_likelier_and_wrong_ones_less_likely():
    micro = policy()
    learner = learner_of(micro)
    batch = batch_of(sampled())
    before = learner.logprobs(batch)
    learner.step(batch, seed=0)
    change = ((learner.logprobs(batch) - before) * batch.advantages)[batch.response_mask]
    assert change.sum() > 0


def test_the_learning_rate_warms_up_linearly_and_stays():
    learner = learner_of(policy(), learner={"lr": 0.01, "warmup": 4})
    rates = [signals["lr"] for signals in steps(learner, 6)]
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])


def test_the_gradient_norm_is_reported_before_it_is_clipped():
    free, clipped = learner_of(policy()), learner_of(policy(), learner={"grad_clip": 1e-3})
    assert steps(free, 1)[0]["grad_norm"] == steps(clipped, 1)[0]["grad_norm"] > 1e-3


@pytest.mark.parametrize("updates", [1, 2, 3, 5, 7])
def test_a_step_makes_as_many_updates_as_the_settings_say(updates):
    sections: dict[str, Any] = {"schedule": {"kind": "uniform"}, "train": {"prompts_per_step": 8}}
    learner = learner_of(policy(), learner={"updates_per_step": updates, "warmup": 100}, **sections)
    assert steps(learner, 1)[0]["lr"] == pytest.approx(1e-3 * updates / 100)


def test_mini_batches_depend_on_the_seed_alone():
    def weights(seed: int) -> dict[str, Tensor]:
        learner = learner_of(policy(), learner={"updates_per_step": 2})
        learner.step(ready(learner, sampled()), seed=seed)
        return learner.weights()

    assert same(weights(1), weights(1))
    assert not same(weights(1), weights(2))


@pytest.mark.parametrize("updates", [1, 2])
def test_an_update_that_is_not_finite_is_skipped_and_counted(updates):
    micro = policy()
    learner = learner_of(micro, learner={"updates_per_step": updates, "warmup": 10})
    batch = ready(learner, sampled())
    spoil = micro.model.get_output_embeddings().weight.register_hook(lambda gradient: gradient * math.nan)
    signals = learner.step(batch, seed=0)
    spoil.remove()
    assert signals["nonfinite"] == updates
    assert signals["lr"] == 0.0
    assert same(learner.weights(), policy().weights())
    fresh = learner_of(policy(), learner={"updates_per_step": updates, "warmup": 10})
    assert steps(learner, 1, start=1) == steps(fresh, 1, start=1)  # the optimizer did not see it either


@pytest.mark.parametrize("updates", [1, 2])
@pytest.mark.parametrize("name", ["rollout_logp", "ref_logp", "advantages"])
@pytest.mark.parametrize("junk", [math.nan, torch.finfo(torch.float32).min])
def test_a_token_without_a_number_is_left_out_and_reported_and_the_update_goes_on(name, junk, updates):
    micro = policy()
    learner = learner_of(micro, objective=KL, learner={"updates_per_step": updates})
    batch = ready(learner, sampled())
    values = getattr(batch, name).clone()
    values[0, 0] = junk
    signals = learner.step(replace(batch, **{name: values}), seed=0)
    assert all(math.isfinite(value) for value in signals.values())
    assert signals["nonfinite"] == 0
    assert signals["nonfinite_tokens"] == pytest.approx(1 / int(batch.response_mask.sum()))
    assert not same(learner.weights(), policy().weights())


# Precision and memory


@pytest.mark.parametrize("model", [policy, gpt2])
def test_activation_checkpointing_changes_no_bit_and_turns_no_dropout_on(model, monkeypatch):
    # Where it is on, the model computes by its own pass.
    monkeypatch.setattr("components.policy.logprobs.lean_pass", lambda _: None)
    monkeypatch.setattr("components.learner.sharding.base.lean_pass", lambda _: None)
    kept = learner_of(model(), learner={"updates_per_step": 2})
    computed_again = learner_of(model(), learner={"updates_per_step": 2, "activation_checkpointing": True})
    assert steps(computed_again, 3) == steps(kept, 3)
    assert same(computed_again.weights(), kept.weights())


def test_activation_checkpointing_computes_every_layer_again():
    calls = []

    def passes(**learner: Any) -> int:
        calls.clear()
        micro = policy()
        micro.model.model.layers[0].self_attn.register_forward_hook(lambda *_: calls.append(1))
        steps(learner_of(micro, learner=learner), 1)
        return len(calls)

    assert passes(activation_checkpointing=True) == 2 * passes()


def test_a_model_that_cannot_checkpoint_its_activations_is_refused():
    micro = policy()
    micro.model.supports_gradient_checkpointing = False
    with pytest.raises(InputError, match="does not support activation checkpointing"):
        learner_of(micro, learner={"activation_checkpointing": True})


def test_bfloat16_computes_coarsely_and_keeps_weights_in_float32():
    exact, coarse = learner_of(policy()), learner_of(policy(), learner={"compute_dtype": "bfloat16"})
    batch = batch_of(sampled())
    gap = (exact.logprobs(batch) - coarse.logprobs(batch))[batch.response_mask].abs()
    assert 1e-4 < gap.max() < 0.1
    losses = [steps(learner, 3) for learner in (exact, coarse)]
    assert [s["grad_norm"] for s in losses[1]] == pytest.approx([s["grad_norm"] for s in losses[0]], rel=0.05)
    assert {weight.dtype for weight in coarse.weights().values()} == {torch.float32}


def test_in_bfloat16_the_first_update_of_a_step_is_on_policy_and_none_depends_on_the_split_but_for_rounding():
    few, many = (
        learner_of(policy(), learner={"compute_dtype": "bfloat16", "micro_batch_tokens": tokens})
        for tokens in (4096, 64)
    )
    (one,), (other,) = steps(few, 1), steps(many, 1)
    assert one["ratio_min"] == one["ratio_max"] == other["ratio_max"] == 1
    assert other["grad_norm"] == pytest.approx(one["grad_norm"], rel=0.02)
    for name, weight in few.weights().items():
        assert torch.allclose(many.weights()[name], weight, atol=3e-3), name


# Saving


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_continuing_from_a_saved_learner_equals_not_stopping_to_the_bit(tmp_path, before, dtype):
    options: dict[str, Any] = {"learner": {"updates_per_step": 2, "warmup": 4, "weight_decay": 0.1}}
    first, second = policy(), policy()
    for micro in (first, second):
        micro.model.to(dtype)
    kept = learner_of(first, **options)
    steps(kept, before)
    kept.save(tmp_path)
    resumed = learner_of(second, **options)
    resumed.load(tmp_path)
    assert same(resumed.weights(), kept.weights())
    assert steps(resumed, 2, start=before) == steps(kept, 2, start=before)
    assert same(resumed.weights(), kept.weights())


def test_a_loaded_learner_forgets_what_it_knew(tmp_path):
    fresh, used = learner_of(policy()), learner_of(policy())
    steps(fresh, 1)
    fresh.save(tmp_path)
    steps(used, 3)
    used.load(tmp_path)
    assert steps(used, 1) == steps(fresh, 1)
    assert same(used.weights(), fresh.weights())


def test_nothing_that_is_saved_is_a_pickle(tmp_path):
    learner = learner_of(policy())
    steps(learner, 1)
    learner.save(tmp_path)
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == ["learner.json", "shard-00001-of-00001.safetensors"]


def test_saving_the_same_state_twice_gives_the_same_bytes(tmp_path):
    learner = learner_of(policy())
    steps(learner, 1)
    for name in "ab":
        (tmp_path / name).mkdir()
        learner.save(tmp_path / name)
    one, other = (tmp_path / name / "learner" / "shard-00001-of-00001.safetensors" for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_a_state_of_another_model_is_refused(tmp_path):
    learner = learner_of(policy())
    learner.save(tmp_path)
    other = policy()
    other.model.extra = torch.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="another model"):
        learner_of(other).load(tmp_path)


# Signals


def gap_batch(*ratios: float, masked: float | None = None) -> Batch:
    """One row whose tokens have these ratios of learner to sampler probability."""
    ratios = (*ratios, masked) if masked is not None else ratios
    rollout = torch.full((1, len(ratios)), -1.0)
    mask = torch.ones(1, len(ratios), dtype=torch.bool)
    if masked is not None:
        mask[0, -1] = False
    ids = torch.zeros(1, len(ratios) + 1, dtype=torch.long)
    old = rollout + torch.tensor([ratios]).log()
    row = torch.zeros(1, dtype=torch.long)
    return Batch(ids, torch.ones_like(ids), row, row, mask, rollout, torch.zeros_like(rollout), old)


def test_worked_mismatch_signals():
    found = mismatch_signals(gap_batch(1.0, 3.0, 0.25, masked=1e9), TIS)
    gaps = [0.0, math.log(3), math.log(4)]
    assert found["mismatch_mean"] == pytest.approx(sum(gaps) / 3)
    assert found["mismatch_max"] == pytest.approx(math.log(4))
    assert found["ess"] == pytest.approx(4.25**2 / (3 * (1 + 9 + 0.0625)))
    assert found["tis_truncated"] == pytest.approx(1 / 3)


def test_the_mismatch_kl_is_that_of_the_sampler_to_the_learner():
    found = mismatch_signals(gap_batch(math.exp(-10.0)), None)
    assert found["mismatch_k3"] == pytest.approx(9.00005, abs=1e-3)
    assert "tis_truncated" not in found


def test_an_engine_that_agrees_with_the_learner_has_no_mismatch():
    found = mismatch_signals(gap_batch(1.0, 1.0), TIS)
    assert found == {"mismatch_mean": 0, "mismatch_max": 0, "mismatch_k3": 0, "ess": 1, "tis_truncated": 0}


def test_a_batch_without_tokens_has_no_mismatch_signals():
    batch = gap_batch(1.0)
    assert mismatch_signals(replace(batch, response_mask=torch.zeros_like(batch.response_mask)), TIS) == {}


def test_the_reference_kl_exists_only_where_a_reference_was_scored():
    batch = gap_batch(1.0, 1.0)
    assert reference_signals(batch) == {}
    away = replace(batch, ref_logp=batch.old_logp + math.log(2))
    assert reference_signals(away)["kl_ref"] == pytest.approx(2 - 1 - math.log(2))


def test_the_entropy_signal_is_exact_and_counts_response_tokens_only():
    micro = policy()
    with torch.no_grad():
        micro.model.get_output_embeddings().weight.zero_()
    assert steps(learner_of(micro), 1)[0]["entropy"] == pytest.approx(math.log(260), abs=1e-5)


def test_token_signals_are_means_over_the_unmasked_tokens_of_all_micro_batches():
    totals = TokenTotals()
    for ratios, entropy in (([1.5, 0.5, 1.0, 9.0], 1.0), ([1.0, 1.0, 1.0, 0.0], 3.0)):
        ratio = torch.tensor([ratios])
        tokens = TokenLoss(torch.zeros(1, 4), ratio < 0.8, ratio > 1.28, ratio)
        terms = Terms(torch.zeros(()), tokens, rejected=ratio == 0.5, nonfinite=ratio == 1.5)
        totals.add(torch.tensor([[True, True, True, False]]), torch.full((1, 4), entropy), terms)
    shares = dict.fromkeys(("clip_high", "clip_low", "rejected_share", "nonfinite_tokens"), 1 / 6)
    ratios = {"ratio_min": 0.5, "ratio_mean": 1.0, "ratio_max": 1.5, "kl_old": 0.047947}
    expected = {"entropy": 2.0, "entropy_p10": 1.0, **ratios, **shares}
    assert totals.means() == pytest.approx(expected, abs=1e-6)
    assert TokenTotals().means() == {}


def test_temperature_is_that_of_the_sampling():
    hot, cold = (learner_of(policy(), rollout={"temperature": t}) for t in (2.0, 0.5))
    batch = batch_of(sampled())
    assert not torch.allclose(hot.logprobs(batch), cold.logprobs(batch), atol=0.1)
    assert steps(hot, 1)[0]["entropy"] > steps(cold, 1)[0]["entropy"]


def test_weights_that_were_given_out_are_those_of_their_moment_or_none() -> None:
    learner = learner_of(policy())
    before, live = dict(learner.weights()), learner.weights()
    name = next(iter(live))
    assert torch.equal(live[name], before[name])
    live[name].zero_()
    assert torch.equal(live[name], before[name]), "what is read is a copy"
    learner.step(batch_of(sampled()), seed=0)
    with pytest.raises(Superseded):
        live[name]
    assert not torch.equal(learner.weights()[name], before[name])
