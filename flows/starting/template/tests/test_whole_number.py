from extensions.whole_number import WholeNumber

from components.types import Prompt


def test_the_whole_number_after_the_marker_is_the_answer() -> None:
    verifier, prompt = WholeNumber("#"), Prompt("p1", "What is 12 + 30?", "42", "30 + 12 = 42")
    assert verifier.accuracy(prompt, "12 + 30 = 42\n# 42") == 1.0
    assert verifier.accuracy(prompt, "# 41") == 0.0
    assert verifier.accuracy(prompt, "42") == 0.0


def test_an_answer_that_holds_the_number_among_others_is_wrong() -> None:
    verifier, prompt = WholeNumber("#"), Prompt("p1", "What is 12 + 30?", "42", "30 + 12 = 42")
    assert verifier.accuracy(prompt, "# 41 or 42") == 0.0
