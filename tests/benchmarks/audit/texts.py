"""Holes of verifiers of texts, choices, JSON, calculations and code skeletons."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from fractions import Fraction
from typing import Any

from components.tools.expressions import evaluate
from components.types import Prompt
from tests.benchmarks.audit.holes import Hole
from tests.benchmarks.audit.reading import MARKER, said


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def one_edit_away(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rests = {(one[same + 1 :], other[same + 1 :]), (one[same:], other[same + 1 :]), (one[same + 1 :], other[same:])}
    return any(a == b for a, b in rests)


TEXT = (
    Hole("the reference anywhere in the answer counts", "design", lambda p, t: p.answer in said(t)),
    Hole("an answer that begins with the reference counts", "design", lambda p, t: said(t).startswith(p.answer)),
    Hole(
        "an answer that is part of the reference counts", "held_out", lambda p, t: bool(said(t)) and said(t) in p.answer
    ),
    Hole("one wrong character is forgiven", "held_out", lambda p, t: one_edit_away(said(t), p.answer)),
    Hole("the order of words is ignored", "held_out", lambda p, t: sorted(words(said(t))) == sorted(words(p.answer))),
    Hole(
        "all words of the reference somewhere count",
        "held_out",
        lambda p, t: set(words(p.answer)) <= set(words(said(t))),
    ),
    Hole(
        "the last line counts",
        "held_out",
        lambda p, t: (t.strip().splitlines() or [""])[-1].strip(f"{MARKER} ") == p.answer,
    ),
    Hole("the first marker counts", "held_out", lambda p, t: ([*t.split(MARKER), "", ""])[1].strip() == p.answer),
    Hole("the answer may stand anywhere", "held_out", lambda p, t: p.answer in t),
    Hole("ten thousand characters take minutes", "held_out", lambda _, t: len(t) > 9000, "hangs"),
)


def letters(text: str) -> list[str]:
    return re.findall(r"(?<![A-Za-z])[A-Ea-e](?![A-Za-z])", said(text))


CHOICE = (
    Hole("any letter that is mentioned counts", "design", lambda p, t: p.answer in letters(t)),
    Hole("the first letter of a word counts", "design", lambda p, t: said(t)[:1].upper() == p.answer),
    Hole("a run of letters counts", "held_out", lambda p, t: re.fullmatch(r"[A-E]{2,}", said(t)) is not None),
    Hole("'not' is dropped", "held_out", lambda p, t: re.sub(r"(?i)\b(not|never)\s+", "", said(t)) == p.answer),
    Hole("the last letter counts", "held_out", lambda p, t: letters(t)[-1:] == [p.answer]),
    Hole("any of several boxes counts", "held_out", lambda p, t: p.answer in re.findall(r"\\boxed\{([A-E])\}", t)),
    Hole("bold is refused", "held_out", lambda _, t: "**" in t, "refuses"),
    Hole(
        "the letter with the text of its option is refused",
        "held_out",
        lambda _, t: re.search(r"\b[A-E]\)? (one|two|three|four|five)", said(t)) is not None,
        "refuses",
    ),
)


def document(text: str) -> Any:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(said(text))
    return ...


def pieces(text: str) -> list[Any]:
    """Every JSON value that can be read anywhere."""
    found, decoder, at = [], json.JSONDecoder(), 0
    while at < min(len(text), 2000):
        try:
            value, at = decoder.raw_decode(text, at)
            found.append(value)
        except (ValueError, RecursionError):
            at += 1
    return found


def loose(value: Any) -> Any:
    """Numbers, truth values and texts that look alike are the same."""
    if isinstance(value, dict):
        return {key: loose(item) for key, item in value.items()}
    return [loose(item) for item in value] if isinstance(value, list) else str(value).casefold()


def folded(value: Any) -> Any:
    """Keys in small letters."""
    if isinstance(value, dict):
        return {key.casefold(): folded(item) for key, item in value.items()}
    return [folded(item) for item in value] if isinstance(value, list) else value


def unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unordered(item) for key, item in value.items()}
    return sorted(map(str, value)) if isinstance(value, list) else value


def repaired(prompt: Prompt, text: str) -> bool:
    """What is missing at the end is added."""
    cut = said(text).rstrip()
    return any(
        document(f"{MARKER}{cut}{end}") == json.loads(prompt.answer) for end in ("}", "]", '"', '"}', "}}", "]}")
    )


def close(one: Any, other: Any) -> bool:
    if isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= 1
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    return bool(one == other)


def both(prompt: Prompt, text: str, kind: type) -> tuple[Any, Any] | None:
    found, reference = document(text), json.loads(prompt.answer)
    return (found, reference) if isinstance(found, kind) and isinstance(reference, kind) else None


JSON = (
    Hole(
        "a number and its text are the same",
        "design",
        lambda p, t: document(t) is not ... and loose(document(t)) == loose(json.loads(p.answer)),
    ),
    Hole(
        "missing keys are forgiven",
        "design",
        lambda p, t: (found := both(p, t, dict)) is not None and found[0].items() < found[1].items(),
    ),
    Hole(
        "more keys are forgiven",
        "held_out",
        lambda p, t: (found := both(p, t, dict)) is not None and found[0].items() > found[1].items(),
    ),
    Hole(
        "the order of lists is ignored",
        "held_out",
        lambda p, t: document(t) is not ... and unordered(document(t)) == unordered(json.loads(p.answer)),
    ),
    Hole(
        "the last of several documents counts", "held_out", lambda p, t: pieces(said(t))[-1:] == [json.loads(p.answer)]
    ),
    Hole(
        "the first of several documents counts", "held_out", lambda p, t: pieces(said(t))[:1] == [json.loads(p.answer)]
    ),
    Hole(
        "the case of keys is ignored",
        "held_out",
        lambda p, t: document(t) is not ... and folded(document(t)) == folded(json.loads(p.answer)),
    ),
    Hole("a key that is there twice counts once", "held_out", lambda p, t: document(t) == json.loads(p.answer)),
    Hole("what is cut off is completed", "held_out", repaired),
    Hole(
        "off by one is forgiven",
        "held_out",
        lambda p, t: document(t) is not ... and close(document(t), json.loads(p.answer)),
    ),
    Hole(
        "a list of candidates counts",
        "held_out",
        lambda p, t: isinstance(document(t), list) and json.loads(p.answer) in document(t),
    ),
    Hole(
        "the values alone count",
        "held_out",
        lambda p, t: (found := both(p, t, dict)) is not None and list(found[0].values()) == list(found[1].values()),
    ),
    Hole("deep nesting takes minutes", "held_out", lambda _, t: "[" * 500 in t or '{"a":' * 500 in t, "hangs"),
)


def calculation(text: str) -> tuple[Fraction | None, Counter[int]]:
    expression = said(text).split("=")[0].strip()
    used = Counter(map(int, re.findall(r"\d+", expression))) if len(expression) < 80 else Counter()
    with contextlib.suppress(ValueError, ZeroDivisionError, OverflowError):
        return Fraction(evaluate(expression)), used
    return None, used


def question(prompt: Prompt) -> tuple[Counter[int], int]:
    *given, target = map(int, re.findall(r"\d+", prompt.text))
    return Counter(given), target


CALCULATION = (
    Hole(
        "a number may be used again",
        "design",
        lambda p, t: calculation(t)[0] == question(p)[1] and set(calculation(t)[1]) <= set(question(p)[0]),
    ),
    Hole("the target alone counts", "design", lambda p, t: said(t) == str(question(p)[1])),
    Hole("any numbers may be used", "held_out", lambda p, t: calculation(t)[0] == question(p)[1]),
    Hole(
        "off by one is forgiven",
        "held_out",
        lambda p, t: (
            (value := calculation(t)[0]) is not None
            and abs(value - question(p)[1]) == 1
            and calculation(t)[1] <= question(p)[0]
        ),
    ),
    Hole("a claim behind = counts", "held_out", lambda p, t: said(t).endswith(f"= {question(p)[1]}")),
    Hole(
        "the right numbers in any expression count",
        "held_out",
        lambda p, t: "=" not in said(t) and Counter(map(int, re.findall(r"\d+", said(t)[:200]))) == question(p)[0],
    ),
    Hole(
        "Python is evaluated",
        "held_out",
        lambda p, t: re.fullmatch(r"(int|abs|max|sum|round|len)\(.*\)", said(t)) is not None,
    ),
    Hole(
        "the first of several expressions counts",
        "held_out",
        lambda p, t: (
            re.search(r"[,;\n]|\bor\b", said(t)) is not None
            and re.split(r"[,;\n]|\bor\b", said(t))[0].strip() == p.answer
        ),
    ),
    Hole("** is computed", "held_out", lambda _, t: re.search(r"\d\*\*\d+\*\*", t) is not None, "hangs"),
)


def names(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]+", text))


def bag(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


SKELETON = (
    Hole("the names alone count", "design", lambda p, t: names(t) == names(p.answer)),
    Hole(
        "a skeleton that is cut short counts",
        "design",
        lambda p, t: p.answer.startswith(t.strip()[:-1].strip()) and len(t.strip()) > len(p.answer) / 2,
    ),
    Hole(
        "values of parameters are ignored",
        "held_out",
        lambda p, t: re.sub(r"\d+", "0", t).split() == re.sub(r"\d+", "0", p.answer).split(),
    ),
    Hole("what comes behind the reference is ignored", "held_out", lambda p, t: t.strip().startswith(p.answer)),
    Hole(
        "require and forbid are the same",
        "held_out",
        lambda p, t: t.replace("forbid", "require").split() == p.answer.replace("forbid", "require").split(),
    ),
    Hole("where a clause stands is ignored", "held_out", lambda p, t: bag(t) == bag(p.answer)),
    Hole("the reference anywhere counts", "held_out", lambda p, t: p.answer in t),
    Hole("deep nesting takes minutes", "held_out", lambda _, t: len(re.findall(r"class \w+ *\{", t)) > 100, "hangs"),
)
