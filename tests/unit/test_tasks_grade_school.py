"""GSM8K's published answers are taken apart into final answer and solution."""

from __future__ import annotations

import pytest

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
        ("no marker: 24", "", "no marker: 24"),
        ("so\n####", "", "so\n####"),
        ("so\n#### many", "", "so\n#### many"),
        ("a << b is no annotation\n#### 3", "3", "a << b is no annotation\n#### 3"),
        ("", "", ""),
    ],
)
def test_answer_and_solution(published, answer, solution):
    assert read(published) == (answer, solution)


def test_it_is_reached_by_name():
    assert FORMATS["gsm8k"] is read
