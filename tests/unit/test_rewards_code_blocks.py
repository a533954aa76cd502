"""Which fenced block of a completion is its code."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.answers import CodeVerifier
from components.rewards import build_verifier
from components.rewards.code.verifier import Block, blocks, code_block

CODE = "def f(x):\n    return x"
TICKS = "`" * 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"Look:\n```python\n{CODE}\n```\nDone.", CODE),
        (f"```python\n{CODE}\n```\nThen run it:\n```bash\npython f.py\n```\nDone.", CODE),
        (f"```bash\npip install x\n```\nand\n```python\n{CODE}\n```\n", CODE),
        (f"```python\n{CODE}\n```\nOutput:\n```\n4\n```\n", CODE),
        (f"```python\n{CODE}\n```\nOutput:\n```text\n4\n```\n", CODE),
        (f"```\nno\n```\nor\n```\n{CODE}\n```\n", CODE),
        (f"```python\nno\n```\nBetter:\n```py\n{CODE}\n```\n", CODE),
        (f"```PYTHON\n{CODE}\n```", CODE),
        (f"```Python3\n{CODE}\n```", CODE),
        (f"``` python title=x\n{CODE}\n```", CODE),
        (f"```{{.python}}\n{CODE}\n```", CODE),
        (f"```python\n{CODE}\n```".replace("\n", "\r\n"), CODE),
        (f"  ```python\n  {CODE.replace(chr(10), chr(10) + '  ')}\n  ```", CODE),
        (f"1. ```python\n{CODE}\n```", CODE),
        (f"The code is ```python\n{CODE}\n```", CODE),
        (f"~~~python\n{CODE}\n~~~", CODE),
        (f"````python\n'''\n```\n'''\n{CODE}\n````\n", f"'''\n```\n'''\n{CODE}"),
        (f"```python\n{CODE}", CODE),
        (f"```python\n{CODE}```", CODE),
        ("```python\nx = '\u2028\x0c'\n```", "x = '\u2028\x0c'"),
        ("```bash\nls\n```", None),
        ("```python-repl\n>>> 1\n```", None),
        ("Use ``` to fence it, or ```inline``` code.", None),
        ("", None),
    ],
)
def test_the_code_is_the_last_python_block_or_the_last_without_a_name(text, code):
    assert code_block(text) == code


def test_a_block_may_follow_the_marker_on_its_line():
    verifier = build_verifier(CodeVerifier(kind="code", marker="####"))
    assert verifier._code(f"```python\nno\n```\n#### ```python\n{CODE}\n```") == CODE
    assert verifier._code(f"####\n{CODE}") == f"\n{CODE}"


@given(st.lists(st.tuples(st.sampled_from(["", "python", "bash"]), st.text("ab =\n", max_size=20)), max_size=5))
def test_blocks_are_read_back_in_order(written):
    text = "\n".join(f"word\n{TICKS}{language}\n{code}\n{TICKS}" for language, code in written)
    assert blocks(text) == [Block(*block) for block in written]


@pytest.mark.parametrize(
    "text", ["`" * 10**6, "```" + " " * 10**6 + "```", "``` `" * 10**5, "```\n" * 10**5, " " * 10**6]
)
def test_reading_takes_no_longer_than_the_text_is(text):
    began = time.process_time()
    code_block(text)
    assert time.process_time() - began < 2
