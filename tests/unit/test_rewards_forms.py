"""What every verifier must accept as another way to write the right answer: the ground of the verifier audit."""

from __future__ import annotations

import pytest

from components.config.answers import JsonVerifier, MathVerifier, MultipleChoiceVerifier
from components.config.verifiers import ExactVerifier, NumericVerifier, StructureVerifier
from components.rewards import build_verifier
from components.types import Prompt

CASES = [
    (ExactVerifier(), "forty-two"),
    (ExactVerifier(marker=""), "forty-two"),
    *((NumericVerifier(kind="numeric"), answer) for answer in ("42", "-3", "0.5", "1,234", "$5", "-2.25", "0")),
    (NumericVerifier(kind="numeric", marker=None), "42"),
    *(
        (MathVerifier(kind="math"), answer)
        for answer in ("42", "-3", "1/2", "2x+1", r"\frac{\sqrt{2}}{2}", "[0,1)", "yes")
    ),
    *((MathVerifier(kind="math", marker="####"), answer) for answer in ("42", "1,000", r"\{1,2\}", "x^2-1")),
    (MultipleChoiceVerifier(kind="multiple_choice"), "B"),
    (MultipleChoiceVerifier(kind="multiple_choice", marker="####"), "(D)"),
    *((JsonVerifier(kind="json", marker=m), '{"b": [1, 2.50, true], "a": "\\u00e9"}') for m in ("", "####")),
    (StructureVerifier(kind="structure"), "class A { require width(min=0.9) }"),
]


@pytest.mark.parametrize(("settings", "answer"), CASES, ids=lambda value: getattr(value, "kind", value))
def test_the_reference_answer_is_right_in_every_form_that_the_verifier_names(settings, answer):
    verifier = build_verifier(settings)
    prompt = Prompt(id="p", text="?", answer=answer, solution="")
    forms = {"as it is": verifier.wrap(answer), **verifier.equivalents(prompt)}
    assert len(forms) > 1
    assert {name: verifier.accuracy(prompt, text) for name, text in forms.items()} == dict.fromkeys(forms, 1.0)
