"""Numbers with units and per cent, and digits that only look like digits."""

from __future__ import annotations

from fractions import Fraction

import pytest

from components.rewards.numeric import NumericVerifier
from components.rewards.units import UNITS, unit_after
from components.types import Prompt


def verdict(reference: str, answer: str, **options: str) -> bool:
    verifier = NumericVerifier("####", 1e-6, **options)
    return verifier.accuracy(Prompt("p", "?", reference, ""), f"#### {answer}") == 1.0


SAME = [
    ("12 km", "12 km"), ("12 km", "12 kilometers."), ("12 km", r"12\,\text{km}"), ("12", "12 apples"),
    ("12", "12 in all"), ("60 mph", "60 miles per hour"), ("60 mph", "60 miles/hour"),
    ("5 m/s", "5 meters per second"), ("5 m/s^2", "5 m/s^{2}"), ("9 dollars per hour", "$9 an hour"),
    ("5 cm^2", "5 cm^{2}"), ("5 dollars", "$5"), ("$5", "5 dollars"), ("$5 million", "5,000,000 dollars"),
    ("20 m^2", "20 square meters"), ("20 m^3", "20 cubic metres"), ("20 m^2", "20 meters squared"),
    ("20 m^2", r"$20\,\text{m}^2$"), ("20", "$20$"),
]  # fmt: skip
CONVERTED = [
    ("12 km", "12,000 m"), ("12 in", "1 foot"), ("90 minutes", "1.5 hours"), ("1.5 hours", "90 min"),
    ("2 m^2", "20000 cm²"), ("1 L", "1000 mL"), ("1 L", "1000 cm^3"), ("36 km/h", "10 m/s"),
    ("3 dollars", "300 cents"), ("1 mile", "1.609344 km"), ("5 MW", "5000 kW"),
]  # fmt: skip
STRIPPED = [
    ("12 km", "12 m"), ("12 km", "12"), ("12 km", "12 kg"), ("12", "12 km"), ("2 m^2", "2 m"),
    ("60 miles", "60 miles per hour"), ("5 m", "5 m per second"), ("5 m/s", "5 m/s^2"), ("5 m/s^2", "5 m/s^3"),
    ("9 dollars", "$9 per hour"), ("5 cm", "5 cm^{2}"), ("5 cm", "5 cm^4"), ("5 MW", "5 mw"), ("$5", "5 euros"),
    ("20 m", "20 square meters"), ("20 m", r"20\text{ m}^2"),
]  # fmt: skip
OTHER = [("12 km", "12 km 5 minutes later")]


@pytest.mark.parametrize(
    ("cases", "right"),
    [(SAME, {"strip", "require", "convert"}), (CONVERTED, {"convert"}), (STRIPPED, {"strip"}), (OTHER, set())],
    ids=["same", "converted", "stripped", "other"],
)
def test_units_are_ignored_required_or_converted(cases, right):
    for units in ("strip", "require", "convert"):
        assert {case: verdict(*case, units=units) for case in cases} == dict.fromkeys(cases, units in right)


@pytest.mark.parametrize(
    ("reference", "answer", "strip", "fraction"),
    [
        ("50", "50%", True, False),
        ("0.5", "50%", False, True),
        ("1/2", r"50\%", False, True),
        ("50%", "50 percent", True, True),
        ("50%", "0.5", False, True),
        ("50%", "50", True, False),
    ],
)
def test_per_cent_is_decoration_or_a_hundredth(reference, answer, strip, fraction):
    assert verdict(reference, answer) == strip
    assert verdict(reference, answer, percent="fraction") == fraction


@pytest.mark.parametrize(
    ("text", "name"),
    [("ms later", "ms"), ("metres", "m"), ("s", "s"), ("FEET", "ft"), ("mph", "mph"), ("m2", "m^2"), ("apples", None)],
)
def test_a_unit_is_read_at_the_start_of_what_follows(text, name):
    found = unit_after(f" {text}")
    assert (found and found.name) == name


def test_factors_are_exact_and_a_name_has_one_meaning():
    assert UNITS["mile"].factor == Fraction("1609.344")
    assert UNITS["kmh"].factor * 36 == 10
    assert {UNITS[name].dimension for name in ("m", "s", "ms", "h", "t")} == {"length", "time", "mass"}


@pytest.mark.parametrize(
    "text", ["４２", "٤٢", "𝟒𝟐", "4２", "４2", "4\u200b2", "\u202e42", "42\u200f", "4\x002", "42\ufeff"]
)
def test_look_alikes_and_invisible_characters_make_no_number(text):
    assert not verdict("42", text)


def test_a_number_too_long_to_be_read_equals_nothing_and_hides_none_after_it():
    long = "1" * 100_000
    assert not verdict("1", long)
    assert not verdict("42", f"{long} 42")
