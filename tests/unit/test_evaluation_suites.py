"""Published sets of problems, generated suites, and prompts that were trained on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import prompts, settings
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from components.config import Settings, pin_inputs
from components.config.evaluation import ContaminationSettings
from components.errors import InputError
from components.evaluation.contamination import Trained, search, training_rows
from components.evaluation.formats import read_problems
from components.evaluation.suites import PromptSuite, held_out, suites
from components.files import write_jsonl
from components.layout import Layout
from components.types import Prompt

GSM8K = {"question": "How many clips?", "answer": "48/2 = <<48/2=24>>24 clips\n#### 1,024"}
MATH = {
    "problem": "What is $\\frac12 + \\frac14$?",
    "level": "Level 3",
    "type": "Algebra",
    "solution": "It is $\\boxed{2}$, no: $\\boxed{\\frac{3}{4}}$.",
}
AIME = {"ID": "2024-I-1", "Problem": "Find m+n.", "Solution": "...", "Answer": 204}


def one(path: Path, form: str, *rows: object) -> list[Prompt]:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return read_problems(path, form, "set")


# Formats


BOOK = {"question": "1+1=", "answer": "2", "id": "x", "family": "sums", "difficulty": 2, "source": "book"}


@pytest.mark.parametrize(
    ("form", "row", "read"),
    [
        ("gsm8k", GSM8K, {"text": "How many clips?", "answer": "1024", "solution": "48/2 = 24 clips\n#### 1,024"}),
        ("gsm8k", GSM8K, {"family": "set", "source": "set", "difficulty": 0}),
        ("math", MATH, {"answer": "\\frac{3}{4}", "family": "Algebra", "difficulty": 3}),
        ("math", {**MATH, "subject": "Geometry", "level": 5}, {"family": "Geometry", "difficulty": 5}),
        ("math", {**MATH, "level": "Level ?"}, {"difficulty": 0}),  # as published, where it is unknown
        ("math", {**MATH, "solution": r"the largest value of $x$ is $\boxed 2$."}, {"answer": "2"}),
        *(
            ("problem_answer", {**AIME, "Answer": answer}, {"text": "Find m+n.", "answer": text})
            for answer, text in ((204, "204"), ("033", "033"), (142.0, "142"), (0.5, "0.5"))
        ),
        ("question_answer", BOOK, {name: BOOK[name] for name in ("id", "family", "difficulty", "source")}),
        ("question_answer", {**BOOK, "answer": 0, "id": 0, "family": 0}, {"id": "0", "family": "0", "answer": "0"}),
    ],
)
def test_problems_are_read_as_they_are_published(tmp_path: Path, form: str, row: Any, read: dict[str, Any]) -> None:
    (prompt,) = one(tmp_path / "a.jsonl", form, row)
    assert {name: getattr(prompt, name) for name in read} == read


def test_a_split_of_the_data_stage_is_a_suite(tmp_path: Path) -> None:
    rows = [prompt.to_dict() for prompt in prompts(3)]
    assert [p.id for p in one(tmp_path / "a.jsonl", "prompts", *rows)] == ["p000", "p001", "p002"]


def test_a_question_that_stands_twice_keeps_both_rows_apart(tmp_path: Path) -> None:
    first, second = one(tmp_path / "a.jsonl", "gsm8k", GSM8K, GSM8K)
    assert (first.text, second.id) == (second.text, f"{first.id}-2")


def test_ids_differ_also_from_those_that_look_numbered(tmp_path: Path) -> None:
    rows = [{"question": f"{i}?", "answer": "1", "id": name} for i, name in enumerate(["x", "x-2", "x", "x"])]
    assert [p.id for p in one(tmp_path / "a.jsonl", "question_answer", *rows)] == ["x", "x-2", "x-3", "x-4"]


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\ufeff{"question": "?", "answer": "1"}\n', encoding="utf-8")
    assert len(read_problems(path, "question_answer", "set")) == 1


@pytest.mark.parametrize(
    ("form", "row", "said"),
    [
        ("gsm8k", {**GSM8K, "answer": "24 clips"}, "#### and one number"),
        ("gsm8k", {"problem": "?"}, "there is no `answer`; found: `problem`"),
        ("gsm8k", {**GSM8K, "question": "  "}, "`question` is empty"),
        ("math", {**MATH, "solution": "so 3"}, "no \\boxed{}"),
        ("math", {**MATH, "level": "hard"}, "`level` is 'hard'"),
        ("math", {key: MATH[key] for key in ("problem", "solution", "level")}, "there is no `type`"),
        ("problem_answer", {"problem": "?", "answer": None}, "`answer` is no text: None"),
        ("problem_answer", {"problem": "?", "answer": [1]}, "`answer` is no text"),
        ("question_answer", {"question": "?", "answer": "1", "difficulty": "high"}, "`difficulty` is 'high'"),
        ("question_answer", {"question": "?", "answer": "1", "difficulty": 1e999}, "`difficulty` is inf"),
        ("question_answer", {"question": "?", "answer": True}, "`answer` is no text: True"),
        ("question_answer", {"question": "?", "answer": 1e999}, "`answer` is no text: inf"),
        ("question_answer", {"question": "half of \ud83d", "answer": "1"}, "`question` is no text: 'half of \\ud83d'"),
        ("prompts", {"question": "?", "answer": "1"}, "not a prompt"),
    ],
)
def test_a_malformed_row_is_an_error_with_its_line(tmp_path: Path, form: str, row: Any, said: str) -> None:
    good = {"gsm8k": GSM8K, "math": MATH, "problem_answer": AIME, "prompts": prompts(1)[0].to_dict()}
    path = tmp_path / "a.jsonl"
    with pytest.raises(InputError, match="no line is left out") as caught:
        one(path, form, good.get(form, {"question": "?", "answer": "1"}), row)
    assert said in caught.value.what
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize(("text", "said"), [("", "without problems"), ("[1]\n", "a JSON object"), ("{", "JSON")])
def test_a_file_without_problems_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(InputError, match=said):
        read_problems(tmp_path / "a.jsonl", "gsm8k", "set")


@effort(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(["problem", "answer", "solution", "level", "type", "question", "id"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers()),
    ),
    st.sampled_from(["gsm8k", "math", "problem_answer", "question_answer", "prompts"]),
)
def test_no_row_is_a_crash(tmp_path_factory: pytest.TempPathFactory, row: dict[str, Any], form: str) -> None:
    path = tmp_path_factory.mktemp("rows") / "a.jsonl"
    try:
        (prompt,) = one(path, form, row)
        assert prompt.text
        assert prompt.answer
    except InputError as error:
        assert error.where is not None


# Suites


def asking(tmp_path: Path, **suite: Any) -> tuple[Settings, list[PromptSuite]]:
    chosen = settings(evaluation={"suites": {"more": suite}})
    return chosen, suites(chosen)


def test_a_file_suite_is_pinned_and_refused_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "gsm8k.jsonl"
    write_jsonl(path, [{**GSM8K, "question": f"{i}?"} for i in range(9)])
    chosen = pin_inputs(
        settings(evaluation={"suites": {"gsm8k": {"kind": "file", "path": str(path), "format": "gsm8k"}}})
    )
    assert len(chosen.evaluation.suites["gsm8k"].sha256) == 64  # type: ignore[union-attr, arg-type]
    (asked,) = suites(chosen)
    assert (len(asked.prompts), asked.samples, asked.generated) == (9, 0, False)
    write_jsonl(path, [GSM8K])
    with pytest.raises(InputError, match="content has changed"):
        suites(chosen)


def test_a_suite_asks_a_part_drawn_by_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [{**GSM8K, "question": f"{i}?"} for i in range(40)])
    section = {"kind": "file", "path": str(path), "format": "gsm8k", "prompts": 10}
    _, (asked,) = asking(tmp_path, **section)
    assert asked.prompts == asking(tmp_path, **section)[1][0].prompts
    assert len(asked.prompts) == 10
    assert len(asked.prompts_sha256) == 64


def test_a_suite_may_be_asked_and_judged_in_its_own_way(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [GSM8K])
    verifier = {"kind": "numeric", "marker": None}
    section = {"kind": "file", "path": str(tmp_path / "a.jsonl"), "format": "gsm8k", "verifier": verifier}
    chosen, (asked,) = asking(tmp_path, **section, instruction="Think.\n", chat=False, max_new_tokens=7)
    found = asked.settings
    assert (found.policy.instruction, found.policy.chat, found.rollout.max_new_tokens) == ("Think.\n", False, 7)
    assert (found.reward.verifier.kind, found.reward.soft_overlong) == ("numeric", None)
    assert found.policy.model == chosen.policy.model


def test_generated_suites_are_other_and_harder_problems() -> None:
    source = {"task": "arithmetic", "rows": 120, "levels": 3}
    chosen = settings(evaluation={"suites": {"h": {"kind": "generated", "source": source, "min_difficulty": 3}}})
    (asked,) = suites(chosen)
    assert {prompt.difficulty for prompt in asked.prompts} == {3.0}
    assert asked.generated


def test_a_generated_suite_without_problems_is_an_error() -> None:
    source = {"task": "arithmetic", "rows": 120, "levels": 1}
    chosen = settings(evaluation={"suites": {"h": {"kind": "generated", "source": source, "min_difficulty": 3}}})
    with pytest.raises(InputError, match="without problems") as caught:
        suites(chosen)
    assert caught.value.where == "evaluation.suites.h"


def test_null_takes_a_suite_out() -> None:
    source = {"task": "arithmetic", "rows": 120, "levels": 1}
    named = {"a": {"kind": "generated", "source": source}, "b": None}
    assert list(settings(evaluation={"suites": named}).evaluation.suites) == ["a"]


@pytest.mark.parametrize("name", ["test", "two words", "1st"])
def test_a_suite_needs_a_name_of_its_own(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        settings(evaluation={"suites": {name: {"kind": "file", "path": "a", "format": "gsm8k"}}})


def test_the_seeds_of_suites_differ_and_those_of_the_test_prompts_are_as_ever(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    write_jsonl(layout.split("test"), [prompt.to_dict() for prompt in prompts(5)])
    test = held_out(settings(), layout)
    seeds = {test.seed(0), test.seed(128), replace(test, name="a").seed(0), replace(test, name="b").seed(0)}
    assert len(seeds) == 4


# Contamination

LONG = "A farmer has 12 cows and 7 goats on his large green farm, and he buys 3 more cows at the market."
NEAR = LONG.replace("market.", "markets!")


def asked(*texts: str, generated: bool = False) -> PromptSuite:
    held = [Prompt(f"t{i}", text, "1", "1") for i, text in enumerate(texts)]
    return PromptSuite("test", held, 2, settings(), generated)


def trained(*texts: str) -> list[Trained]:
    return [Trained(f"r{i}", "train", text, "so #1") for i, text in enumerate(texts)]


def ways(
    suite: PromptSuite, rows: Sequence[Trained], generated: bool = False, **how: Any
) -> dict[str, tuple[str, str]]:
    (found,) = search([suite], rows, ContaminationSettings(**how), generated)
    return {name: (match.how, match.training_id) for name, match in found.matches.items()}


def test_an_equal_question_is_found_but_for_case_and_space() -> None:
    rows = trained("other", "What  IS 1+1?")
    assert ways(asked("What is 1+1?", "What is 2+2?"), rows) == {"t0": ("exact", "r1")}


def test_a_near_duplicate_is_found_and_other_numbers_are_another_question() -> None:
    other = LONG.replace("12", "13")
    assert ways(asked(LONG), trained(other, NEAR), words=40) == {"t0": ("near", "r1")}
    assert ways(asked(LONG), trained(other), words=40) == {}


def test_a_question_inside_a_training_text_is_found_by_its_n_grams() -> None:
    inside = f"Read this with care, for it is long and will be asked about: {LONG} How many now?"
    assert ways(asked(LONG), trained(inside)) == {"t0": ("overlap", "r0")}
    assert ways(asked(LONG), [Trained("r0", "sft", "Tell a story.", inside)]) == {"t0": ("overlap", "r0")}


def test_most_of_the_n_grams_are_needed() -> None:
    words = LONG.split()
    part = " ".join([*words[:15], "and", "then", "nothing", "happened"])
    assert ways(asked(LONG), trained(part)) == {}
    assert ways(asked(LONG), trained(part), overlap=0.2, words=5) == {"t0": ("overlap", "r0")}


def test_what_all_prompts_of_a_suite_repeat_is_no_sign_of_contamination() -> None:
    instruction = (
        "Use every one of the numbers below once, write down each step in a line, and give the result at the end:"
    )
    suite = asked(*(f"{instruction} {i} {i + 1}" for i in range(3)))
    assert ways(suite, trained(f"{instruction} 8 9")) == {}
    assert ways(suite, trained(f"Once more. {instruction} 1 2 Now begin.")) == {"t1": ("overlap", "r0")}


def test_exact_counts_before_near_and_near_before_overlap() -> None:
    assert ways(asked(LONG), trained(f"So: {LONG}", NEAR, LONG)) == {"t0": ("exact", "r2")}
    assert ways(asked(LONG), trained(f"Well, listen to me now, my dear: {LONG}", NEAR)) == {"t0": ("near", "r1")}


def test_generated_problems_are_alike_on_purpose_and_only_equal_ones_count() -> None:
    generated = asked(LONG, generated=True)
    assert ways(generated, trained(NEAR), generated=True) == {}
    assert ways(generated, trained(NEAR, LONG), generated=True) == {"t0": ("exact", "r1")}
    everywhere = {"near_duplicates": {"check": "all"}}
    assert ways(generated, trained(NEAR), generated=True, **everywhere) != {}


def test_counts_and_examples_name_where_a_prompt_was_found() -> None:
    (found,) = search([asked("a b", "c d")], trained("A b"), ContaminationSettings(), generated=False)
    assert found.to_dict() == {
        "prompts": 2,
        "exact": 1,
        "near": 0,
        "overlap": 0,
        "found": 1,
        "share": 0.5,
        "near_compared": True,
        "examples": [{"id": "t0", "how": "exact", "training_id": "r0", "split": "train"}],
    }


@effort(max_examples=40)
@given(st.lists(st.text("ab 12", min_size=1, max_size=12), min_size=1, max_size=6), st.integers(0, 5))
def test_whatever_is_copied_is_found(texts: list[str], copied: int) -> None:
    copy = texts[copied % len(texts)]
    found = ways(asked(*texts), trained("unrelated words", copy.upper()))
    assert found[f"t{texts.index(copy)}"][0] == "exact"


def test_training_rows_are_read_from_the_splits(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "sft.jsonl", [prompt.to_dict() for prompt in prompts(2)])
    write_jsonl(tmp_path / "train.jsonl", [prompt.to_dict() for prompt in prompts(3)[2:]])
    rows = training_rows({"sft": tmp_path / "sft.jsonl", "train": tmp_path / "train.jsonl"})
    assert [(row.id, row.split) for row in rows] == [("p000", "sft"), ("p001", "sft"), ("p002", "train")]
