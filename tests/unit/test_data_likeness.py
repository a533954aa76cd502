"""When two questions are the same exercise, near-duplicates, or of one template."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.data import DataSettings, NearDuplicateSettings, ValidationSettings
from components.config.sources import FileSource
from components.config.tasks import ArithmeticSource
from components.data.candidates import Candidate
from components.data.likeness import even_answer, guessable, key, likeness
from components.data.near import NearDuplicates
from components.data.splits import SPLITS, assign
from components.data.survey import Survey, shared, survey
from components.rewards.grammar.scan import one_value
from components.types import Prompt

STORY = (
    "Josie received $50 as a gift. She plans to buy two cassette tapes that cost $9 each and a headphone set that "
    "costs $25. How much money will she have left?"
)


def surveyed(*rows: tuple[str, str], check: str = "files", **options: object) -> Survey:
    near = NearDuplicateSettings.model_validate({"check": check, **options})
    data = DataSettings(source=FileSource(kind="jsonl", path="x"), validation=ValidationSettings(near_duplicates=near))  # type: ignore[arg-type]
    candidates = [Candidate(Prompt(str(i), text, answer, answer), {}, i + 1) for i, (text, answer) in enumerate(rows)]
    return survey(candidates, data)


def exercises(*rows: tuple[str, str], **options: object) -> int:
    return len(set(surveyed(*rows, **options).twins.tolist()))


@pytest.mark.parametrize(
    ("changed", "answer", "same"),
    [
        (STORY.replace("Josie", "Josip"), "7", True),
        (STORY + " ", "7", True),
        (STORY.upper(), "7", True),
        (STORY.replace("$25", "$26"), "7", False),
        (STORY.replace("Josie", "Josip"), "8", False),
        (
            "A farm has twelve cows and a barn for each of them, and no one counts the goats that live there.",
            "7",
            False,
        ),
    ],
)
def test_near_duplicates_differ_in_a_few_words_and_in_no_number_and_no_answer(changed, answer, same):
    assert (exercises((STORY, "7"), (changed, answer)) == 1) is same


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("47+38=", "48+38="),
        ("47+38=", "38+47="),
        ("47+38=", "47-38="),
        ("Ann has 47 cups and gets 38. How many now?", "Ann has 48 cups and gets 38. How many now?"),
        ("Ann has 47 cups and gets 38. How many now?", "Ben has 47 eggs and gets 38. How many now?"),
        ('How many letters does "apple" have in this list?', 'How many letters does "grape" have in this list?'),
        ("What is 1.5 times 4?", "What is 1.6 times 4?"),
    ],
)  # fmt: skip
def test_short_and_templated_questions_with_other_numbers_are_other_questions(left, right):
    assert exercises((left, "5"), (right, "5")) == 2


def test_all_sums_of_two_digits_are_different_exercises():
    sums = [(f"{a}+{b}=", str(a + b)) for a in range(10, 60) for b in range(10, 30)]
    assert exercises(*sums, check="all") == 1000


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("What is 47+38 in the end?", "What is 47+38 in, the... end!?", True),
        ("Say what 6*2 is, please.", "Say what 6/2 is, please.", False),
        ("Say what 6-2 is, please.", "Say what 6 2 is, please.", False),
        ("Say what 5! is, please.", "Say what 5 is, please.", False),
        ("Now simplify (x+2)(x-3) for me", "Now simplify (x+2)/(x-3) for me", False),
    ],
)
def test_punctuation_is_left_out_unless_it_is_mathematics(left, right, same):
    items = surveyed((left, "5"), (right, "5"), check="files", threshold=1.0).items
    assert (len(set(items.tolist())) == 1) is same


@pytest.mark.parametrize("answers", [("72", "72"), ("72", "72.0"), ("72", "$72"), ("48/2=24\n#### 72", "She sold 72")])
def test_a_question_in_two_splits_is_leaked_however_its_answer_is_written(answers):
    shares = DataSettings().splits
    texts = {
        assign(text, shares): text for text in (f"{STORY}{end}" for end in (" ", "!", "?!", " ?", "..", ";", ".!"))
    }
    assert len(texts) > 1
    rows = list(zip([*texts.values()][:2], answers, strict=True))
    assert shared(surveyed(*rows)).alike_splits.tolist() == [2, 2]


def test_of_a_long_text_only_what_may_be_admitted_is_shingled():
    """A text of half a million different words takes no more memory than one that just exceeds the limit."""
    peaks = []
    for words in (1_000, 200_000):
        text = " ".join(f"w{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676 % 26)}x" for i in range(words))
        tracemalloc.start()
        try:
            surveyed((text, "1"))
            peaks.append(tracemalloc.get_traced_memory()[1] - 16 * len(text))
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2_000_000


def test_the_threshold_and_the_shingles_are_settings():
    changed = STORY.replace("plans", "wants").replace("gift", "present")
    assert exercises((STORY, "7"), (changed, "7"), threshold=0.7) == 1
    assert exercises((STORY, "7"), (changed, "7"), threshold=0.99) == 2
    assert exercises((STORY, "7"), (changed, "7"), shingles="words", size=3) == 2
    assert exercises((STORY, "7"), (changed, "7"), check="off") == 2


def test_generated_problems_are_not_compared_unless_asked():
    data = DataSettings(source=ArithmeticSource())
    rows = [Candidate(Prompt("1", STORY, "7", ""), {}, None), Candidate(Prompt("2", STORY + "!", "7", ""), {}, None)]
    assert len(set(survey(rows, data).twins.tolist())) == 2


def test_many_variants_of_one_text_are_one_group_and_the_first_names_it():
    words = STORY.split()
    texts = [STORY, "something else entirely, about ships that pass in the night"]
    texts += [" ".join([*words[:i], "really", *words[i:]]) for i in range(1, len(words))]
    near = NearDuplicates(NearDuplicateSettings(threshold=0.85))
    for text in texts:
        near.add(text)
    groups = near.groups()
    assert groups[1] == 1
    assert (np.delete(groups, 1) == 0).all()


def test_what_rows_share_is_counted_over_all_of_them():
    rows = [("1+1=", "2"), (" 1+1= ", "2"), (STORY, "7"), (STORY + "!", "7"), ("", "")]
    found = surveyed(*rows)
    counts = shared(found)
    assert counts.id_rows.tolist() == [1, 1, 1, 1, 1]
    assert counts.question_rows.tolist() == [2, 2, 1, 1, 1]
    assert counts.alike.tolist() == [1, 1, 2, 2, 1]
    shares = DataSettings().splits
    splits = len({assign(STORY, shares), assign(STORY + "!", shares)})
    assert counts.alike_splits.tolist() == [1, 1, splits, splits, 1]
    assert [SPLITS[i] for i in found.splits] == [assign(text, shares) for text, _ in rows]


def test_the_first_pass_keeps_numbers_and_no_texts():
    """Sixteen times longer texts take no more memory than short ones."""

    def peak(length: int) -> int:
        data = DataSettings(source=FileSource(kind="jsonl", path="x"))  # type: ignore[arg-type]
        texts = (f"{'abcdefghij'[i % 10]} " * length + f"number {i}" for i in range(400))
        tracemalloc.start()
        try:
            found = survey((Candidate(Prompt(str(i), text, "1", "1"), {}, i) for i, text in enumerate(texts)), data)
            assert found.rows == 400
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(800) < peak(50) + 200_000


def test_an_empty_source_shares_nothing():
    assert shared(surveyed()).alike.tolist() == []


@given(st.text())
def test_a_question_is_as_alike_as_its_normal_form(text):
    assert likeness(f" {text.lower()}\n").normalised == likeness(text.lower()).normalised
    assert key(text) < 2**64
    assert (key(text) == 0) == (text == "")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("yes", True), ("No", True), ("B", True), ("(c)", True), ("7", True), ("42", False), ("blue", False),
        ("f", False),
    ],
)  # fmt: skip
def test_guessable_answers(answer, expected):
    assert guessable(answer) is expected


@given(st.from_regex(r"[0-9]{1,30}", fullmatch=True))
def test_a_plain_number_is_evened_out_as_every_number_is(digits):
    assert even_answer(digits) == str(one_value(digits))


def test_no_text_leaves_anything_behind_in_the_signature_of_the_next():
    texts = [STORY, "A farm has twelve cows and no one counts the goats that live there.", STORY]
    together, alone = NearDuplicates(NearDuplicateSettings()), NearDuplicates(NearDuplicateSettings())
    for text in texts:
        together.add(text)
    alone.add(texts[1])
    for near in (together, alone):
        near._file.flush()
        near._file.seek(0)
    signatures = together._file.read()
    size = len(signatures) // 3
    assert signatures[size : 2 * size] == alone._file.read()
    assert together.groups().tolist() == [0, 1, 0]
