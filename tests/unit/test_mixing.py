"""N-GRPO (2606.10768): which steps are mixed, with what, what the completion remembers, and the learner's replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch
from factories import Judge, gpt2, parity, policy, prefer, prompts, settings
from hypothesis import given
from hypothesis import settings as configured
from hypothesis import strategies as st
from pydantic import ValidationError
from test_rollout import PROMPTS, engine, talkative

from components.config.rollout import Mixing, RolloutSettings
from components.config.rollout import TorchEngine as TorchEngineSettings
from components.errors import InputError
from components.learner.batch import build_batch
from components.learner.build import build_learner
from components.policy import Policy, response_logprobs
from components.policy.mixing import mixed_embeddings, pad_mixes
from components.policy.padding import pad
from components.rollout import Collector, Sampling
from components.rollout.decoding import Choice, Writing
from components.rollout.mixing import Marker, Mixer, Neighbours
from components.rollout.torch_engine import TorchEngine
from components.scheduling import Uniform
from components.types import Completion, Mix


def sampling(mixing: Mixing | None, n: int = 8, tokens: int = 12, temperature: float = 1.0, seed: int = 0) -> Sampling:
    return Sampling(n=n, max_new_tokens=tokens, temperature=temperature, seed=seed, mixing=mixing)


def rows(found: Sequence[tuple[Completion, ...]]) -> list[Completion]:
    return [completion for row in found for completion in row]


def endless() -> Policy:
    return talkative(-50.0)


@cache
def tokenizer():
    return policy().tokenizer


# Neighbours


TABLE = torch.tensor([[1.0, 0.0], [5.0, 0.5], [0.0, 1.0], [-1.0, 0.2], [0.6, 0.8], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("anchor", "k", "expected"),
    [(0, 1, [0]), (0, 2, [0, 5]), (0, 4, [0, 5, 1, 4]), (2, 3, [2, 4, 3]), (5, 2, [5, 0]), (3, 2, [3, 2])],
)
def test_the_nearest_are_those_of_largest_cosine_whatever_their_length_and_the_anchor_comes_first(anchor, k, expected):
    assert Neighbours(TABLE, k).candidates(torch.tensor([anchor])).tolist() == [expected]


def test_asking_for_many_at_once_or_again_gives_the_same(monkeypatch):
    anchors = torch.tensor([3, 0, 3, 1, 2, 4])
    once = Neighbours(TABLE, 3)
    first = once.candidates(anchors)
    monkeypatch.setattr("components.rollout.mixing.CHUNK", 2)
    assert Neighbours(TABLE, 3).candidates(anchors).equal(first)
    assert once.candidates(anchors).equal(first)


def test_more_candidates_than_tokens_are_refused():
    with pytest.raises(InputError, match="6 tokens has no 7 candidates"):
        Neighbours(TABLE, 7)


# A mixture


def mixed(logits: torch.Tensor, k: int, prob: float = 1.0, temperature: float = 1.0) -> Choice:
    """The choice of token 2 in every row of ``logits`` after mixing."""
    count = len(logits)
    writing = Writing(count, sampling(None, n=1), eos=99)
    marker = Marker(None, tokenizer(), count)
    mixer = Mixer(Mixing(prob=prob, neighbours=k), temperature, Neighbours(TABLE, k), marker, seed=0)
    return mixer.mix(logits, Choice(torch.full((count,), 2), torch.zeros(count)), writing)


@pytest.mark.parametrize(("temperature", "weights"), [(1.0, [0.8808, 0.1192]), (2.0, [0.7311, 0.2689])])
def test_worked_weights_of_an_anchor_of_logit_two_and_a_neighbour_of_logit_zero(temperature, weights):
    logits = torch.tensor([[2.0, 0.0, 1.5, 1.5, 1.5, 0.0]])
    found = mixed(logits, 2, temperature=temperature)
    assert found.tokens.tolist() == [0]
    assert found.mixes.token_ids.tolist() == [[0, 5]]
    assert found.mixes.weights[0].tolist() == pytest.approx(weights, abs=1e-4)
    assert found.logp[0].item() == pytest.approx(torch.log_softmax(logits / temperature, -1)[0, 0].item())


@configured(deadline=None)
@given(st.lists(st.floats(-20, 20, width=32), min_size=6, max_size=6), st.integers(1, 6), st.floats(0.1, 10))
def test_weights_are_a_distribution_so_that_a_mixture_lies_between_its_embeddings(logits, k, temperature):
    found = mixed(torch.tensor([logits]), k, temperature=temperature)
    weights, candidates = found.mixes.weights[0], TABLE[found.mixes.token_ids[0]]
    assert weights.min() >= 0
    assert weights.sum().item() == pytest.approx(1, abs=1e-5)
    mixture = weights @ candidates
    assert (mixture <= candidates.amax(0) + 1e-5).all()
    assert (mixture >= candidates.amin(0) - 1e-5).all()


def test_rows_whose_gate_is_closed_keep_their_choice():
    found = mixed(torch.randn(1000, 6), 2, prob=0.3)
    open_gates = found.mixes.mixed
    assert 0.2 < open_gates.float().mean() < 0.4
    assert (found.tokens[~open_gates] == 2).all()
    assert (found.logp[~open_gates] == 0).all()


# Embeddings


def test_only_mixed_places_differ_from_the_ordinary_embeddings():
    embedding = torch.nn.Embedding.from_pretrained(TABLE)
    input_ids = torch.tensor([[4, 0, 1, 2], [5, 3, 2, 1]])  # a prompt of one token, a response of three
    weights = torch.zeros(2, 3, 2)
    weights[0, 1] = torch.tensor([0.75, 0.25])
    token_ids = torch.zeros(2, 3, 2, dtype=torch.long)
    token_ids[0, 1] = torch.tensor([1, 2])
    found = mixed_embeddings(embedding, input_ids, token_ids, weights)
    expected = TABLE[input_ids]
    expected[0, 2] = torch.tensor([0.75 * 5.0, 0.75 * 0.5 + 0.25 * 1.0])
    assert found.equal(expected)


def test_only_with_mixing_does_a_completion_depend_on_the_rest_of_the_batch():
    def first(count: int, mixing: Mixing | None) -> list[tuple[int, ...]]:
        group, *_ = engine(policy()).generate(PROMPTS[:count], sampling(mixing))
        return [completion.token_ids for completion in group]

    assert first(1, None) == first(len(PROMPTS), None)
    assert first(1, Mixing(prob=0.5)) != first(len(PROMPTS), Mixing(prob=0.5))


def test_a_mixture_of_one_is_the_anchors_embedding_to_the_bit():
    micro = policy()
    found = rows(engine(micro).generate(PROMPTS, sampling(Mixing(prob=0.5, neighbours=1))))
    mixes = [(c.token_ids[mix.position], mix) for c in found for mix in c.mixes]
    assert len(mixes) > 10
    assert all(mix.token_ids == (token,) and mix.weights == (1.0,) for token, mix in mixes)
    embedding, ids = micro.model.get_input_embeddings(), torch.tensor([[t for t, _ in mixes]])
    assert mixed_embeddings(embedding, ids, ids[..., None], torch.ones(1, len(mixes), 1)).equal(embedding(ids))


def test_the_gradient_reaches_every_token_of_a_mixture_by_its_weight():
    embedding = torch.nn.Embedding.from_pretrained(TABLE.clone(), freeze=False)
    token_ids, weights = torch.tensor([[[1, 4, 2]]]), torch.tensor([[[0.5, 0.3, 0.2]]])
    mixed_embeddings(embedding, torch.tensor([[0, 1]]), token_ids, weights).sum().backward()
    assert embedding.weight.grad[:, 0].tolist() == pytest.approx([1.0, 0.5, 0.2, 0, 0.3, 0])


def test_mixes_become_tensors_of_padded_width():
    completions = [(), (Mix(0, (7, 8), (0.75, 0.25)), Mix(3, (9,), (1.0,)))]
    found = pad_mixes(completions, 4)
    assert found.token_ids.shape == found.weights.shape == (2, 4, 2)
    assert found.mixed.tolist() == [[False] * 4, [True, False, False, True]]
    assert found.token_ids[1, 0].tolist() == [7, 8]
    assert found.weights[1, 3].tolist() == [1.0, 0.0]


def test_without_mixes_there_are_no_tensors():
    assert pad_mixes([(), ()], 4) is None


# The engine


@pytest.mark.parametrize("build", [endless, talkative])
def test_a_probability_of_zero_samples_token_for_token_what_plain_sampling_does(build):
    plain, never = (engine(build()).generate(PROMPTS, sampling(mixing)) for mixing in (None, Mixing(prob=0.0)))
    assert never == plain


def test_until_its_first_mixture_a_completion_is_that_of_plain_sampling():
    plain, some = (rows(engine(endless()).generate(PROMPTS, sampling(m))) for m in (None, Mixing(prob=0.1)))
    firsts = [c.mixes[0].position if c.mixes else len(c.token_ids) for c in some]
    assert len(set(firsts)) > 5
    for before, after, first in zip(plain, some, firsts, strict=True):
        assert after.token_ids[:first] == before.token_ids[:first]
    assert [c.token_ids for c in plain] != [c.token_ids for c in some]


def test_a_mixture_stands_at_its_anchor_and_says_what_followed():
    found = rows(engine(talkative()).generate(PROMPTS, sampling(Mixing(prob=0.3))))
    for completion in found:
        positions = [mix.position for mix in completion.mixes]
        assert positions == sorted(set(positions))
        for mix in completion.mixes:
            assert completion.token_ids[mix.position] == mix.token_ids[0]
            assert len(mix.token_ids) == len(set(mix.token_ids)) == len(mix.weights) == 3
            assert mix.weights[0] == max(mix.weights)


def test_the_share_of_mixed_tokens_is_the_probability():
    found = rows(engine(endless()).generate(PROMPTS, sampling(Mixing(prob=0.2), n=64)))
    share = sum(len(c.mixes) for c in found) / sum(len(c.token_ids) for c in found)
    assert share == pytest.approx(0.2, abs=0.03)


def test_a_probability_of_one_mixes_every_token_so_that_all_samples_are_alike():
    found = engine(endless()).generate(PROMPTS, sampling(Mixing(prob=1.0)))
    assert all(len(set(row)) == 1 and len(row[0].mixes) == 12 for row in found)


def test_the_same_seed_mixes_the_same_and_another_seed_otherwise():
    how = [sampling(Mixing(prob=0.3), seed=seed) for seed in (1, 1, 2)]
    one, again, other = (engine(talkative()).generate(PROMPTS, one) for one in how)
    assert one == again
    assert [[m.position for m in c.mixes] for c in rows(one)] != [[m.position for m in c.mixes] for c in rows(other)]


def test_neighbours_are_those_of_the_weights_loaded_last():
    tested, other = engine(policy()), policy()
    with torch.no_grad():
        other.model.get_input_embeddings().weight.normal_(generator=torch.Generator().manual_seed(1))
    before = tested.generate(PROMPTS, sampling(Mixing(prob=0.5)))
    tested.load_weights(other.weights())
    after = tested.generate(PROMPTS, sampling(Mixing(prob=0.5)))
    assert after == engine(other).generate(PROMPTS, sampling(Mixing(prob=0.5))) != before


# The learner's replay


def replayed(micro: Policy, found: Sequence[tuple[Completion, ...]], temperature: float, mixing: bool) -> torch.Tensor:
    """Ratio of the learner's probability to the engine's, of every token."""
    asked = [prompt for prompt, row in zip(PROMPTS, found, strict=True) for _ in row]
    completions = rows(found)
    padded = pad(asked, [c.token_ids for c in completions], micro.pad_id)
    width = padded.response_mask.shape[1]
    mixes = pad_mixes([c.mixes for c in completions], width) if mixing else None
    with torch.no_grad():
        inputs = (micro.model, padded.input_ids, padded.attention_mask)
        logp = response_logprobs(*inputs, width, temperature, mixes=mixes).logp
    own = torch.tensor([value for c in completions for value in c.logprobs])
    return (logp[padded.response_mask] - own).exp()


@pytest.mark.parametrize("build", [talkative, gpt2])
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_with_the_stored_mixes_the_ratio_is_one_and_without_them_it_is_not(build, temperature):
    micro = build()
    found = engine(micro).generate(PROMPTS, sampling(Mixing(prob=0.3), temperature=temperature))
    assert sum(len(c.mixes) for c in rows(found)) > 20
    with_mixes, without = (replayed(micro, found, temperature, mixing) for mixing in (True, False))
    assert (with_mixes - 1).abs().max() < 1e-3
    assert (without - 1).abs().max() > 0.01


def test_a_mixture_changes_no_probability_before_the_token_after_it():
    micro = endless()
    found = engine(micro).generate(PROMPTS, sampling(Mixing(prob=0.1), n=4))
    without = replayed(micro, found, 1.0, mixing=False).view(-1, 12)
    for completion, ratios in zip(rows(found), without, strict=True):
        first = completion.mixes[0].position if completion.mixes else 11
        assert (ratios[: first + 1] - 1).abs().max() < 1e-3


def test_the_learner_replays_the_mixes_of_a_training_step_from_its_batch():
    micro, chosen = policy(), settings(rollout={"mixing": {"prob": 0.4}, "max_new_tokens": 12})
    collector = Collector(micro, engine(micro), Judge(parity), chosen.rollout)
    groups = collector.step(Uniform(prompts(4), seed=0), 2, seed=0).sampled
    batch, learner = build_batch(groups, micro.pad_id), build_learner(micro, chosen)
    with_mixes, without = (
        (learner.logprobs(b) - batch.rollout_logp)[batch.response_mask].abs().max()
        for b in (batch, replace(batch, mix_ids=None, mix_weights=None))
    )
    assert with_mixes < 1e-3
    assert without > 0.01
    assert int(batch.forced.sum()) == sum(len(c.mixes) for g in groups for c in g.completions) > 10


# The marker


def encoded(text: str) -> list[int]:
    return tokenizer().encode(text, add_special_tokens=False)


@pytest.mark.parametrize(
    ("marker", "before", "marked", "after"),
    [
        ("</think>", "1+1</think", ">", "2</think>"),  # one token a character
        ("+", "12", "+", "3"),
        ("\u00e9", "12", "\u00e9", "3"),  # two tokens, neither of which is a character
        ("<|user|>", "12", "<|user|>", "3"),  # a special token
    ],
)
def test_a_row_has_passed_the_marker_from_its_last_token_on(marker, before, marked, after):
    tested, ids = Marker(marker, tokenizer(), 2), encoded(before + marked + after)
    writing = Writing(2, sampling(None, n=2, tokens=len(ids) + 1), eos=99)
    seen = []
    for token in ids:
        writing.add(Choice(torch.tensor([token, 40]), torch.zeros(2)))
        seen.append(tested.passed(writing).tolist())
    place = len(encoded(before + marked)) - 1
    assert [row[0] for row in seen] == [False] * place + [True] * (len(ids) - place)
    assert not any(row[1] for row in seen)


def test_nothing_is_mixed_after_the_marker():
    micro = prefer(endless(), encoded("5")[0], 4.0)
    found = rows(engine(micro).generate(PROMPTS, sampling(Mixing(prob=0.5, until="5"), n=16)))
    passed = [c.text.index("5") for c in found if "5" in c.text[:-1]]
    assert len(passed) > 20
    assert max(passed) > 2
    for completion in found:
        assert not any("5" in micro.decode(completion.token_ids[: mix.position]) for mix in completion.mixes)


# Only training mixes


class Noted(TorchEngine):
    """Remembers how it was asked to sample."""

    asked: list[Sampling]

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        self.asked = [*getattr(self, "asked", []), sampling]
        return super().generate(prompts, sampling)


def test_training_groups_are_mixed_and_those_that_measure_are_not():
    micro, chosen = policy(), settings(rollout={"mixing": {"prob": 0.4}}).rollout
    noted = Noted(micro, TorchEngineSettings())
    collector = Collector(micro, noted, Judge(parity), chosen)
    collector.step(Uniform(prompts(4), seed=0), 2, seed=0)
    collector.groups(prompts(2), collector.sampling(seed=0))
    collector.groups(prompts(2), collector.sampling(seed=0, n=1, temperature=0.0))
    *training, measured, greedy = noted.asked
    assert training and all(asked.mixing == Mixing(prob=0.4) for asked in training)
    assert (measured.mixing, greedy.mixing) == (None, None)


def test_greedy_decoding_with_a_mixture_is_refused():
    with pytest.raises(ValueError, match="never mixes"):
        replace(sampling(Mixing()), temperature=0.0)


@pytest.mark.parametrize(
    "wrong", [{"prob": -0.1}, {"prob": 1.1}, {"neighbours": 0}, {"until": ""}, {"strategy": "top_k"}]
)
def test_impossible_mixing_is_refused(wrong):
    with pytest.raises(ValidationError):
        RolloutSettings.model_validate({"mixing": wrong})
