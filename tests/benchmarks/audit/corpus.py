"""Questions with reference answers, for each kind of answer. The same every time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

from components.types import Prompt

Row = tuple[str, str, str]
"""Question, reference answer, what a solution states (the answer itself, but for code)."""


def numbers(stream: random.Random) -> Iterator[Row]:
    """Sums, differences, products, word problems; one answer in six is a decimal or a fraction, two are 0."""
    for i in range(120):
        one, two = stream.randint(11, 4000), stream.randint(2, 900)
        few, many = stream.randint(3, 19), stream.randint(12, 99)
        question, answer = [
            (f"What is {one} + {two}?", str(one + two)),
            (f"What is {two} - {one}?", str(two - one)),
            (f"{many} boxes hold {few} apples each. How many apples are there?", str(few * many)),
            (f"A shop had {one + many} pens and sold {many}. How many are left?", str(one)),
            (f"Divide {many}.{few} by 2.", f"{(many * 100 + few * (10 if few < 10 else 1)) / 200:.4f}".rstrip("0")),
            (f"Which share of {many * 7 + 3} is {many}?", f"{many}/{many * 7 + 3}"),
        ][i % 6]
        yield question, answer, answer
    yield from ((f"What is {same} - {same}?", "0", "0") for same in (57, 381))


def expressions(stream: random.Random) -> Iterator[Row]:
    """Of all forms that a mathematical answer may have, numbers among them."""
    for i in range(120):
        a, b, c = stream.randint(12, 99), stream.randint(3, 9), stream.randint(10, 11)
        answer = [
            str(a + b),
            rf"\frac{{{b}}}{{{a}}}" if a % b else rf"\frac{{{b}}}{{{a + 1}}}",
            rf"{a}\frac{{{b}}}{{{c}}}",
            f"k+{b}",
            f"{a}x^2+{b}",
            f"{1000 + a:o}_8",
            f"({b}, {a})",
            f"[{b},{a})",
            rf"{b}\sqrt{{{c}}}",
            rf"\{{{b}, {c + 1}, {a + 12}\}}",
            f"0.{a}5",
            str(1000 * b + a),
        ][i % 12]
        yield f"Example {i}: combine {a} and {b}, then {c}.", answer, answer


def texts(stream: random.Random) -> Iterator[Row]:
    """Words, names of several words, numbers."""
    words = [
        "north",
        "south",
        "river",
        "stone",
        "copper",
        "silver",
        "engine",
        "garden",
        "winter",
        "summer",
        "yellow",
        "violet",
    ]
    for i in range(120):
        one, two = stream.sample(words, 2)
        answer = [one, f"{one} {two}", str(stream.randint(10, 5000))][i % 3]
        yield f"Question {i}: which is it, {one} or {two}?", answer, answer


def choices(stream: random.Random) -> Iterator[Row]:
    """Letters of five options."""
    for i in range(100):
        letter = stream.choice("ABCDE")
        yield f"Question {i}. (A) one (B) two (C) three (D) four (E) five", letter, letter


def documents(stream: random.Random) -> Iterator[Row]:
    """Objects, lists and single values."""
    for i in range(100):
        a, b = stream.randint(2, 99), stream.randint(100, 999)
        value = [
            {"name": f"item{a}", "count": b},
            {"open": True, "size": a, "tags": ["red", f"t{b}"]},
            [a, b, a + b],
            {"inner": {"x": a, "y": None}, "z": [b]},
            b,
        ][i % 5]
        yield f"Extract record {i}.", json.dumps(value), json.dumps(value)


def calculations(stream: random.Random) -> Iterator[Row]:
    """Countdown: three numbers and a target that they reach."""
    for _ in range(100):
        a, b, c = stream.sample(range(2, 20), 3)
        answer, target = [(f"{a}*{b}+{c}", a * b + c), (f"({a}+{b})*{c}", (a + b) * c)][stream.randrange(2)]
        yield f"[{a}, {b}, {c}] = {target}", answer, answer


def programs(_: random.Random) -> Iterator[Row]:
    """Functions with assertions that call them."""
    bodies = {
        "double(x)": ("return 2 * x", [("double(2)", 4), ("double(5)", 10), ("double(-3)", -6), ("double(0)", 0)]),
        "vowels(s)": (
            "return sum(c in 'aeiou' for c in s)",
            [("vowels('banana')", 3), ("vowels('sky')", 0), ("vowels('audio')", 4)],
        ),
        "ordered(xs)": (
            "return sorted(xs)",
            [("ordered([3, 1, 2])", [1, 2, 3]), ("ordered([5, 4])", [4, 5]), ("ordered([9, 8, 7])", [7, 8, 9])],
        ),
        "even(n)": (
            "return n % 2 == 0",
            [("even(2)", True), ("even(3)", False), ("even(10)", True), ("even(7)", False)],
        ),
    }
    for head, (body, tests) in bodies.items():
        answer = "\n".join(f"assert {call} == {wanted!r}" for call, wanted in tests)
        yield (
            f"Write a function {head}. For example {tests[0][0]} is {tests[0][1]!r}.",
            answer,
            f"def {head}:\n    {body}",
        )


def skeletons(stream: random.Random) -> Iterator[Row]:
    """Classes with required and forbidden calls."""
    for i in range(40):
        a, b = stream.randint(2, 99), stream.randint(100, 999)
        answer = [
            f"class Wall {{ require height(minimum={a}) and width(maximum={b}); forbid gap(size={a}) }}",
            f"class Door {{ if fire(level={a}) require exit(count=2) class Frame {{ require steel(grade={b}) }} }}",
            f"class Roof {{ require slope(degrees={a}); require load(kilograms={b}) }}",
        ][i % 3]
        yield f"Rule {i}", answer, answer


CORPORA: dict[str, Callable[[random.Random], Iterator[Row]]] = {
    "number": numbers,
    "expression": expressions,
    "text": texts,
    "choice": choices,
    "json": documents,
    "calculation": calculations,
    "code": programs,
    "skeleton": skeletons,
}


def prompts(answers: str, state: Callable[[str], str]) -> list[Prompt]:
    """The questions of one kind of answer; ``state`` makes a completion of what a solution states."""
    rows = CORPORA[answers](random.Random(answers))
    return [Prompt(id=f"{answers}{i}", text=q, answer=a, solution=state(s)) for i, (q, a, s) in enumerate(rows)]
