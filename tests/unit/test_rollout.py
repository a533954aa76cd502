"""Sampling: the engine's completions and log-probabilities, and how groups are collected and refilled."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from factories import Judge, gpt2, parity, policy, prefer, prompts, score, settings

from components.config.rollout import DynamicSampling, RolloutSettings, TwoStage
from components.config.rollout import TorchEngine as TorchEngineSettings
from components.errors import InputError
from components.learner.batch import build_batch
from components.learner.scoring import score_all
from components.policy import Policy
from components.rewards.scorer import with_part
from components.rollout import Collector, Engine, Rollout, Sampling
from components.rollout.collect import refill, without_repeats
from components.rollout.context import DenseContext
from components.rollout.draws import choose, uniform_numbers
from components.rollout.torch_engine import TorchEngine, buckets
from components.scheduling import Schedule, Uniform, build_schedule
from components.types import Completion, Group, Prompt, Score

PROMPTS = [(2, 30, 3), (2, 30, 31, 32, 33, 34, 3), (2, 40, 41, 3)]


def engine(policy: Policy, rows: int = 1024) -> TorchEngine:
    return TorchEngine(policy, TorchEngineSettings(batch_rows=rows))


def sampling(n: int = 4, tokens: int = 8, temperature: float = 1.0, seed: int = 0) -> Sampling:
    return Sampling(n=n, max_new_tokens=tokens, temperature=temperature, seed=seed)


def talkative(bonus: float = 6.0) -> Policy:
    """Ends an answer at different places: about one token in five is the end token."""
    micro = policy()
    return prefer(micro, micro.eos_id, bonus)


def hooked(micro: Policy) -> Policy:
    """The same policy, with something hooked into it that the lean pass would not run."""
    micro.model.register_forward_hook(lambda _module, _args, output: output)
    return micro


WAYS = (lambda micro: micro, hooked)
"""A policy that the lean forward pass computes, and one that computes itself."""


def groups(completions: Sequence[tuple[Completion, ...]], prompt_ids: Sequence[tuple[int, ...]]) -> list[Group]:
    scores = tuple(score(0.0) for _ in completions[0])
    return [
        Group(p, ids, row, scores)
        for p, ids, row in zip(prompts(len(prompt_ids)), prompt_ids, completions, strict=True)
    ]


# What is sampled


def test_each_prompt_gets_its_completions_in_order():
    found = engine(policy()).generate(PROMPTS, sampling(n=3))
    assert [len(row) for row in found] == [3, 3, 3]
    assert all(1 <= len(c.token_ids) == len(c.logprobs) <= 8 for row in found for c in row)


def test_the_same_seed_gives_the_same_completions_and_another_seed_others():
    one, again, other = (engine(talkative()).generate(PROMPTS, sampling(seed=seed)) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_an_engine_keeps_nothing_from_one_call_to_the_next():
    used = engine(talkative())
    first = used.generate(PROMPTS, sampling(seed=1))
    used.generate(PROMPTS[:1], sampling(seed=2))
    assert used.generate(PROMPTS, sampling(seed=1)) == first


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.0])
def test_reported_log_probabilities_are_those_that_the_learner_computes(temperature, way):
    micro = way(talkative())
    found = engine(micro).generate(PROMPTS, sampling(n=8, tokens=12, temperature=temperature))
    batch = build_batch(groups(found, PROMPTS), micro.pad_id)
    logp = score_all(micro.model, batch, temperature, max_tokens=64).logp
    lengths = {len(c.token_ids) for row in found for c in row}
    assert len(lengths) > 3  # rows have left the batch at different times
    assert torch.allclose(logp[batch.response_mask], batch.rollout_logp[batch.response_mask], atol=1e-4)


def test_samples_are_drawn_in_proportion_to_their_probability():
    micro = policy()
    firsts = [
        c.token_ids[0] for c in engine(micro).generate(PROMPTS[:1], sampling(n=4000, tokens=1, temperature=0.1))[0]
    ]
    with torch.no_grad():
        expected = torch.softmax(micro.model(torch.tensor([PROMPTS[0]])).logits[0, -1] / 0.1, -1)
    found = torch.bincount(torch.tensor(firsts), minlength=len(expected)) / len(firsts)
    assert (found - expected).abs().sum() / 2 < 0.12  # total variation


# Greedy


def greedy_by_hand(micro: Policy, prompt: tuple[int, ...], tokens: int) -> tuple[list[int], list[float]]:
    ids, logprobs = list(prompt), []
    for _ in range(tokens):
        with torch.no_grad():
            distribution = torch.log_softmax(micro.model(torch.tensor([ids])).logits[0, -1], -1)
        logprobs.append(distribution.max().item())
        ids.append(int(distribution.argmax()))
        if ids[-1] == micro.eos_id:
            break
    return ids[len(prompt) :], logprobs


@pytest.mark.parametrize(
    "build", [lambda: talkative(0.0), lambda: talkative(5.0), lambda: hooked(talkative(5.0)), gpt2]
)
def test_greedy_takes_the_likeliest_token_whatever_else_is_in_the_batch(build):
    micro = build()
    found = engine(micro).generate(PROMPTS, sampling(n=1, temperature=0.0))
    for prompt, (completion,) in zip(PROMPTS, found, strict=True):
        ids, logprobs = greedy_by_hand(micro, prompt, 8)
        assert list(completion.token_ids) == ids
        assert completion.logprobs == pytest.approx(logprobs, abs=1e-4)


def test_greedy_does_not_depend_on_the_seed():
    one, other = (engine(policy()).generate(PROMPTS, sampling(n=2, temperature=0.0, seed=seed)) for seed in (1, 2))
    assert one == other
    assert all(a == b for a, b in one)


def test_choose_reports_the_untempered_probability_of_a_greedy_token_and_the_tempered_one_of_a_sample():
    logits, uniform = torch.tensor([[0.0, 2.0]]), torch.tensor([0.5])
    assert choose(logits, 0.0, uniform)[1].item() == pytest.approx(torch.log_softmax(logits, -1)[0, 1].item())
    chosen, logp = choose(logits, 0.5, uniform)
    assert logp.item() == pytest.approx(torch.log_softmax(logits / 0.5, -1)[0, chosen.item()].item(), abs=1e-7)


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 1), (0.199, 1), (0.201, 2), (0.499, 2), (0.501, 4), (1 - 2**-53, 4)]
)
def test_a_sample_is_where_the_cumulative_probability_exceeds_the_uniform_number(uniform, token):
    logits = torch.tensor([[0.0, 0.2, 0.3, 0.0, 0.5, 0.0]]).log()  # tokens 0, 3 and 5 are impossible
    assert choose(logits, 1.0, torch.tensor([uniform], dtype=torch.float64))[0].item() == token


@pytest.mark.parametrize("vocabulary", [49_152, 151_936, 32_000, 50_257])
def test_a_large_vocabulary_is_sampled_by_the_same_rule(vocabulary):
    torch.manual_seed(0)
    logits = 3 * torch.randn(40, vocabulary)
    logits[:, ::3] = -math.inf
    uniform = torch.cat([torch.rand(38, dtype=torch.float64), torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)])
    chosen, logp = choose(logits, 1.0, uniform)
    cumulative = logits.double().softmax(-1).cumsum(-1)
    upper = cumulative.gather(-1, chosen[:, None])[:, 0]
    lower = cumulative.gather(-1, (chosen - 1).clamp(min=0)[:, None])[:, 0] * (chosen > 0)
    assert bool((lower <= uniform + 1e-6).all() and (uniform <= upper + 1e-6).all())
    assert torch.allclose(logp, torch.log_softmax(logits, -1).gather(-1, chosen[:, None])[:, 0], rtol=0, atol=1e-5)
    assert bool(logp.isfinite().all())


@pytest.mark.parametrize("broken", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_from_logits_that_are_no_numbers_nothing_is_sampled(broken, temperature):
    logits = torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, broken]])
    with pytest.raises(RuntimeError, match="NaN or infinite"):
        choose(logits, temperature, torch.tensor([0.5, 0.5], dtype=torch.float64))


def test_a_group_draws_the_same_numbers_whatever_else_is_in_the_batch():
    together, alone = uniform_numbers(3, [5, 2], n=4, limit=6), uniform_numbers(3, [2], n=4, limit=6)
    assert torch.equal(together[4:], alone) and not torch.equal(together[:4], alone)


@pytest.mark.parametrize("way", WAYS)
def test_a_group_is_written_the_same_whatever_else_is_in_the_batch(way):
    first = [engine(way(talkative())).generate(asked, sampling())[0] for asked in (PROMPTS, PROMPTS[:1])]
    tokens = [[c.token_ids for c in group] for group in first]
    assert tokens[0] == tokens[1]


# The end


def test_a_completion_stops_at_its_end_token_and_leaves_it_out_of_the_text():
    micro = talkative()
    for row in engine(micro).generate(PROMPTS, sampling(n=16)):
        for completion in row:
            *before, last = completion.token_ids
            assert micro.eos_id not in before
            assert completion.finish_reason == ("stop" if last == micro.eos_id else "length")
            assert completion.finish_reason == "stop" or len(completion.token_ids) == 8
            written = before if completion.finish_reason == "stop" else [*before, last]
            assert completion.text == micro.decode(tuple(written))


def test_an_end_token_in_the_last_place_is_a_stop_and_none_is_a_cut():
    always, never = talkative(50.0), talkative(-50.0)
    (stopped,), (cut,) = (engine(p).generate(PROMPTS[:1], sampling(n=1, tokens=1))[0] for p in (always, never))
    assert (stopped.token_ids, stopped.finish_reason, stopped.text) == ((always.eos_id,), "stop", "")
    assert (cut.finish_reason, len(cut.token_ids)) == ("length", 1)


@pytest.mark.parametrize("stop", [lambda ids: (ids[4],), lambda ids: frozenset({ids[4], 271})])
def test_a_completion_also_ends_at_the_first_of_its_stop_tokens(stop):
    micro = talkative(-50.0)
    ((plain,),) = engine(micro).generate(PROMPTS[:1], sampling(n=1, temperature=0.0))
    asked = replace(sampling(n=1, temperature=0.0), stop=stop(plain.token_ids))
    ((stopped,),) = engine(micro).generate(PROMPTS[:1], asked)
    written = plain.token_ids[: plain.token_ids.index(plain.token_ids[4]) + 1]
    assert (stopped.token_ids, stopped.finish_reason) == (written, "stop_token")
    assert stopped.logprobs == plain.logprobs[: len(written)]
    assert stopped.text == micro.decode(written[:-1])


def test_rows_stop_at_different_places_and_the_end_token_stays_an_end():
    micro = talkative(4.0)
    stop = frozenset(range(30, 60)) | {micro.eos_id}
    found = [c for row in engine(micro).generate(PROMPTS, replace(sampling(n=32), stop=stop)) for c in row]
    assert {c.finish_reason for c in found} == {"stop", "stop_token", "length"}
    for completion in found:
        *before, last = completion.token_ids
        assert not stop & set(before)
        reason = "stop" if last == micro.eos_id else "stop_token" if last in stop else "length"
        assert completion.finish_reason == reason


@pytest.mark.parametrize("way", WAYS)
def test_decoding_ends_when_every_row_has_ended(way):
    calls = count_calls(tested := engine(way(talkative(50.0))))
    tested.generate(PROMPTS, sampling(tokens=30))
    assert len(calls) == 1


# How it is computed


def count_calls(tested: TorchEngine) -> list[int]:
    """Tokens that every forward pass reads, padding included."""
    calls: list[int] = []
    if tested._dense is None:

        def note(_module: torch.nn.Module, _args: object, options: dict[str, torch.Tensor]) -> None:
            calls.append(options["input_ids"].numel())

        tested._policy.model.register_forward_pre_hook(note, with_kwargs=True)
        return calls
    forward = tested._dense.forward

    def noted(hidden: torch.Tensor, *rest: object) -> torch.Tensor:
        calls.append(len(hidden))
        return forward(hidden, *rest)

    tested._dense.forward = noted
    return calls


@pytest.mark.parametrize(("way", "lean"), zip(WAYS, (True, False), strict=True))
def test_a_dense_decoder_is_computed_by_the_lean_pass_unless_something_is_hooked_into_it(way, lean):
    assert (engine(way(talkative()))._dense is not None) == lean


@pytest.mark.parametrize("way", WAYS)
def test_a_group_is_prefilled_once_and_decoded_token_by_token(way):
    calls = count_calls(tested := engine(way(talkative(-50.0))))
    tested.generate(PROMPTS, sampling(n=4, tokens=3))
    assert calls == [3 * 7, 12, 12]


@pytest.mark.parametrize("way", WAYS)
def test_finished_rows_leave_the_batch(way):
    calls = count_calls(tested := engine(way(talkative())))
    tested.generate(PROMPTS, sampling(n=16, tokens=20))
    rows = calls[1:]
    assert rows == sorted(rows, reverse=True)
    assert rows[-1] < rows[0] <= 48


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_what_is_written_does_not_depend_on_when_finished_rows_leave(share, monkeypatch):
    expected = engine(talkative()).generate(PROMPTS, sampling(n=16, tokens=20))
    monkeypatch.setattr(DenseContext, "leave_at", share)
    found = engine(talkative()).generate(PROMPTS, sampling(n=16, tokens=20))
    assert [[c.token_ids for c in row] for row in found] == [[c.token_ids for c in row] for row in expected]
    for one, other in zip(found, expected, strict=True):
        assert [c.logprobs for c in one] == [pytest.approx(c.logprobs, abs=1e-5) for c in other]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rows", "batches"), [(1, 3), (4, 3), (8, 2), (1024, 1)])
def test_prompts_are_decoded_in_batches_of_bounded_size_and_stay_in_order(rows, batches, way):
    micro = way(talkative(-50.0))
    calls = count_calls(tested := engine(micro, rows))
    found = tested.generate(PROMPTS, sampling(temperature=0.0))
    assert len(calls) == 8 * batches
    assert [list(row[0].token_ids) for row in found] == [greedy_by_hand(micro, p, 8)[0] for p in PROMPTS]


@pytest.mark.parametrize(
    ("lengths", "n", "rows", "expected"),
    [
        ([9, 7, 8], 4, 1024, [[1, 2, 0]]),
        ([9, 7, 8], 4, 8, [[1, 2], [0]]),
        ([9, 7, 8], 4, 1, [[1], [2], [0]]),
        ([7, 30, 7, 30], 64, 1024, [[0, 2], [1, 3]]),  # padding of 128 rows is worth a batch
        ([7, 30, 7, 30], 63, 1024, [[0, 2, 1, 3]]),  # that of fewer is not
        ([7, 10, 7, 10], 64, 1024, [[0, 2, 1, 3]]),  # and neither is a little padding
        ([], 4, 8, []),
    ],
)
def test_prompts_of_like_length_are_decoded_together(lengths, n, rows, expected):
    assert list(buckets(lengths, n, rows)) == expected


# Weights


def test_the_engine_samples_from_the_weights_it_was_given_last():
    source, other = policy(), policy()
    with torch.no_grad():
        for parameter in other.model.parameters():
            parameter.mul_(-1.5)
    tested = engine(source)
    before = tested.generate(PROMPTS, sampling())
    with torch.no_grad():
        for parameter in source.model.parameters():
            parameter.zero_()
    assert tested.generate(PROMPTS, sampling()) == before  # the learner's changes do not leak in
    tested.load_weights(other.weights())
    assert tested.generate(PROMPTS, sampling()) == engine(other).generate(PROMPTS, sampling()) != before


@pytest.mark.parametrize("change", [lambda w: w.popitem(), lambda w: w.update(foreign=torch.zeros(1))])
def test_a_partial_or_foreign_set_of_weights_is_refused(change):
    weights = policy().weights()
    change(weights)
    with pytest.raises(ValueError, match="do not fit"):
        engine(policy()).load_weights(weights)


# Collecting groups


class Script(Engine):
    """Returns a given text, without a model."""

    max_positions: int | None = None

    def __init__(self, text: Callable[[], str] = lambda: "") -> None:
        self._text = text

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        return [tuple(Completion((1,), (0.0,), "stop", self._text()) for _ in range(sampling.n)) for _ in prompts]

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        raise AssertionError("a script is never trained")


class Noted(Uniform):
    """Remembers what it was shown."""

    observed: list[str]

    def observe(self, groups: Sequence[Group]) -> None:
        self.observed = [*getattr(self, "observed", []), *(group.prompt.id for group in groups)]


def collector(
    text: Callable[[], str], group_size: int = 4, attempts: int | None = 3, judge: Judge | None = None, **more: Any
):
    dynamic = None if attempts is None else DynamicSampling(max_attempts=attempts, sized=more.pop("sized", False))
    chosen = RolloutSettings(group_size=group_size, dynamic_sampling=dynamic, **more)
    reader = SimpleNamespace(encode_prompt=lambda text: (len(text),), max_positions=None)
    return Collector(reader, Script(text), judge or Judge(lambda c: float(c.text)), chosen)


def coin(p: float, seed: int = 0) -> Callable[[], str]:
    rng = random.Random(seed)
    return lambda: str(int(rng.random() < p))


def schedule(count: int = 50) -> Schedule:
    return Uniform(prompts(count), seed=0)


def test_a_group_holds_the_prompt_its_tokens_and_a_score_for_each_completion():
    micro = policy()
    tested = Collector(micro, engine(micro), Judge(parity), settings().rollout)
    asked = prompts(3)
    found = tested.groups(asked, tested.sampling(seed=1))
    assert [g.prompt for g in found] == asked
    assert [g.prompt_ids for g in found] == [micro.encode_prompt(p.text) for p in asked]
    assert all(s.accuracy == parity(c) for g in found for c, s in zip(g.completions, g.scores, strict=True))


def test_a_sampling_takes_the_settings_unless_overridden():
    tested = collector(coin(0.5), group_size=4)
    assert tested.sampling(seed=1) == Sampling(n=4, max_new_tokens=40, temperature=1.0, seed=1)
    assert tested.sampling(seed=1, n=1, temperature=0.0) == Sampling(n=1, max_new_tokens=40, temperature=0.0, seed=1)


def test_without_dynamic_sampling_every_group_is_trained_on():
    rollout = collector(coin(0.0), attempts=None).step(schedule(), 5, seed=0)
    assert rollout.sampled == rollout.trained
    assert (len(rollout.sampled), rollout.attempts) == (5, 1)


def test_dynamic_sampling_refills_to_exactly_the_count_with_informative_groups_only():
    rollout = collector(coin(0.2), attempts=20).step(schedule(), 10, seed=0)
    assert len(rollout.trained) == 10
    assert all(group.informative for group in rollout.trained)
    assert len(rollout.sampled) == 10 * rollout.attempts
    assert rollout.attempts > 1


def test_a_sized_refill_draws_as_many_prompts_as_should_do():
    rollout, whole = (
        collector(coin(0.2), attempts=20, sized=sized).step(schedule(), 10, seed=0) for sized in (True, False)
    )
    assert len(rollout.trained) == 10
    assert len(rollout.sampled) < len(whole.sampled)


@pytest.mark.parametrize(
    ("kept", "drawn", "expected"), [(5, 10, 10), (8, 10, 3), (9, 20, 3), (0, 10, 10), (1, 10, 10), (7, 8, 4)]
)
def test_worked_sizes_of_a_refill_for_a_batch_of_ten(kept, drawn, expected):
    assert refill(10, kept, drawn) == expected


def in_two_stages(p: float, seed: int = 0) -> Rollout:
    tested = collector(coin(p, seed), group_size=8, attempts=1, two_stage=TwoStage(first=4))
    return tested.step(schedule(), 40, seed=0)


def test_in_two_stages_only_groups_that_are_undecided_are_completed():
    rollout = in_two_stages(0.15)
    assert {len(group.completions) for group in rollout.sampled} == {4, 8}
    for one in rollout.sampled:
        begun = {score.accuracy for score in one.scores[:4]}
        assert len(one.scores) == len(one.completions) == (8 if len(begun) > 1 else 4)
    assert all(len(group.completions) == 8 for group in rollout.trained)


def test_a_missing_part_of_the_reward_takes_the_mean_of_both_stages():
    class Partial(Judge):
        def score_groups(self, items: Sequence[tuple[Prompt, Sequence[Completion]]]) -> list[tuple[Score, ...]]:
            values = [None, 0.2] if len(items[0][1]) == 2 else [0.4, 0.9, None, None]
            scores = [[Score(float(place % 2)) for place in range(len(values))] for _ in items]
            return [tuple(with_part(one, "style", values)) for one in scores]

    tested = collector(lambda: "", judge=Partial(parity), group_size=6, attempts=None, two_stage=TwoStage(first=2))
    (one,) = tested.step(schedule(), 1, seed=0).trained
    assert [s.parts["style"] for s in one.scores] == pytest.approx([0.5, 0.2, 0.4, 0.9, 0.5, 0.5])


@pytest.mark.parametrize("p", [0.0, 0.15])
def test_groups_that_were_ended_are_counted_even_where_all_were(p):
    rollout = in_two_stages(p)
    assert rollout.schedule["ended"] == sum(len(group.completions) == 4 for group in rollout.sampled) > 0


def test_a_step_in_two_stages_costs_the_first_of_all_and_the_second_of_some():
    assert sum(len(group.completions) for group in in_two_stages(0.0).sampled) == 40 * 4
    assert sum(len(group.completions) for group in in_two_stages(0.5).sampled) > 40 * 7


def test_a_surplus_is_dropped_in_the_order_of_drawing():
    rollout = collector(coin(0.2), attempts=20).step(schedule(), 10, seed=0)
    informative = [group for group in rollout.sampled if group.informative]
    assert len(informative) > 10
    assert rollout.trained == tuple(informative[:10])


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_prompts_that_carry_no_gradient_end_the_step_after_the_last_attempt(p):
    rollout = collector(coin(p), attempts=3).step(schedule(), 4, seed=0)
    assert (len(rollout.trained), len(rollout.sampled), rollout.attempts) == (0, 12, 3)


def test_too_few_informative_groups_train_as_they_are():
    rollout = collector(coin(0.05), attempts=2).step(schedule(), 20, seed=0)
    assert 0 < len(rollout.trained) < 20


@pytest.mark.parametrize(("p", "factor"), [(0.1, 1.756), (0.5, 1.008), (0.02, 6.70)])
def test_worked_overgeneration_of_groups_of_eight(p, factor):
    rollout = collector(coin(p, seed=3), group_size=8, attempts=1).step(schedule(), 6000, seed=0)
    assert len(rollout.sampled) / len(rollout.trained) == pytest.approx(factor, rel=0.05)


def test_the_filter_looks_at_raw_accuracy_and_not_at_the_shaped_reward():
    class Shaped(Judge):
        def score_groups(self, items: Sequence[tuple[Prompt, Sequence[Completion]]]) -> list[tuple[Score, ...]]:
            penalties = (0.0, -0.1, -0.5, -1.0)
            return [tuple(score(0.0, overlong=p) for p in penalties) for _ in items]

    rollout = collector(coin(0.0), judge=Shaped(parity)).step(schedule(), 4, seed=0)
    assert len({s.reward for s in rollout.sampled[0].scores}) == 4
    assert rollout.trained == ()


def test_unscorable_completions_do_not_make_a_group_informative():
    outcomes = iter([1.0, None] * 1000)
    rollout = collector(lambda: "", judge=Judge(lambda _: next(outcomes))).step(schedule(), 4, seed=0)
    assert rollout.trained == ()


def test_the_schedule_observes_every_group_that_was_drawn():
    noted = Noted(prompts(50), seed=0)
    rollout = collector(coin(0.2), attempts=20).step(noted, 10, seed=0)
    assert noted.observed == [group.prompt.id for group in rollout.sampled]


@pytest.mark.parametrize(
    "section",
    [
        {"kind": "uniform"},
        {"kind": "difficulty_pools"},
        {"kind": "ads", "window": 4, "active": 2, "move": "outside"},
    ],
)
def test_every_schedule_refills_a_step_and_observes_each_group_exactly_once(section, monkeypatch):
    every = prompts(60)
    tested = build_schedule(
        {k: every[k::4] for k in range(4)}, settings(schedule=section, train={"prompts_per_step": 8})
    )
    drawn, observed = [], []
    draw, observe = tested.next, tested.observe
    monkeypatch.setattr(tested, "next", lambda count: drawn.append(draw(count)) or drawn[-1])
    monkeypatch.setattr(tested, "observe", lambda groups: observed.append(list(groups)) or observe(groups))
    rollout = collector(coin(0.1, seed=1), attempts=20).step(tested, 8, seed=0)
    assert rollout.attempts > 1
    assert len(rollout.trained) == 8
    assert [[g.prompt for g in groups] for groups in observed] == drawn
    assert [g for groups in observed for g in groups] == list(rollout.sampled)
    assert all(len(batch) == 8 for batch in drawn)


def test_attempts_of_a_step_sample_differently_and_a_step_repeats_with_its_seed():
    micro = policy()
    alone = Uniform(prompts(1), seed=0)
    tested = Collector(micro, engine(micro), Judge(lambda _: 0.0), settings().rollout)
    first, second = tested.step(alone, 1, seed=5).sampled
    assert first.completions != second.completions
    assert tested.step(alone, 1, seed=5).sampled == (first, second)
    assert tested.step(alone, 1, seed=6).sampled[0] != first


@pytest.mark.parametrize(("served", "digits"), [(None, 60), (40, 38)])
def test_a_prompt_too_long_for_the_model_or_its_servers_is_refused_before_sampling(served, digits):
    micro, sampler = policy(), Script()
    sampler.max_positions = served
    collector = Collector(micro, sampler, Judge(parity), settings().rollout)
    too_long = replace(prompts(1)[0], text="9" * digits)
    with pytest.raises(InputError, match=f"exceed the {served or 64} positions of the model or of its servers"):
        collector.groups([too_long], sampling(n=2))
    with pytest.raises(InputError, match=f"exceed the {served or 64} positions"):
        collector.check_lengths([too_long.text])


# What a response may change


class Shaped(Judge):
    """Adds a part to every reward."""

    def score_groups(self, items):
        return [tuple(replace(s, parts={"overlong": -0.5}) for s in row) for row in super().score_groups(items)]


def test_shaping_multiplies_every_part_but_accuracy_of_training_steps_and_of_nothing_else():
    tested = collector(coin(0.5), attempts=None, judge=Shaped(lambda c: float(c.text)))
    chosen = RolloutSettings(group_size=4)
    for factor in (1.0, 0.5, 0.0):
        tested.configure(chosen, shaping=factor)
        trained = tested.step(schedule(), 5, seed=0).trained
        assert {s.parts["overlong"] for group in trained for s in group.scores} == {-0.5 * factor}
        assert {s.accuracy for group in trained for s in group.scores} == {0.0, 1.0}
        dev = tested.groups(prompts(2), tested.sampling(seed=1))
        assert {s.parts["overlong"] for group in dev for s in group.scores} == {-0.5}


@pytest.mark.parametrize(("most", "kept"), [(None, [0, 1, 2, 3, 4]), (2, [0, 1, 2, 4]), (1, [0, 2])])
def test_no_more_groups_of_one_question_are_trained_on_than_max_repeats_whatever_their_ids(most, kept):
    asked = [replace(p, text=text) for p, text in zip(prompts(5), "aabab", strict=True)]
    found = [Group(p, (1,), (), ()) for p in asked]
    assert without_repeats(found, most) == [found[i] for i in kept]


def test_repeats_are_sampled_observed_and_replaced_by_dynamic_sampling():
    same = [replace(p, text="what?") if i < 30 else p for i, p in enumerate(prompts(50))]
    order = Noted(same, seed=0)
    rollout = collector(coin(0.5), attempts=20, max_repeats=1).step(order, 8, seed=0)
    texts = [group.prompt.text for group in rollout.trained]
    assert (len(texts), len(set(texts)), texts.count("what?")) == (8, 8, 1)
    assert order.observed == [group.prompt.id for group in rollout.sampled]


def test_barred_prompts_are_sampled_and_not_trained_on():
    barred = {p.id for p in prompts(10)}
    rollout = collector(coin(0.5), attempts=None).step(schedule(20), 20, seed=0, barred=barred)
    assert {g.prompt.id for g in rollout.sampled} > barred
    assert {g.prompt.id for g in rollout.trained} == {g.prompt.id for g in rollout.sampled} - barred


def test_a_review_may_take_scores_back_before_anything_is_filtered():
    def nothing_is_scored(found: Sequence[Group]) -> list[Group]:
        return [replace(g, scores=tuple(Score(None, unscorable="disputed") for _ in g.scores)) for g in found]

    tested = collector(coin(0.5), attempts=2)
    tested.configure(
        RolloutSettings(group_size=4, dynamic_sampling=DynamicSampling(max_attempts=2)), review=nothing_is_scored
    )
    rollout = tested.step(schedule(), 4, seed=0)
    assert (len(rollout.sampled), rollout.trained) == (8, ())
    assert tested.groups(prompts(1), tested.sampling(seed=1))[0].accuracies
