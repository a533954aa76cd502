"""Patterns of users: they find what Python's would, in time that grows with the text, or are refused."""

from __future__ import annotations

import itertools
import re
import time

import pytest

from components.canaries.judging import refuses
from components.config import load
from components.config.canaries import REFUSALS
from components.errors import InputError
from components.patterns import compile_pattern
from tests.code_graph import ROOT

ALIKE = (
    r"####\s*(.+)$",
    r"(a)$",
    r"(?m)^(b)$",
    r"(?m:^b$)\n(c)$",
    r"(?s)(.+)$",
    r"(?s)(.+?)$",
    r"(a)\Z",
    r"(\s+)",
    r"([^\S\n]+)",
    r"([\s\S]+)",
    r"(\d+)",
    r"(\w+)",
    r"(\W+)",
    r"([^\d]+)",
    r"(?i)(É)",
    r"(?P<x>a)|(b)",
    r"(a{,2}b)",
    r"([]a]+)",
    r"([^]a]+)",
    r"(\u0061)",
    r"([\b])",
    r"(\_)",
    r"(a\$)",
    r"([é-ü]+)",
    r"\bI(?:'m| am) (sorry|unable)\b",
)
TEXTS = (
    "",
    "#### 5",
    "#### 5\n",
    "a\n",
    "a\n\n",
    "a\nb\n",
    "a\nb\nc",
    "aab",
    "]a",
    "a$",
    "\x08",
    "_a",
    "²½",
    "٣",
    "éü",
)
TEXTS += ("\u00a0", "\v", "\x1c", "\u2028x", "I am sorry.", "I'm unable to")


@pytest.mark.parametrize("pattern", ALIKE)
def test_the_groups_are_those_that_python_finds(pattern):
    compiled = compile_pattern(pattern)
    for text in TEXTS:
        found = re.search(pattern, text)
        assert compiled.search(text) == (found and found.groups()), text


def test_the_case_can_be_ignored_in_every_script():
    pattern = compile_pattern("é(x)", ignore_case=True)
    assert (pattern.search("ÉX"), compile_pattern("é(x)").search("ÉX")) == (("X",), None)


@pytest.mark.parametrize("sign", [r"\s", r"\w", r"\d"])
def test_the_classes_are_those_of_python_for_every_character(sign):
    ours, theirs = compile_pattern(sign), re.compile(sign)
    characters = map(chr, itertools.chain(range(0xD800), range(0xE000, 0x11000)))
    assert [one for one in characters if ours.matches(one) != bool(theirs.match(one))] == []


def test_a_word_boundary_knows_ascii_letters_alone():
    assert compile_pattern(r"\bno\b").matches("oh no.")
    assert not compile_pattern(r"\bé").matches("é")  # as the documentation says; Python's engine finds it


def test_half_a_character_in_a_text_is_no_crash():
    assert compile_pattern("(a)").search("\ud800a") == ("a",)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"####\s*(.+)$", "####" + " " * 60_000 + "\nx\ny"),
        (r"(a+)+$", "a" * 60_000 + "!"),
        (r"(.*)*(.*)*x$", "a" * 60_000),
        (r"(\w+\s?)+\.$", "word " * 12_000 + "!"),
    ],
)
def test_a_row_that_stalls_python_is_searched_at_once(pattern, text):
    start = time.process_time()
    assert compile_pattern(pattern).search(text) is None
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        ("a(?=b)", "put a group around what counts"),
        ("(?<!a)b", "put a group around what counts"),
        (r"(a)\1", "write out what that group may be"),
        ("(?P<x>a)(?P=x)", "write out what that group may be"),
        ("(a)?(?(1)b|c)", "write both cases"),
        ("(?>a)", r"write \(\?: instead"),
        ("a++", "leave the second sign out"),
        ("a{1001}", "more than 1,000 times"),
        (r"[^\W\d_]", r"write \\pL"),
        (r"\N{DIGIT ONE}", "write the characters themselves"),
        ("(?x)a b", "invalid perl operator"),
        ("(", "missing \\)"),
        ("[a", "missing \\]"),
        ("\ud800", "half a character"),
    ],
)
def test_what_the_engine_does_not_have_is_refused_and_says_what_to_write(pattern, instead):
    with pytest.raises(ValueError, match=instead):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(", "####", "(?=a)(b)"])
def test_an_answer_pattern_is_refused_with_the_settings(pattern):
    source = f"data.source={{kind: jsonl, path: data/mine.jsonl, answer_pattern: '{pattern}'}}"
    with pytest.raises(InputError, match=r"data\.source\.jsonl\.answer_pattern"):
        load(ROOT / "configs/demo.yaml", [source])


def test_a_pattern_of_a_probe_set_is_refused_with_the_settings():
    with pytest.raises(InputError, match="put a group around what counts"):
        load(ROOT / "configs/demo.yaml", ["health.canaries.a={path: a.jsonl, format: format, pattern: '(?=a)b'}"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm sorry, no.", True),
        ("i CAN’T do that", True),
        ("As an AI, ...", True),
        ("Sure, here is", False),
        ("", False),
    ],
)
def test_refusals_are_found_as_before(text, expected):
    assert refuses(text, REFUSALS) is expected
