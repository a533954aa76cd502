"""Pairs from a step's groups, and pairs read back or imported."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from factories import group, policy, prompts
from hypothesis import given
from hypothesis import strategies as st

from components.dpo.dataset import check_lengths, hold_out, import_pairs, read_pairs
from components.dpo.pairs import Answer, Pair, pairs_of
from components.errors import InputError
from components.files import write_jsonl, write_text
from components.tools.calculator import Calculator
from components.types import Completion, Group, Score

ACCURACIES = st.lists(st.sampled_from([None, 0.0, 0.5, 1.0]), min_size=1, max_size=6)


def groups(*accuracies: list[float | None]) -> list[Group]:
    """One group per prompt; completion i of a group is i + 1 tokens long, so that it can be recognised."""
    return [group(values, prompt=prompt) for values, prompt in zip(accuracies, prompts(len(accuracies)), strict=True)]


def member(answer: Answer) -> int:
    """Which completion of its group an answer is."""
    return len(answer.token_ids) - 1


# From groups


@given(st.lists(ACCURACIES, min_size=1, max_size=6), st.integers(0, 9), st.integers(0, 3))
def test_a_pair_is_of_one_group_and_its_chosen_is_among_the_best_and_its_rejected_among_the_worst(many, limit, seed):
    tested = groups(*many)
    by_id = {g.prompt.id: g for g in tested}
    found = pairs_of(tested, step=3, seed=seed, limit=limit)
    assert len(found) == min(limit, sum(g.informative for g in tested))
    assert len({pair.prompt_id for pair in found}) == len(found)
    for pair in found:
        accuracies = [score.accuracy for score in by_id[pair.prompt_id].scores]
        known = [a for a in accuracies if a is not None]
        assert accuracies[member(pair.chosen)] == pair.chosen.accuracy == max(known)
        assert accuracies[member(pair.rejected)] == pair.rejected.accuracy == min(known)
        assert pair.chosen.accuracy > pair.rejected.accuracy


@pytest.mark.parametrize("accuracies", [[1.0, 1.0], [0.0, 0.0], [1.0, None], [None, None], [None, 0.0], [1.0]])
def test_a_group_whose_scorable_completions_agree_has_no_pair(accuracies):
    assert pairs_of(groups(accuracies), step=0, seed=0, limit=9) == []


def test_shaping_decides_nothing_and_is_recorded():
    short_but_wrong, long_and_right = Score(0.0, {"overlong": 0.0}), Score(1.0, {"overlong": -1.0})
    tested = replace(groups([0.0, 1.0])[0], scores=(short_but_wrong, long_and_right))
    (pair,) = pairs_of([tested], step=0, seed=0, limit=1)
    assert (member(pair.chosen), pair.chosen.accuracy, pair.chosen.reward) == (1, 1.0, 0.0)
    assert (member(pair.rejected), pair.rejected.accuracy, pair.rejected.reward) == (0, 0.0, 0.0)


def test_a_pair_carries_what_was_sampled_token_by_token():
    completion = Completion((30, 31, 1), (-1.0,) * 3, "stop", "so", sampled=(True, False, True))
    tested = replace(groups([1.0, 0.0])[0], completions=(completion, Completion((32,), (-1.0,), "length", "no")))
    (pair,) = pairs_of([tested], step=7, seed=0, limit=1)
    assert pair == Pair(
        tested.prompt.id,
        7,
        tested.prompt.text,
        tested.prompt_ids,
        Answer("so", (30, 31, 1), (True, False, True), 1.0, 1.0),
        Answer("no", (32,), None, 0.0, 0.0),
    )


def test_the_seed_decides_which_and_nothing_else_does():
    tested = groups(*[[1.0, 1.0, 0.0, 0.0]] * 12)
    later = pairs_of(tested, 9, seed=5, limit=4)
    assert [replace(pair, step=0) for pair in later] == pairs_of(tested, 0, seed=5, limit=4)
    drawn = Counter(pair.prompt_id for seed in range(60) for pair in pairs_of(tested, 0, seed, limit=4))
    members = Counter(member(pair.chosen) for seed in range(60) for pair in pairs_of(tested, 0, seed, limit=4))
    assert len(drawn) == 12
    assert set(members) == {0, 1}
    assert min(members.values()) > 60


def test_pairs_stand_in_the_order_of_their_groups():
    tested = groups(*[[1.0, 0.0]] * 8)
    ids = [pair.prompt_id for pair in pairs_of(tested, 0, seed=1, limit=5)]
    assert ids == sorted(ids)
    assert len(ids) == 5


# Stored and read back


def test_stored_pairs_come_back_as_they_were(tmp_path):
    found = pairs_of(groups([1.0, 0.0], [None, 0.5, 1.0]), step=2, seed=0, limit=9)
    write_jsonl(tmp_path / "pairs.jsonl", [pair.to_row() for pair in found])
    assert len(found) == 2
    assert read_pairs(tmp_path / "pairs.jsonl") == found


def test_a_stored_pair_is_a_row_of_texts_for_other_trainers():
    pair = Pair("p", 0, "1+1=", (2, 3), Answer("2", (4, 1)), Answer("3", (5, 1)))
    assert {key: pair.to_row()[key] for key in ("prompt", "chosen", "rejected")} == {
        "prompt": "1+1=",
        "chosen": "2",
        "rejected": "3",
    }


STORED = Pair("p", 0, "a", (2,), Answer("b", (3,)), Answer("c", (4,))).to_row()


@pytest.mark.parametrize("row", [{"prompt": "a"}, {**STORED, "prompt_ids": 3}, {**STORED, "chosen_token_ids": None}])
def test_a_line_that_is_no_stored_pair_is_named(tmp_path, row):
    write_jsonl(tmp_path / "pairs.jsonl", [STORED, row])
    with pytest.raises(InputError, match="not a stored pair") as caught:
        read_pairs(tmp_path / "pairs.jsonl")
    assert caught.value.where.endswith("pairs.jsonl:2")


# From elsewhere


def imported(tmp_path, *lines: object) -> list[Pair]:
    write_text(tmp_path / "own.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return import_pairs(tmp_path / "own.jsonl", policy())


def test_texts_become_the_tokens_that_supervised_training_would_use(tmp_path):
    micro = policy()
    (pair,) = imported(tmp_path, {"prompt": "1+1=", "chosen": "#2", "rejected": "#3", "source": "ignored"})
    assert pair.prompt_ids == micro.encode_prompt("1+1=")
    assert pair.chosen == Answer("#2", micro.encode_answer("#2"))
    assert pair.rejected.token_ids == micro.encode_answer("#3")
    assert pair.rejected.token_ids[-1] == micro.eos_id


def test_what_a_tool_would_write_in_a_text_is_marked_as_the_tools(tmp_path):
    row = {"prompt": "1+1=", "chosen": "1+1=<<1+1=2>>2 #2", "rejected": "#3"}
    write_jsonl(tmp_path / "own.jsonl", [row])
    micro = policy()
    (pair,) = import_pairs(tmp_path / "own.jsonl", micro, Calculator())
    marked = zip(pair.chosen.token_ids, pair.chosen.sampled, strict=True)
    assert micro.decode(tuple(i for i, sampled in marked if not sampled)) == "2>>"
    assert set(pair.rejected.sampled) == {True}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"prompt": "a", "rejected": "b"}, "missing column 'chosen'"),
        ({"question": "a"}, "missing column 'prompt'"),
        ({"prompt": "a", "chosen": [{"role": "assistant", "content": "b"}], "rejected": "c"}, "'chosen' is not a text"),
        ({"prompt": "a", "chosen": None, "rejected": "c"}, "'chosen' is not a text but NoneType"),
        ({"prompt": "a", "chosen": "b", "rejected": " "}, "'rejected' is empty"),
        ({"prompt": "", "chosen": "b", "rejected": "c"}, "'prompt' is empty"),
        ({"prompt": "a", "chosen": "b", "rejected": "b"}, "chosen and rejected are the same"),
        ({"prompt": "a", "chosen": "b<|end|>", "rejected": "c"}, r"'chosen' holds the special token <\|end\|>"),
        ({"prompt": "<|user|>a", "chosen": "b", "rejected": "c"}, r"'prompt' holds the special token <\|user\|>"),
        (["a", "b", "c"], "expected a JSON object"),
    ],
)
def test_a_line_that_is_no_pair_of_texts_is_refused_with_its_number(tmp_path, line, words):
    with pytest.raises(InputError, match=words) as caught:
        imported(tmp_path, {"prompt": "a", "chosen": "b", "rejected": "c"}, line)
    assert caught.value.where.endswith("own.jsonl:2")
    assert caught.value.how


def test_a_pair_beyond_the_models_positions_is_refused():
    pair = Pair("line 4", -1, "a", (2,) * 60, Answer("b", (3,) * 4), Answer("c", (3,) * 5))
    check_lengths([pair], 65)
    check_lengths([pair], None)
    with pytest.raises(InputError, match="65 tokens, the model has 64 positions") as caught:
        check_lengths([pair], 64)
    assert "line 4" in caught.value.where


# Held out


def some(count: int) -> list[Pair]:
    """Pairs of ``count`` prompts, two each."""
    sides = Answer("b", (3,)), Answer("c", (4,))
    return [Pair(f"p{i}", step, f"prompt {i}", (2,), *sides) for step in (0, 1) for i in range(count)]


def test_a_prompt_is_on_one_side_and_about_a_share_is_held_out():
    trained, held = hold_out(some(500), 0.1, seed=0)
    assert not {pair.prompt for pair in trained} & {pair.prompt for pair in held}
    assert len(trained) + len(held) == 1000
    assert 60 <= len(held) <= 140


def test_more_pairs_move_no_prompt_to_the_other_side():
    few, many = (set(hold_out(some(count), 0.3, seed=1)[1]) for count in (50, 200))
    assert few < many


@pytest.mark.parametrize(("share", "left"), [(0.0, 20), (0.999999, 0)])
def test_nothing_or_all_of_it_can_be_held_out(share, left):
    assert len(hold_out(some(10), share, seed=0)[0]) == left
