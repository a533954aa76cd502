"""GSM8K's published answers are taken apart into final answer and solution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.rewards.grammar.scan import one_value
from components.tasks import FORMATS
from components.tasks.grade_school import read


@pytest.mark.parametrize(
    ("published", "answer", "solution"),
    [
        ("48/2 = <<48/2=24>>24 clips\n#### 24", "24", "48/2 = 24 clips\n#### 24"),
        ("<<1+1=2>><<2*3=6>>x\n#### 1,234", "1234", "x\n#### 1,234"),
        ("so\n#### $5.50", "5.50", "so\n#### $5.50"),
        ("so\n#### -3", "-3", "so\n#### -3"),
        ("so\n#### 40%", "40", "so\n#### 40%"),
        ("#### 1 then #### 2", "2", "#### 1 then #### 2"),
        ("so\n#### -$5", "-5", "so\n#### -$5"),
        ("so\n#### $-5", "-5", "so\n#### $-5"),
        ("so\n#### \u22125", "-5", "so\n#### \u22125"),
        ("so\n#### 18.", "18", "so\n#### 18."),
        ("so\n#### **18**", "18", "so\n#### **18**"),
        ("so\n#### 5 dollars", "5", "so\n#### 5 dollars"),
        ("so\n#### .5", ".5", "so\n#### .5"),
        ("so\n#### 1/2", "", "so\n#### 1/2"),
        ("so\n#### 6e3", "", "so\n#### 6e3"),
        ("so\n#### 5\u200b", "", "so\n#### 5\u200b"),  # an invisible character
        ("so\n#### .0.5", "", "so\n#### .0.5"),
        ("so\n#### 1,2,3", "", "so\n#### 1,2,3"),
        ("so\n#### 5 or 6", "", "so\n#### 5 or 6"),
        ("no marker: 24", "", "no marker: 24"),
        ("so\n####", "", "so\n####"),
        ("so\n#### many", "", "so\n#### many"),
        ("a << b is no annotation\n#### 3", "3", "a << b is no annotation\n#### 3"),
        ("", "", ""),
    ],
)
def test_answer_and_solution(published, answer, solution):
    assert read(published) == (answer, solution)


@given(st.text(alphabet="01.,-+$%/e *)x\u2212\u200b\u0662\n", max_size=12) | st.text(max_size=12))
def test_the_numeric_verifier_reads_no_other_number_than_the_answer(last):
    answer, solution = read(f"so\n#### {last}")
    if answer:
        assert one_value(solution.rpartition("####")[2]) in (one_value(answer), None)


@given(st.integers(-(10**9), 10**9), st.sampled_from(["{}", "{:,}", "{}.", "**{}**", "{} dollars", "{}%", "{}.50"]))
def test_a_whole_number_is_read_however_it_is_written(value, form):
    assert one_value(read(f"#### {form.format(value)}")[0]) == one_value(form.format(value)) is not None


def test_it_is_reached_by_name():
    assert FORMATS["gsm8k"] is read
