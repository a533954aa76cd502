"""Pairs of a checkpoint and a task: the real model before and after SFT, problems of reasoning-gym.

Pairs with an even number are those that the rule was chosen on; it is reported on the others.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.benchmarks.section import Row


class Pair(NamedTuple):
    """A task, SFT steps on the mixture before it (0: the model as it is), and the steps of training."""

    task: str
    sft: int
    steps: int = 14


TASKS: dict[str, Row] = {
    "product": {"products": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}}},
    "product_long": {"products": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 2, "max_digits": 3}}},
    "sum": {"chain_sum": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}}},
    "sum_two_digits": {"chain_sum": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 2, "max_digits": 2}}},
    "sum_long": {"chain_sum": {"settings": {"min_terms": 3, "max_terms": 4, "min_digits": 3, "max_digits": 4}}},
    "backward": {"spell_backward": {"settings": {"min_word_len": 3, "max_word_len": 4}}},
    "backward_long": {"spell_backward": {"settings": {"min_word_len": 7, "max_word_len": 10}}},
    "divisor": {"gcd": {"settings": {"min_value": 1, "max_value": 30, "min_numbers": 2, "max_numbers": 2}}},
    "letters": {"letter_counting": {"settings": {"min_words": 3, "max_words": 5}}},
    "legs": {"leg_counting": {"settings": {"min_animals": 1, "max_animals": 2, "max_instances": 4}}},
    "equation": {"simple_equations": {"settings": {"min_value": 1, "max_value": 9}}},
    "courses": {"course_schedule": {"settings": {"min_num_courses": 3, "max_num_courses": 4}}},
}
SFT_ON = ("product", "sum", "backward", "divisor", "letters", "legs")
"""Tasks of the mixture that the SFT steps are made on."""
PAIRS = (
    Pair("courses", 0), Pair("product", 0), Pair("sum", 0), Pair("letters", 0),
    Pair("product", 8), Pair("sum", 8), Pair("sum_two_digits", 8), Pair("backward", 8),
    Pair("divisor", 8), Pair("letters", 8), Pair("sum_long", 8), Pair("legs", 8),
    Pair("product", 32), Pair("sum_two_digits", 32), Pair("backward", 32), Pair("divisor", 32),
    Pair("sum", 32), Pair("product_long", 32), Pair("equation", 32), Pair("backward_long", 32),
)  # fmt: skip
