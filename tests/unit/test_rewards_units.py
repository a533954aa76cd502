"""Numbers with units and per cent, and digits that only look like digits."""

from __future__ import annotations

from fractions import Fraction

import pytest

from components.rewards.numeric import NumericVerifier, numbers
from components.rewards.units import UNITS, unit_after
from components.types import Prompt


def verdict(reference: str, answer: str, **options: str) -> bool:
    verifier = NumericVerifier("####", 1e-6, **options)
    return verifier.accuracy(Prompt("p", "?", reference, ""), f"#### {answer}") == 1.0


@pytest.mark.parametrize(
    ("reference", "answer", "strip", "require", "convert"),
    [
        ("12 km", "12 km", True, True, True),
        ("12 km", "12 kilometers.", True, True, True),
        ("12 km", r"12\,\text{km}", True, True, True),
        ("12 km", "12,000 m", False, False, True),
        ("12 km", "12 m", True, False, False),
        ("12 km", "12", True, False, False),
        ("12 km", "12 kg", True, False, False),
        ("12", "12 km", True, False, False),
        ("12", "12 apples", True, True, True),
        ("12", "12 in all", True, True, True),
        ("12 in", "1 foot", False, False, True),
        ("90 minutes", "1.5 hours", False, False, True),
        ("1.5 hours", "90 min", False, False, True),
        ("2 m^2", "20000 cm²", False, False, True),
        ("2 m^2", "2 m", True, False, False),
        ("1 L", "1000 mL", False, False, True),
        ("1 L", "1000 cm^3", False, False, True),
        ("36 km/h", "10 m/s", False, False, True),
        ("3 dollars", "300 cents", False, False, True),
        ("1 mile", "1.609344 km", False, False, True),
        ("60 miles", "60 miles per hour", True, False, False),
        ("60 mph", "60 miles per hour", True, True, True),
        ("60 mph", "60 miles/hour", True, True, True),
        ("5 m", "5 m per second", True, False, False),
        ("5 m/s", "5 meters per second", True, True, True),
        ("5 m/s", "5 m/s^2", True, False, False),
        ("5 m/s^2", "5 m/s^{2}", True, True, True),
        ("5 m/s^2", "5 m/s^3", True, False, False),
        ("9 dollars per hour", "$9 an hour", True, True, True),
        ("9 dollars", "$9 per hour", True, False, False),
        ("5 cm", "5 cm^{2}", True, False, False),
        ("5 cm", "5 cm^4", True, False, False),
        ("5 cm^2", "5 cm^{2}", True, True, True),
        ("5 MW", "5 mw", True, False, False),
        ("5 MW", "5000 kW", False, False, True),
        ("5 dollars", "$5", True, True, True),
        ("$5", "5 dollars", True, True, True),
        ("$5", "5 euros", True, False, False),
        ("$5 million", "5,000,000 dollars", True, True, True),
        ("20 m^2", "20 square meters", True, True, True),
        ("20 m^3", "20 cubic metres", True, True, True),
        ("20 m^2", "20 meters squared", True, True, True),
        ("20 m", "20 square meters", True, False, False),
        ("20 m^2", r"$20\,\text{m}^2$", True, True, True),
        ("20 m", r"20\text{ m}^2", True, False, False),
        ("20", "$20$", True, True, True),
        ("12 km", "12 km 5 minutes later", False, False, False),
    ],
)
def test_units_are_ignored_required_or_converted(reference, answer, strip, require, convert):
    found = {units: verdict(reference, answer, units=units) for units in ("strip", "require", "convert")}
    assert found == {"strip": strip, "require": require, "convert": convert}


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
    "text",
    ["４２", "٤٢", "𝟒𝟐", "4２", "４2", "4\u200b2", "\u202e42", "42\u200f", "4\x002", "1.5\u2060", "42\ufeff"],
)
def test_look_alikes_and_invisible_characters_make_no_number(text):
    assert numbers(text) == []


def test_a_number_too_long_to_be_read_equals_nothing_and_hides_none_after_it():
    long = "1" * 100_000
    assert not verdict("1", long)
    assert not verdict("42", f"{long} 42")
