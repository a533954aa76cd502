"""What a policy could write to break a verifier: contained in its limits, never right, and the pool judges on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from components.config.answers import CodeVerifier, JsonVerifier, MathVerifier, MultipleChoiceVerifier
from components.config.sandbox import SandboxSettings
from components.config.verifiers import ExactVerifier, NumericVerifier
from components.rewards.sandbox import Sandbox
from components.rewards.worker import CODES
from components.types import Prompt
from tests.tiers import slow_but

LIMITS = SandboxSettings(timeout=6, cpu_seconds=1, memory_mb=768, workers=1)
MARK = "####"
VERIFIERS = {
    "exact": (ExactVerifier(marker=MARK), "42", "43"),
    "numeric": (NumericVerifier(kind="numeric", marker=MARK), "42", "43"),
    "numeric, converted": (
        NumericVerifier(kind="numeric", marker=None, units="convert", percent="fraction"), "42 km", "43 km",
    ),
    "math": (MathVerifier(kind="math", marker=MARK), "42", "43"),
    "math, symbolic": (MathVerifier(kind="math", marker=MARK), r"\frac{x+1}{2}", r"\frac{x-1}{2}"),
    "multiple_choice": (MultipleChoiceVerifier(kind="multiple_choice", marker=MARK), "B", "C"),
    "json": (JsonVerifier(kind="json", marker=MARK), '{"a": [42]}', '{"a": [43]}'),
    "code": (CodeVerifier(kind="code", marker=MARK, seconds=1), "assert f() == 42\nassert f() != 43", "43"),
}  # fmt: skip
CORPUS = {
    "nothing": "",
    "tower of powers": "9**9**9**9",
    "tower in LaTeX": "10^{10^{10}}",
    "taller tower": "9^{9^{9^{9^{9}}}}",
    "brackets, a megabyte": "(" * 2**19 + ")" * 2**19,
    "braces, a megabyte": "{" * 2**19 + "}" * 2**19,
    "lists, nested": "[" * 100_000 + "]" * 100_000,
    "objects, nested": '{"a":' * 20_000 + "1" + "}" * 20_000,
    "fractions, nested": r"\frac{1}{" * 2000 + "1" + "}" * 2000,
    "fractions, in a row": r"\frac{1}{2}+" * 5000 + "1",
    "fractions, short": r"\frac{1}{" * 11 + "1" + "}" * 11,
    "roots, nested": r"\sqrt{" * 3000 + "2" + "}" * 3000,
    "macro bomb": r"\def\a{\a\a\a}\a",
    "macros": r"\newcommand{\x}{\x\x}\x 7",
    "read a file": r"\input{/etc/passwd}",
    "NUL": "42\x00",
    "NUL inside": "4\x002",
    "right to left": "\u202e42",
    "right-to-left mark": "\u200f42\u200f",
    "zero width": "4\u200b2",
    "zero width before": "\u200b42",
    "zero width after": "42\u200d",
    "word joiner": "4\u20602",
    "soft hyphen": "4\u00ad2",
    "fullwidth": "４２",
    "Arabic-Indic": "٤٢",
    "mathematical bold": "𝟒𝟐",
    "mixed digits": "4２",
    "superscript": "⁴²",
    "circled": "㊷",
    "huge integer": "9" * 100_000,
    "huge integer with commas": "9" + ",999" * 50_000,
    "huge decimal": "0." + "3" * 100_000,
    "huge exponent": "1e999999999",
    "huge exponent, allowed": "1e999",
    "surrogate": "\ud800",
    "surrogate after a number": "42\udfff",
    "surrogates in JSON": '{"a": ["\\ud800"]}',
    "factorials": "((((((9!)!)!)!)!)!)!",
    "factorials in a row": "9!!!!!!!!",
    "large factorial": "99999999!",
    "binomial": r"\binom{10^9}{10^8}",
    "large power": "(x+y+z)^{99999}",
    "product": r"\prod_{i=1}^{10^{9}} i",
    "sum": r"\sum_{n=1}^{10^9} n^n",
    "integral": r"\int_0^1 x^{x^{x}} dx",
    "import": "__import__('os').system('true')",
    "lambda": "(lambda: 7)()",
    "division by zero": "42/0",
    "not a number": "NaN",
    "infinity": "Infinity",
    "several numbers": "40 or 41 or 42 or 43",
    "a set of all": r"\{40, 41, 42, 43\}",
    "text with another": r"43\text{ or }42",
    "the other and a text": r"42\text{ or 43}",
    "all options": "A, B, C, D",
    "options in a sentence": "The answer is A or B or C",
    "every letter": "ABCDE",
    "look-alike letter": "В",
    "combining": "B\u0336",
    "bold letter": "𝐁",
    "duplicate key": '{"a": [43], "a": [42]}',
    "true for a number": '{"a": [true]}',
    "boxes": r"\boxed{" * 500 + "7" + "}" * 499,
    "regular expression food": "1," * 50_000 + "x",
    "commas and digits": "1,111" * 20_000,
    "spaces": " " * 500_000 + "x",
    "signs": "-" * 100_000,
    "dollars": "$" * 100_000,
    "letters": "A" * 200_000,
    "exit": "```python\nimport os; os._exit(0)\n```",
    "endless": "```python\nwhile True: pass\n```",
    "eats memory": "```python\nx = [0] * 10**12\n```",
    "compiles forever": "```python\n" + "(" * 90 + "9**9**9" + ")" * 90 + "\n```",
    "deep source": "```python\n" + "-" * 20_000 + "1\n```",
    "equals everything": "```python\nclass A:\n    __eq__ = lambda s, o: True\n    __ne__ = __eq__\nf = A\n```",
}


@pytest.fixture(
    scope="module", params=slow_but(VERIFIERS, *(name for name in VERIFIERS if not name.startswith("math")))
)
def bench(request: pytest.FixtureRequest) -> Iterator[tuple[str, Sandbox, Prompt, str, str]]:
    name = request.param
    settings, answer, wrong = VERIFIERS[name]
    right = "```python\ndef f(): return 42\n```" if name == "code" else answer
    wrong = "```python\ndef f(): return 43\n```" if name == "code" else wrong
    with Sandbox(settings, LIMITS) as sandbox:
        yield name, sandbox, Prompt("p", "?", answer, ""), f"{MARK} {right}", f"{MARK} {wrong}"


def test_every_hostile_answer_is_contained_and_none_is_right(bench):
    name, sandbox, prompt, right, wrong = bench
    if name == "exact":
        right = right.replace(" ", "")
    sandbox.judge([(prompt, right)])
    broken = {}
    for case, answer in CORPUS.items():
        began = time.monotonic()
        bad, good, other = sandbox.judge([(prompt, f"thinking {MARK} {answer}"), (prompt, right), (prompt, wrong)])
        seconds = time.monotonic() - began
        contained = seconds < 2 * LIMITS.timeout + 20  # a replacement worker has to start
        reason = (bad.unscorable or "").partition(":")[0]
        honest = bad.accuracy == 0.0 or reason in CODES
        if not (contained and honest and good.accuracy == 1.0 and other.accuracy == 0.0):
            broken[case] = (seconds, bad, good, other)
    assert broken == {}
