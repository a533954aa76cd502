"""Completions side by side: which are chosen, where they differ, and that what a model wrote stays text."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_fixture as fixture
from hypothesis import given
from hypothesis import strategies as st

from components.files import write_jsonl
from components.report import load_run
from components.report.page import environment
from components.report.samples import (
    FOLDED,
    LONGEST,
    MOST_WORDS,
    QUOTA,
    choose,
    compared,
    folded,
    outcome,
    read_sample,
    tally,
)


def section(rows: list[dict]) -> str:
    """The section alone, without the plots."""
    template = environment().get_template("samples.jinja")
    values = {"run": type("Run", (), {"samples": rows, "missing": ()}), "folded": folded}
    return template.render(samples=choose(rows), tally=tally(rows), **values)


def one(**changes) -> dict:
    return fixture.sample(7) | changes


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [(0.0, 1.0, "got better"), (1.0, 0.0, "got worse"), (0.0, 0.0, "stayed wrong"), (1.0, 1.0, "stayed right"),
     (1.0, None, "not comparable"), (None, 1.0, "not comparable"), (None, None, "not comparable"),
     (0.5, 0.5, "stayed wrong")],
)  # fmt: skip
def test_only_full_accuracy_counts_as_right_and_unscorable_is_neither(
    before: float | None, after: float | None, name: str
) -> None:
    assert outcome(before, after) == name


def test_what_got_worse_comes_first_and_no_outcome_is_left_out() -> None:
    rows = [fixture.sample(number) for number in range(60)]
    assert list(choose(rows)) == ["got worse", "got better", "stayed wrong", "stayed right"]
    assert sum(tally(rows).values()) == 60
    text = section(rows)
    assert text.index(">got worse<") < text.index(">got better<") < text.index(">stayed wrong<")


def test_all_that_got_worse_is_shown_up_to_a_bound_and_the_rest_is_counted() -> None:
    worse = [one(id=f"p{i:03d}", sft={"text": "1", "accuracy": 1.0}, trained={"text": "2", "accuracy": 0.0})
             for i in range(45)]  # fmt: skip
    assert len(choose(worse[:12])["got worse"]) == 12
    assert len(choose(worse)["got worse"]) == QUOTA["got worse"]
    assert "20 of 45 shown; the others are in out/samples.jsonl" in section(worse)


def test_families_take_turns_and_the_order_of_the_file_changes_nothing() -> None:
    rows = [fixture.sample(number) for number in range(60)]
    chosen = choose(rows)
    assert choose(rows[::-1]) == chosen
    assert len({sample.family for sample in chosen["got better"]}) > 3


def test_only_the_words_that_differ_are_marked() -> None:
    before, after = compared("7+5=12; 4+8=12 #122", "7+5=12; 4+8+1=13 #132")
    assert [piece.text for piece in before if piece.differs] == ["12", "122"]
    assert "+1" in "".join(piece.text for piece in after if piece.differs)
    assert [piece.differs for piece in compared("yes", "no")[0]] == [False], "nothing in common: nothing stands out"


@given(st.text(max_size=60), st.text(max_size=60))
def test_pieces_put_together_are_the_text_again(one: str, other: str) -> None:
    for text, pieces in zip((one, other), compared(one, other), strict=True):
        assert "".join(piece.text for piece in pieces) == text


def test_texts_too_long_to_compare_are_shown_unmarked() -> None:
    long = "word " * MOST_WORDS
    assert [piece.differs for piece in compared(long, long + "x")[0]] == [False]


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "handler": '"><img src=x onerror=alert(1)>',
    "closing": "</pre></div></article></main><style>body{display:none}</style>",
    "entity": "&lt;b&gt; &amp;",
    "template": "{{ 7*7 }}{% raw %}",
    "attribute": "' onmouseover='x",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("field", ["prompt", "answer", "family", "id", "sft", "trained"])
def test_whatever_a_model_or_a_data_set_wrote_is_shown_and_never_interpreted(field: str, name: str) -> None:
    text = HOSTILE[name]
    value = {"text": text, "accuracy": 0.0} if field in ("sft", "trained") else text
    shown = section([one(**{field: value})])
    for forbidden in ("<script", "<img", "<style", "</main>", '" onmouseover', "49"):
        assert forbidden not in shown.replace("p0049", "")
    assert shown.count("<pre") == shown.count("</pre>")


def test_what_hides_or_reorders_text_is_spelled_out() -> None:
    shown = section([one(trained={"text": "a\u202eb\u2066c\u200bd\x1b[31me\x00\ufeff", "accuracy": None})])
    assert "a\\u202eb\\u2066c\\u200bd\\u001b[31me\\u0000\\ufeff".replace("\\", "") in shown.replace(
        "<mark>", ""
    ).replace("</mark>", "").replace("\\", "")
    assert "? unscorable" in shown


def test_right_to_left_text_keeps_to_its_own_box() -> None:
    shown = section([one(trained={"text": "שלום 12", "accuracy": 0.0})])
    assert '<pre dir="auto">' in shown and "שלום" in shown


def test_a_long_text_is_folded_and_an_endless_one_is_cut_with_a_count() -> None:
    short, long = "x" * FOLDED, "y" * (LONGEST + 1000)
    assert not folded(short) and folded(long) and folded("\n" * 20)
    shown = section([one(trained={"text": long, "accuracy": 0.0})])
    assert '<details class="long">' in shown
    assert "[1,000 more characters]" in shown
    assert shown.count("y") < LONGEST + 500


def test_a_completion_that_is_empty_or_no_text_is_shown_as_such() -> None:
    sample = read_sample(one(sft={"text": "", "accuracy": 0.0}, trained={"text": None, "accuracy": None}))
    assert (sample.before.text, sample.after.text) == ("", "")
    assert section([one(trained={"text": "", "accuracy": 0.0})]).count("(nothing)") == 1


def test_a_run_without_samples_says_so(tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    write_jsonl(layout.samples, [])
    assert load_run(fixture.settings(), layout).samples == []
    assert "The evaluation kept no samples." in section([])
