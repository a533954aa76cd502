"""RREDCoT: segments, values of prefixes, weights of tokens, and what is asked of the policy for them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from factories import group, policy, prompt, settings
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from toys import near

from components.config.advantages import RredcotRedistribution
from components.learner.batch import build_batch
from components.learner.build import build_learner
from components.objectives.advantages.redistribution import log_value, segment_weights, telescope, value
from components.objectives.advantages.segments import merge, natural_ends
from components.policy import response_logprobs
from components.training import redistribute as module
from components.training.credit import Credit
from components.training.redistribute import plans, redistribute, same_place
from components.types import Completion, Group, Mix, Score

# Segments


@pytest.mark.parametrize(
    ("pieces", "separators", "ends"),
    [
        (["7", "+8", "=15", ";", "4+", "3=7", "#", "82", ""], [";", "#"], (4, 7, 9)),
        (["7+8=15;4", "+3=7#8", "2"], [";", "#"], (1, 2, 3)),
        (["a", "\n", "\n", "b", "\n\n", "c"], ["\n"], (3, 5, 6)),
        (["a.", " b", ".", " ", "c"], [". "], (2, 4, 5)),
        (["a", "\n", "b", "\n", ""], ["\n"], (2, 5)),
        (["a", "\n", "b", "#", ""], ["\n", "#"], (2, 5)),
        (["\n", "a", "\n", "b"], ["\n"], (1, 3, 4)),
        (["x=1", ".", " Wait", ",", " no"], ["Wait"], (2, 5)),
        (["x", " W", "ait", " no", " Wait"], ["Wait"], (1, 4, 5)),
        (["Wait", " a", "\n", "So", " b", " Someone"], ["\n", "So", "Wait"], (3, 6)),
        (["no", " cut"], ["\n"], (2,)),
        ([], ["\n"], ()),
    ],
)
def test_worked_segments(pieces, separators, ends):
    assert natural_ends(pieces, separators) == ends


@given(st.lists(st.sampled_from(["a", "Wait ", "\n", ";", "", " \n", "b;c"]), max_size=20))
def test_segments_are_a_partition_of_the_tokens(pieces):
    ends = natural_ends(pieces, ["\n", ";", "Wait"])
    assert sorted({0, *ends}) == [0, *ends]
    assert (ends or (0,))[-1] == len(pieces)


@pytest.mark.parametrize(
    ("most", "ends"), [(4, (1, 3, 4, 6)), (3, (3, 4, 6)), (2, (4, 6)), (1, (6,)), (9, (1, 3, 4, 6))]
)
def test_the_neighbours_with_the_least_entropy_are_merged_first(most, ends):
    assert merge((1, 3, 4, 6), [0.1, 0.2, 0.0, 1.0, 2.0, 0.5], most) == ends


def test_without_entropy_the_first_pair_is_merged_first():
    assert merge((1, 2, 3), [0.0] * 3, 2) == (2, 3)


@given(st.lists(st.floats(0, 9), min_size=1, max_size=30), st.integers(1, 12), st.data())
def test_merging_keeps_the_last_end_and_makes_none(entropy, most, data):
    ends = (*sorted(data.draw(st.sets(st.integers(1, len(entropy) - 1)) if len(entropy) > 1 else st.just(set()))),)
    ends = (*ends, len(entropy))
    kept = merge(ends, entropy, most)
    assert len(kept) == min(most, len(ends))
    assert kept[-1] == len(entropy)
    assert set(kept) <= set(ends)


# Values. The language: three letters out of "ab", after prefixes that change their chances


def chance(prefix: str, letter: str) -> float:
    first = (1 + prefix.count("a") + (prefix[-1:] == "b")) / (3 + len(prefix))
    return first if letter == "a" else 1 - first


def likelihood(prefix: str, rest: str) -> float:
    return math.prod(chance(prefix + rest[:i], letter) for i, letter in enumerate(rest))


WORTH = {"".join(text): (text.count("a") ** 2) / 9 for text in product("ab", repeat=3)}
PREFIXES = ["".join(text) for n in range(3) for text in product("ab", repeat=n)]


def rests(prefix):
    return ["".join(text) for text in product("ab", repeat=3 - len(prefix))]


def worth_of(prefix, known):
    return torch.tensor([WORTH[prefix + rest] for rest in known], dtype=torch.float64)


def log_likelihoods(prefix, known):
    return torch.tensor([likelihood(prefix, rest) for rest in known], dtype=torch.float64).log()


def true_value(prefix):
    return sum(likelihood(prefix, rest) * WORTH[prefix + rest] for rest in rests(prefix))


@pytest.mark.parametrize("prefix", PREFIXES)
@given(st.data())
def test_the_likelihoods_of_distinct_continuations_never_promise_more_than_the_true_value(prefix, data):
    known = data.draw(st.lists(st.sampled_from(rests(prefix)), unique=True, min_size=1))
    found = log_value(log_likelihoods(prefix, known), worth_of(prefix, known)).exp().item()
    assert found * len(known) <= true_value(prefix) + 1e-12


@pytest.mark.parametrize("prefix", PREFIXES)
def test_when_every_continuation_is_in_the_bank_the_value_is_the_true_one(prefix):
    logp, worth = log_likelihoods(prefix, rests(prefix)), worth_of(prefix, rests(prefix))
    assert log_value(logp, worth).exp().item() * len(worth) == near(true_value(prefix), 1e-12)
    assert value(logp, worth).item() == near(true_value(prefix), 1e-12)


UTILITIES = st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=6)


@given(
    UTILITIES.flatmap(
        lambda u: st.tuples(
            st.just(u), st.lists(st.floats(-50, 50), min_size=len(u), max_size=len(u)), st.permutations(range(len(u)))
        )
    ),
    st.floats(-1e6, 1e6),
)
def test_the_order_of_the_bank_and_the_length_of_the_text_do_not_matter(case, unlikely):
    utilities, log_weights, order = case
    utility, weights = torch.tensor(utilities), torch.tensor(log_weights, dtype=torch.float64)
    found = value(weights, utility).item()
    assert value(weights[order], utility[order]).item() == near(found, 1e-12)
    assert log_value(weights[order], utility[order]).item() == near(log_value(weights, utility).item(), 1e-12)
    assert value(weights + unlikely, utility).item() == near(found, 1e-6)
    assert min(utilities) - 1e-12 <= found <= max(utilities) + 1e-12


def test_texts_of_a_hundred_thousand_nats_do_not_underflow():
    log_weights = torch.tensor([-1e5, -1e5 - math.log(3)], dtype=torch.float64)
    utility = torch.tensor([1.0, 0.0])
    assert log_value(log_weights, utility).item() == near(-1e5 - math.log(2), 1e-9)
    assert value(log_weights, utility).item() == near(0.75, 1e-9)


def test_without_a_useful_continuation_the_value_is_zero_and_its_logarithm_minus_infinity():
    assert log_value(torch.zeros(3), torch.zeros(3)).item() == -math.inf
    assert value(torch.zeros(3), torch.zeros(3)).item() == 0.0


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_weight_that_is_no_number_does_not_count_and_without_any_it_is_the_plain_mean(odd):
    utility = torch.tensor([1.0, 0.0, 0.5])
    assert value(torch.tensor([odd, 0.0, 0.0]), utility).item() == near(0.25, 1e-12)
    assert value(torch.full((3,), odd), utility).item() == 0.5


# Credit and weights


def test_worked_credits_add_up_to_the_outcome_minus_the_value_of_the_prompt():
    credit = telescope(torch.tensor([0.2, 0.2, 0.6, 0.55, 1.0], dtype=torch.float64))
    assert credit.tolist() == near([0, 0.4, -0.05, 0.45], 1e-12)
    assert credit.sum().item() == near(0.8, 1e-12)


CREDIT = torch.tensor([0, 0.4, -0.05, 0.45], dtype=torch.float64)


@pytest.mark.parametrize(
    ("advantage", "expected"),
    [(1.0, [0.57696, 1.42304, 0.47120, 1.52880]), (-0.1, [1.42304, 0.57696, 1.52880, 0.47120])],
)
def test_worked_weights_of_segments_of_equal_length(advantage, expected):
    assert segment_weights(CREDIT, torch.tensor([3] * 4), advantage, 0.5).tolist() == near(expected, 1e-5)


def test_worked_weights_of_segments_of_different_length():
    weights = segment_weights(torch.tensor([0.0, 1.0], dtype=torch.float64), torch.tensor([9, 1]), 1.0, 0.5)
    raw = [1 - 0.05 / 0.31, 2.0]
    mean = 0.9 * raw[0] + 0.1 * raw[1]
    assert weights.tolist() == near([r / mean for r in raw], 1e-9)


CASES = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(-1, 1), min_size=n, max_size=n),
        st.lists(st.integers(0, 100), min_size=n, max_size=n),
        st.sampled_from([-2.0, 0.5]),
        st.floats(0.01, 1),
    )
)


@given(CASES)
def test_the_weights_of_a_completion_have_mean_one_over_its_tokens_and_are_bounded(case):
    credit, tokens, advantage, strength = case
    weights = segment_weights(torch.tensor(credit, dtype=torch.float64), torch.tensor(tokens), advantage, strength)
    if any(tokens):
        assert (weights * torch.tensor(tokens)).sum().item() / sum(tokens) == near(1, 1e-9)
        written = weights[torch.tensor(tokens) > 0]
        assert written.min() >= 0
        assert written.max() <= 2 / (1 - strength**2 / 4) + 1e-9
    else:
        assert weights.tolist() == [1.0] * len(credit)


@given(st.floats(-1, 1), st.integers(1, 9), st.sampled_from([-1.0, 1.0]))
def test_equal_credits_are_grpo_to_the_bit(credit, segments, advantage):
    tokens = torch.arange(1, segments + 1)
    assert segment_weights(torch.full((segments,), credit), tokens, advantage, 1.0).tolist() == [1.0] * segments


def test_credits_that_differ_by_less_than_a_hundredth_hardly_change_a_weight():
    noise = torch.tensor([0.001, -0.001, 0.0005])
    assert segment_weights(noise, torch.tensor([5, 5, 5]), 1.0, 0.5).tolist() == near([1.0] * 3, 0.06)


# In the loop. The language: a step that says nothing (x or y), a step that decides (good or bad), the answer

SEMICOLON, X, Y, GOOD, BAD, RIGHT, WRONG = range(1, 8)
TEXT = {SEMICOLON: ";", X: "x", Y: "y", GOOD: "good", BAD: "bad", RIGHT: "right", WRONG: "wrong"}
SETTINGS = RredcotRedistribution(separators=(";",))
PROMPT = (9, 9)


def logp_next(context, token):
    if token == SEMICOLON:
        return 0.0
    if token in (RIGHT, WRONG):
        return math.log(0.9 if (context[-2] == GOOD) == (token == RIGHT) else 0.1)
    return math.log(0.5)


def logps(context, rest):
    return [logp_next((*context, *rest[:i]), token) for i, token in enumerate(rest)]


class Oracle:
    """Scores rows by the table above, and remembers them."""

    def __init__(self):
        self.rows = []

    def __call__(self, rows):
        self.rows += rows
        return torch.tensor([sum(logps(*row)) for row in rows])


def written(*tokens, **changes):
    ids = tuple(token for step in tokens for token in (step, SEMICOLON))[:-1]
    return replace(Completion(ids, tuple(logps(PROMPT, ids)), "stop", ""), **changes)


def grouped(*completions, accuracies=None):
    found = [float(c.token_ids[-1] == RIGHT) for c in completions] if accuracies is None else accuracies
    scores = tuple(Score(a, {}, "timeout" if a is None else None) for a in found)
    return Group(prompt(1), PROMPT, completions, scores)


FOUR = [written(X, GOOD, RIGHT), written(Y, GOOD, RIGHT), written(X, BAD, WRONG), written(Y, BAD, WRONG)]
SIGNS = torch.tensor([[1.0, 1.0, -1.0, -1.0]])


def factors(*completions, signs=SIGNS, chosen=SETTINGS, accuracies=None):
    oracle = Oracle()
    groups = [grouped(*completions, accuracies=accuracies)]
    result = redistribute(groups, signs, oracle, lambda ids: TEXT[ids[0]], chosen)
    return result.factors[0], result.metrics, oracle.rows


def test_worked_factors_put_praise_and_blame_on_the_step_that_decided():
    found, metrics, _ = factors(*FOUR)
    # Right, by its bank of one right and two wrong: 1/3 before and after the idle step, 1 / (1 + 2/9) after "good".
    credit = torch.tensor([0, 9 / 11 - 1 / 3, 2 / 11], dtype=torch.float64)
    expected = segment_weights(credit, torch.tensor([2, 2, 1]), 1.0, 0.5)
    for row in found:  # the wrong ones mirror the right ones
        assert row.tolist() == near(expected[[0, 0, 1, 1, 2]].tolist(), 1e-6)
    assert expected.argmax() == 1
    assert expected[1] > 1.3
    assert metrics["redistributed_share"] == 1.0


def test_others_with_the_same_text_are_samples_like_any_other():
    found, _, _ = factors(FOUR[0], FOUR[0], FOUR[2], FOUR[2])
    # Of one right and two wrong: 1/3 before the step, as in the group above, since x and y say nothing.
    assert torch.allclose(found, factors(*FOUR)[0])


def test_a_longer_group_finds_the_step_as_well_and_every_completion_keeps_its_weight():
    completions = FOUR * 2 + [written(X, GOOD, WRONG), written(Y, BAD, RIGHT)]
    found, _, _ = factors(*completions, signs=torch.ones(1, 10))
    assert (found[0, 2:4] > found[0, :2]).all()
    assert found.mean(1).tolist() == near([1.0] * 10, 1e-6)


def test_the_order_of_the_group_does_not_matter_while_the_bank_holds_all_of_it():
    order = [2, 0, 3, 1]
    found, _, _ = factors(*(FOUR[i] for i in order), signs=SIGNS[:, order])
    assert torch.allclose(found, factors(*FOUR)[0][order])


def test_rows_are_bounded_distinct_short_and_have_a_continuation():
    long = written(X, X, Y, Y, X, GOOD, RIGHT)
    found, metrics, rows = factors(*FOUR, long, signs=torch.ones(1, 5))
    assert found.shape == (5, 13)
    assert len(rows) == len(set(rows)) == metrics["redistribution_rows"] <= 5 * (7 - 1) * 4
    assert max(len(context) + len(rest) for context, rest in rows) <= len(PROMPT) + 13
    assert min(len(rest) for _, rest in rows) >= 1
    assert (found[0, 5:] == 1).all()


def test_the_bank_and_the_number_of_segments_bound_the_rows():
    few = SETTINGS.model_copy(update={"bank": 2, "segments": 2})
    _, metrics, rows = factors(*FOUR, chosen=few)
    assert metrics["redistribution_rows"] <= 4 * (2 - 1) * 2
    assert {len(context) for context, _ in rows} == {len(PROMPT) + 2}  # the answer was merged with what decided it


@pytest.mark.parametrize(
    ("completions", "accuracies", "signs"),
    [
        (FOUR, None, [0.0] * 4),
        (FOUR[:2], None, [1.0, 1.0]),
        (FOUR[:1] + FOUR[2:], None, [1.0, 0.0, 0.0]),
        ([written(GOOD)] * 2 + [written(BAD)] * 2, [1.0, 1.0, 0.0, 0.0], [1.0] * 4),
        (FOUR, [1.0, None, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]),
        ([FOUR[0], replace(FOUR[1], sampled=(True,) * 4 + (False,)), *FOUR[2:]], None, [1.0, 0, 0, 0]),
        ([FOUR[0], replace(FOUR[1], mixes=(Mix(0, (X, Y), (0.5, 0.5)),)), *FOUR[2:]], None, [1.0, 0, 0, 0]),
        ([replace(FOUR[0], mixes=(Mix(0, (X, Y), (0.5, 0.5)),)), *FOUR[1:]], None, [1.0, 0, 0, 0]),
        ([], [], []),
    ],
    ids=[
        "no advantage",
        "all right",
        "the only right one",
        "one segment",
        "unscorable",
        "a tool wrote in it",
        "the bank was mixed",
        "it was mixed",
        "empty group",
    ],
)
def test_where_nothing_can_be_learned_it_is_grpo_and_nothing_is_scored(completions, accuracies, signs):
    found, metrics, rows = factors(*completions, accuracies=accuracies, signs=torch.tensor([signs]))
    assert (found == 1).all()
    assert rows == []
    assert metrics == {"redistribution_rows": 0.0, "redistributed_share": 0.0}


def test_tokens_that_a_tool_wrote_take_no_part_in_the_mean():
    partly = replace(FOUR[0], sampled=(True, True, False, True, True))
    found, _, _ = factors(partly, *FOUR[1:])
    assert found[0, [0, 1, 3, 4]].mean().item() == near(1, 1e-6)
    assert found[0].mean().item() != near(1, 1e-3)


def test_groups_of_different_sizes_share_one_rectangle():
    oracle = Oracle()
    groups = [grouped(*FOUR), grouped(FOUR[0], FOUR[2], FOUR[3]), grouped()]
    signs = torch.tensor([[1.0, 1, -1, -1], [1.0, -1, -1, 0], [0.0] * 4])
    result = redistribute(groups, signs, oracle, lambda ids: TEXT[ids[0]], SETTINGS)
    assert torch.equal(result.factors[0], factors(*FOUR)[0])
    assert (result.factors[2] == 1).all()
    assert result.metrics["redistributed_share"] == near(6 / 7, 1e-9)  # all others of the only right one are wrong
    empty = redistribute([], torch.zeros(0, 0), oracle, lambda ids: "", SETTINGS)
    assert empty.factors.shape == (0, 0, 0)


@pytest.mark.parametrize("at_once", [1, 10_000])
def test_how_many_groups_are_scored_together_changes_nothing(monkeypatch, at_once):
    calls = []
    monkeypatch.setattr(module, "ROWS_AT_ONCE", at_once)

    def score(rows):
        calls.append(len(rows))
        assert [len(c) + len(r) for c, r in rows] == sorted(len(c) + len(r) for c, r in rows)
        return Oracle()(rows)

    result = redistribute([grouped(*FOUR)] * 3, SIGNS.repeat(3, 1), score, lambda ids: TEXT[ids[0]], SETTINGS)
    assert torch.equal(result.factors, factors(*FOUR)[0].expand(3, -1, -1))
    assert len(calls) == (3 if at_once == 1 else 1)


def test_a_plan_pairs_every_prefix_with_the_rests_that_follow_the_same_step_and_the_samplers_word_on_them():
    plan = plans(grouped(*FOUR), [True, False, False, False], lambda ids: TEXT[ids[0]], 5, SETTINGS)[0]
    first, second = plan.states
    assert [ask.row for ask in first] == [
        ((*PROMPT, X, SEMICOLON), (s, SEMICOLON, a)) for s, a in [(GOOD, RIGHT), (BAD, WRONG), (BAD, WRONG)]
    ]
    assert [ask.row for ask in second] == [
        ((*PROMPT, X, SEMICOLON, GOOD, SEMICOLON), (a,)) for a in (RIGHT, WRONG, WRONG)
    ]
    assert [ask.own for ask in first] == near([math.log(0.5) + math.log(0.9)] * 3, 1e-9)
    assert [ask.own for ask in second] == near([math.log(0.9)] * 3, 1e-9)


@pytest.mark.parametrize(
    ("step", "steps", "natural", "place"),
    [
        (1, 3, (2, 4, 5), 2),
        (2, 3, (2, 4, 5), 4),
        (1, 2, (2, 4, 6, 8), 4),
        (5, 6, (2, 4), 2),
        (1, 6, (2, 4), 0),
        (1, 2, (7,), 0),
        (11, 12, (1, 2, 3), 2),
    ],
)
def test_the_same_place_is_after_the_same_share_of_the_steps_and_never_the_end(step, steps, natural, place):
    assert same_place(step, steps, natural) == place


# Under a real policy


def test_the_credit_of_a_batch_is_what_single_unpadded_rows_of_the_learners_policy_say():
    micro = policy()
    chosen = settings(
        objective={"redistribution": {"separators": [";", "#"]}},
        rollout={"temperature": 0.7},
        learner={"micro_batch_tokens": 64},
    )
    texts = ["1+2=3;4#5", "1+2=3;1;2#7", "6;4+4=8#5", "9#9"]
    found = group([1.0, 0.0, 1.0, 0.0], tokens=[micro.encode_answer(text) for text in texts])

    def score(rows):
        with torch.no_grad():
            return torch.stack([alone(torch.tensor([[*context, *rest]]), len(rest)) for context, rest in rows])

    def alone(ids, responses):
        return response_logprobs(micro.model, ids, torch.ones_like(ids), responses, 0.7).logp.sum()

    expected = redistribute([found], SIGNS[:, [0, 2, 1, 3]], score, micro.decode, chosen.objective.redistribution)
    batch = build_batch([found], micro.pad_id)
    credited = Credit(build_learner(micro, chosen), None, micro, chosen.objective).assign(batch, [found], step=0)
    assert credited.signals == expected.metrics
    rows = {
        int(m): (a[k], k) for m, a, k in zip(batch.member, credited.batch.advantages, batch.response_mask, strict=True)
    }
    for member, (advantages, mask) in rows.items():
        sign = 1 if found.scores[member].accuracy else -1
        assert advantages.tolist() == near((sign * expected.factors[0, member][mask]).tolist(), 1e-3)
        assert advantages.mean().item() == near(sign, 1e-5)
    assert (expected.factors[0, 0] - 1).abs().max() > 0.1


@pytest.mark.parametrize(
    "changes",
    [{"strength": 0.0}, {"strength": 1.5}, {"bank": 1}, {"segments": 1}, {"separators": ()}, {"separators": ("",)}],
)
def test_settings_that_could_do_nothing_are_refused(changes):
    with pytest.raises(ValidationError):
        RredcotRedistribution(**changes)
