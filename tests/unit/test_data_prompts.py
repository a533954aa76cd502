"""Reading back the splits."""

from __future__ import annotations

import pytest

from components.data.prompts import read_prompts, subset
from components.errors import InputError
from components.files import write_jsonl
from components.types import Prompt

PROMPTS = [Prompt(id=str(i), text=f"{i}?", answer="a", solution="s", difficulty=1.0) for i in range(10)]


def test_prompts_are_read_back_as_they_were_written(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", (prompt.to_dict() for prompt in PROMPTS))
    assert read_prompts(tmp_path / "a.jsonl") == PROMPTS


@pytest.mark.parametrize("row", [{**PROMPTS[0].to_dict(), "new": 1}, {"id": "1"}])
def test_a_line_that_is_no_prompt_is_named(tmp_path, row):
    write_jsonl(tmp_path / "a.jsonl", [PROMPTS[0].to_dict(), row])
    with pytest.raises(InputError, match="not a prompt") as caught:
        read_prompts(tmp_path / "a.jsonl")
    assert caught.value.where == f"{tmp_path / 'a.jsonl'}:2"


def test_a_subset_is_drawn_by_seed_and_keeps_the_order():
    chosen = subset(PROMPTS, 4, seed=1)
    assert chosen == subset(PROMPTS, 4, seed=1) == sorted(chosen, key=lambda prompt: int(prompt.id))
    assert len({prompt.id for prompt in chosen}) == 4
    assert any(subset(PROMPTS, 4, seed=seed) != chosen for seed in range(5))


def test_a_subset_is_everything_when_fewer_are_there():
    assert subset(PROMPTS, 11, seed=1) == PROMPTS
