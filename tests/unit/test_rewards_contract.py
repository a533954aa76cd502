"""What the audit needs of every verifier, whatever its kind."""

from __future__ import annotations

import pytest

from components.config import reward
from components.rewards import Verifier, build_verifier
from components.types import Prompt
from tests.unit.test_rewards_verifiers import sections

SECTIONS = sections(reward.Verifier)
OWN = {
    "python": {"target": "mine:VERIFIER"},
    "classifier": {"path": "nowhere", "label": "right"},
    "environment": {"accuracy": "solved"},
}
GARBAGE = ("", "not an {answer", "\x00\u202e", "assert (", "(" * 500, "9" * 5000, "1/0")


def built(kind: str) -> Verifier:
    return build_verifier(SECTIONS[kind](kind=kind, **OWN.get(kind, {})))


@pytest.mark.parametrize("kind", SECTIONS)
def test_a_stated_answer_begins_with_the_marker_of_the_settings(kind):
    marker = getattr(SECTIONS[kind](kind=kind, **OWN.get(kind, {})), "marker", None)
    verifier = built(kind)
    assert verifier.marker == marker
    stated = verifier.wrap("forty-two")
    assert "forty-two" in stated
    assert stated.startswith(marker or "")


@pytest.mark.parametrize("kind", SECTIONS)
@pytest.mark.parametrize("answer", GARBAGE)
def test_a_reference_that_cannot_be_read_has_forms_that_are_texts_and_raises_nothing(kind, answer):
    verifier, prompt = built(kind), Prompt("p", "?", answer, "")
    forms = {**verifier.equivalents(prompt), **verifier.hacks(prompt)}
    assert all(isinstance(text, str) for text in forms.values())


@pytest.mark.parametrize("kind", ["numeric", "multiple_choice", "json", "code", "countdown", "structure"])
def test_an_unreadable_reference_has_no_equivalents(kind):
    assert built(kind).equivalents(Prompt("p", "?", "not an {answer", "")) == {}
