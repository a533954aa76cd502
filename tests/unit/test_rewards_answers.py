"""Equivalent forms and near misses: mathematics, choices, JSON."""

from __future__ import annotations

import time
from typing import Any

import pytest

from components.config.answers import ClassifierVerifier, JsonVerifier, MathVerifier, MultipleChoiceVerifier
from components.config.base import Section
from components.config.reward import RewardSettings
from components.config.sandbox import SandboxSettings
from components.errors import InputError
from components.rewards import build_verifier
from components.rewards.answers import deceptive, depth, last_box, stated
from components.rewards.base import Refused, Verifier
from components.rewards.sandbox import Sandbox
from components.rewards.symbolic import MathVerifier as Math
from components.types import Prompt
from tests.unit.classifiers import save_classifier
from tests.unit.test_imports import loaded_by

BUILT: dict[Section, Verifier] = {}


def accuracy(settings: Section, reference: str, text: str) -> float:
    key = repr(settings)
    verifier = BUILT.setdefault(key, build_verifier(settings))  # type: ignore[arg-type,call-overload]
    return verifier.accuracy(Prompt("p", "?", reference, ""), text)


MATH = MathVerifier(kind="math")


def same(reference: str, answer: str, **options: Any) -> bool:
    return accuracy(MathVerifier(kind="math", **options), reference, rf"So it is \boxed{{{answer}}}.") == 1.0


EQUAL = [
    (
        "1/2",
        ["0.5", r"\frac{1}{2}", r"\frac12", r"\dfrac{1}{2}", r"\tfrac{2}{4}", "2/4", ".5", "0.50", r"$\frac{1}{2}$"],
    ),
    ("1000", ["1,000", "1000.0", "10^3", "10**3", "1e3", r"1\times 10^{3}", r"1000\text{ m}", "1000 km", r"\$1,000"]),
    ("1,000", ["1000", "1,000"]),
    ("2x+1", ["1+2x", "1 + 2*x", "x+x+1", r"2\cdot x+1", "(4x+2)/2"]),
    ("x^2-1", ["(x-1)(x+1)", "-1+x^2", "x**2-1"]),
    (r"\sqrt{8}", [r"2\sqrt{2}", "sqrt(8)"]),
    (r"\{1,2\}", [r"\{2,1\}", "1,2", "2, 1"]),
    ("[0,1)", ["[0, 1)", r"\left[0,1\right)", "[0,0.5+0.5)"]),
    ("1/3", ["0.333333", r"\frac{1}{3}"]),
    ("72", ["x=72", "72.", "70+2", "-(-72)"]),
    ("50", [r"50\%", "50%"]),
    ("-3", ["\u22123", "-3.0"]),
    ("yes", ["Yes", r"\text{yes}"]),
    (r"\text{yes}", ["Yes"]),
    ("no solution", ["No  solution", r"\text{no solution}"]),
    ("x-y", ["x - y", "-y+x", "-(y-x)"]),
    ("a-b", ["a - b"]),
    ("ab", ["ba", "a*b", r"a \cdot b"]),
    ("x - y", ["-y + x"]),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", [r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}"]),
]
DIFFERENT = [
    ("1/2", ["1/3", "2", "0.51", "1/2, 1/3", "50%", r"\frac{1}{2} \text{ or } \frac{1}{3}"]),
    ("1000", ["1,0001", "100", "1 000 000"]),
    ("2x+1", ["2x-1", "2y+1", "x+1", "2x+1+y"]),
    (r"\{1,2\}", [r"\{1,3\}", "1", r"\{1,2,3\}"]),
    ("[0,1)", ["(0,1)", "[0,1]", "(0,1]", "[0,2)"]),
    ("1/3", ["0.33", "0.3333"]),
    ("72", ["73", "7 72", "72, 73", "72 or 73", "", "72=73", r"72\text{ or 73}", "seventy-two"]),
    ("yes", ["no", "esy", "yesyes", "y*e*s"]),
    ("x-y", ["y-x", "x+y"]),
    ("ab", ["a+b", "a"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "answers", "equal"), [*((*row, True) for row in EQUAL), *((*row, False) for row in DIFFERENT)]
)
def test_expressions_are_right_where_they_are_equivalent(reference, answers, equal):
    assert {answer: same(reference, answer) for answer in answers} == dict.fromkeys(answers, equal)


def test_per_cent_can_be_a_hundredth():
    found = [same(reference, r"50\%", percent="fraction") for reference in ("1/2", "0.5", "50%", "50")]
    assert found == [True, True, True, False]


def test_the_answer_follows_the_marker_or_stands_in_the_last_box():
    marked = MathVerifier(kind="math", marker="####")
    assert accuracy(marked, "42", r"\boxed{41} #### 42") == 1.0
    assert accuracy(marked, "42", r"#### \boxed{42}") == 1.0
    assert accuracy(marked, "42", r"\boxed{42}") == 0.0
    assert accuracy(MATH, "42", r"\boxed{42} or rather \boxed{41}") == 0.0
    assert accuracy(MATH, "42", "42") == 0.0


@pytest.mark.parametrize("reference", ["", r"\frac{", "1" * 500])
def test_a_reference_that_is_no_expression_is_refused(reference):
    with pytest.raises(Refused, match="the reference answer"):
        accuracy(MATH, reference, r"\boxed{x}")


def test_neither_the_parent_nor_the_hooks_of_the_audit_load_sympy():
    statement = (
        "import components.rewards.sandbox\n"
        "from components.config.answers import MathVerifier\n"
        "from components.types import Prompt\n"
        "verifier = components.rewards.build_verifier(MathVerifier(kind='math'))\n"
        "verifier.equivalents(Prompt('p', '?', '42', '')), verifier.wrap('42')"
    )
    assert loaded_by(statement) & {"sympy", "mpmath", "jsonschema", "torch"} == set()


def test_what_the_fence_raises_is_not_swallowed_as_wrong():
    verifier = Math(None, 6, "strip", 400)

    def out_of_memory(*_: object) -> bool:
        raise MemoryError

    verifier._same = out_of_memory  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        verifier.accuracy(Prompt("p", "?", "x+1", ""), r"\boxed{1+x}")


# Where an answer stands


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"\boxed{1}", "1"),
        (r"\boxed{1} \boxed{\frac{1}{2}} end", r"\frac{1}{2}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\fbox{a}", "a"),
        (r"\boxed{1", None),
        (r"the largest value of $x$ is $\boxed 2$.", "2"),
        (r"$\boxed 9$", "9"),
        (r"\[x=\boxed -12.5\]", "-12.5"),
        (r"\(\boxed x.\) Or so.", "x"),
        ("\\boxed 7.\nThat is all.", "7"),
        (r"\boxed{1} no, $\boxed 2$", "2"),
        (r"$\boxed 2 + 3$", None),
        (r"$\boxed 2x$", None),
        (r"$\boxed\frac12$", None),
        ("the \\boxed answer", None),
        (r"boxed{1}", None),
        ("", None),
    ],
)
def test_the_last_box_is_read_with_its_braces(text, box):
    assert last_box(text) == stated(text, None) == box


def test_a_box_without_braces_is_looked_for_in_time_proportional_to_the_text():
    began = time.process_time()
    assert last_box("\\boxed 2" + " " * 200_000 + "x") is None
    assert last_box("\\boxed " + "2" * 200_000 + "x") is None
    assert time.process_time() - began < 2


@pytest.mark.parametrize("answer", ["４２", "٤٢", "𝟒𝟐", "4\u200b2", "\u202e42", "42\x00", "\ud800"])
def test_what_looks_like_something_else_is_deceptive(answer):
    assert deceptive(answer)
    assert not deceptive("42 é − ½ π\n")


# Choices


def chosen(text: str, reference: str = "B", **options: Any) -> bool:
    return accuracy(MultipleChoiceVerifier(kind="multiple_choice", **options), reference, text) == 1.0


@pytest.mark.parametrize(
    "answer",
    ["B", "(B)", "B.", "B)", "b", "[B]", "**B**", "$B$", r"\text{B}", "B: blue", "(B) A blue bird", "B. I am",
     "Answer: B", "The answer is B", "option B", "The correct answer is (B).", "B) a cat and a dog",
     "(B) Paris, a city", "B. 5 m/s", "B. 10 N", "B is correct", "B because the cat is red", "B. x, y",
     "(B) 5 and x", "The answer is B because it is", "B, a city", "B is the right answer", "B) A cat"],
)  # fmt: skip
def test_every_usual_form_of_one_choice_is_read(answer):
    assert chosen(f"#### {answer}", marker="####")
    assert chosen(rf"\boxed{{{answer}}}")
    assert chosen(f"#### {answer}", reference="(B)", marker="####")


@pytest.mark.parametrize(
    "text",
    [
        "The answer is B", "Answer: B", "So the answer is option B, I think.", "So the answer is (B).",
        "The correct option is B", "The safest choice is B.", "I think answer: B", "It is \\boxed{B}",
    ],
)  # fmt: skip
def test_without_a_marker_a_box_or_a_sentence_states_it(text):
    assert chosen(f"Perhaps A? No.\n{text}")


@pytest.mark.parametrize(
    "answer",
    ["A", "A, B, C, D, E", "ABCDE", "A B C D", "A or B", "B or C", "B and C", "B, C", "B/C", "(B) (C)",
     "B) or maybe D)", "both A and B", "all of them", "Blue", "Bob", "F", "Z", "", "I think so", "not B", "В",
     "B.\nC.", "B) A)", "B. A", "B) a c d e", "B or a", "B or a maybe", "B)B)C)", "B is wrong", "B is not correct",
     "B (or a)", "B, c", "B) (a)", "B. A is right too", "B because A or C", "B\nc"],
)  # fmt: skip
def test_none_several_or_another_is_wrong(answer):
    assert not chosen(f"#### {answer}", marker="####")


@pytest.mark.parametrize(
    "text", ["A B C D E", "B", "I like B", "The answer is A or B", "The answer is B. The answer is C"]
)
def test_a_letter_somewhere_in_the_text_is_no_choice(text):
    assert not chosen(text)


@pytest.mark.parametrize(
    "more",
    ["The weakest choice is A.", "A common wrong answer is A.", "This choice is best because it is complete.",
     "Explanation: the first option is a distractor.", "Note: option: check units.", "The answer is not A."],
)  # fmt: skip
def test_a_sentence_about_other_choices_states_none(more):
    assert chosen(f"The answer is (B) 12.\n\n{more}")
    assert not chosen(f"The answer is (B) 12.\n\n{more}", reference="A")


def test_what_was_thought_states_no_choice():
    assert not chosen("Hmm, maybe the answer is B.</think>\n\nNo idea.")
    assert chosen("Hmm, maybe the answer is A.</think>\n\n**Answer:** B")


@pytest.mark.parametrize("answer", ["B", "B. Vitamin C", "(B) Vitamin C", "D) Both A and B"])
def test_the_text_of_the_chosen_option_may_name_others(answer):
    question = "Which?\nA) Iron\nB) Vitamin C\nC) Zinc\nD) Both A and B"
    verifier = build_verifier(MultipleChoiceVerifier(kind="multiple_choice", marker="#"))
    assert verifier.accuracy(Prompt("p", question, "D" if "D" in answer else "B", ""), f"# {answer}") == 1.0
    assert verifier.accuracy(Prompt("p", question, "A", ""), "# B. Vitamin C or A") == 0.0


def test_a_reference_that_is_no_option_is_refused():
    with pytest.raises(Refused, match="'G' is none of the options ABCDE"):
        chosen("#### B", reference="G", marker="####")


# JSON

REFERENCE = '{"name": "Zoë", "sizes": [1, 2.5], "new": true, "note": null}'


def agrees(answer: str, reference: str = REFERENCE, **options: Any) -> bool:
    return accuracy(JsonVerifier(kind="json", **options), reference, answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        REFERENCE, '{"note":null,"new":true,"sizes":[1.0,2.50],"name":"Zo\\u00eb"}', f"\n  {REFERENCE}\n",
        f"Here it is:\n```json\n{REFERENCE}\n```\nDone.", f"```\n{REFERENCE}\n```", f"```JSON\n{REFERENCE}```",
        f"```json {REFERENCE}```",
    ],
)  # fmt: skip
def test_the_same_value_is_right_however_it_is_written(answer):
    assert agrees(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "", "{}", "null", REFERENCE[:-1], REFERENCE + REFERENCE, f"Here it is: {REFERENCE}",
        REFERENCE.replace("1, 2.5", "2.5, 1"), REFERENCE.replace("true", "1"), REFERENCE.replace("[1,", "[true,"),
        REFERENCE.replace("null", '"null"'), REFERENCE.replace('"note"', '"name": "x", "note"'),
        REFERENCE.replace("null", "NaN"), REFERENCE.replace("null", "[" * 50 + "]" * 50),
    ],
)  # fmt: skip
def test_another_value_and_what_is_no_json_is_wrong(answer):
    assert not agrees(answer)


@pytest.mark.parametrize(
    "answer",
    [
        '["' + "]" * 3000 + '",' + "[" * 3000 + "]" * 3000 + "]",
        '["\\"' + "]" * 3000 + '",' + "[" * 3000 + "]" * 3000 + "]",
        "]" * 3000 + "[" * 3000,
        "[" * 10_000,
    ],
)
def test_nesting_is_counted_outside_strings_only_and_too_much_of_it_is_wrong_not_unscorable(answer):
    assert not agrees(answer)


def test_a_string_may_hold_the_end_of_a_fence():
    text = '{"a": "```", "b": 1}'
    assert agrees(f"```json\n{text}\n```", reference=text)


def test_numbers_beyond_all_bounds_are_no_json():
    with pytest.raises(Refused, match="too large"):
        agrees("[2e400]", reference="[1e400]")


def test_brackets_in_a_string_are_not_nesting():
    assert agrees('["' + "[" * 300 + '"]', reference='["' + "[" * 300 + '"]')


@pytest.mark.parametrize(("brackets", "deep"), [("(())", 2), ("", 0), ("))((", 2), (")" * 9 + "(" * 9, 9)])
def test_a_bracket_that_closes_nothing_makes_no_room_for_another(brackets, deep):
    assert depth(brackets) == deep


@pytest.mark.timeout(20)
def test_a_fence_that_never_closes_takes_no_time():
    start = time.process_time()
    assert not agrees("```" + "\n" * 19_000, reference="1") and not agrees("```" + " " * 19_000, reference="1")
    assert time.process_time() - start < 1


SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


def test_a_schema_is_a_second_condition_and_a_part_where_it_is_asked_for():
    settings = JsonVerifier(kind="json", json_schema=SCHEMA, structure=True)
    verifier, prompt = build_verifier(settings), Prompt("p", "?", '{"a": 1}', "")
    found = [verifier.judge(prompt, text) for text in ('{"a": 1}', '{"a": 2}', '{"b": 1}', "no")]
    assert [judgement.accuracy for judgement in found] == [1.0, 0.0, 0.0, 0.0]
    assert [dict(judgement.parts) for judgement in found] == [
        {"parsed": 1, "schema": 1}, {"parsed": 1, "schema": 1}, {"parsed": 1, "schema": 0}, {"parsed": 0, "schema": 0},
    ]  # fmt: skip
    assert RewardSettings(verifier=settings).names == ("accuracy", "parsed", "schema")


def test_a_reference_that_is_no_json_is_refused():
    with pytest.raises(Refused, match="the reference is not JSON"):
        agrees("{}", reference="{")


# A learned judge


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    words = ["The", "final", "reference", "answer", "is", "blue", "red"]
    return save_classifier(tmp_path_factory.mktemp("judge"), words, ("wrong", "right"), positions=64)


def test_a_learned_judge_is_right_from_its_threshold_on_and_says_how_sure_it_is(judge):
    prompt = Prompt("p", "Which colour?", "blue", "")
    settings = {"kind": "classifier", "path": judge, "label": "right"}
    probability = build_verifier(ClassifierVerifier(**settings)).judge(prompt, "# red").metrics["probability"]
    assert 0 < probability < 1
    limits = SandboxSettings(workers=1, timeout=60, cpu_seconds=60, memory_mb=16384)
    items = [(prompt, text) for text in ("# red", "no answer", "# r\u200bed")]
    with Sandbox(ClassifierVerifier(threshold=probability, **settings), limits) as sandbox:
        [found, empty, hidden] = sandbox.judge(items)
    assert (found.accuracy, found.metrics) == (1.0, {"probability": probability})
    assert empty.accuracy == hidden.accuracy == 0.0
    stricter = build_verifier(ClassifierVerifier(threshold=probability + 1e-9, **settings))
    assert [stricter.accuracy(*item) for item in items] == [0.0, 0.0, 0.0]


def test_a_judge_that_changed_or_could_run_code_is_refused(judge):
    settings = ClassifierVerifier(kind="classifier", path=judge, label="right", sha256="0" * 64)
    with pytest.raises(InputError):
        Sandbox(settings, SandboxSettings())
    (judge / "modeling.py").write_text("print()")
    with pytest.raises(InputError):
        Sandbox(settings.model_copy(update={"sha256": None}), SandboxSettings())
