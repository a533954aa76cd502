"""Units of measurement, exactly but for radians. A table of our own: answers name few units, and the large libraries
evaluate expressions that they are given. Temperatures are left out, since their zeros differ."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple


class Unit(NamedTuple):
    """``name`` as it is usually written; one of it is ``factor`` of the base unit of ``dimension``."""

    name: str
    dimension: str
    factor: Fraction


_TABLE = {
    "length": "mm .001 millimeter millimetre; cm .01 centimeter centimetre; m 1 meter metre"
    ";km 1000 kilometer kilometre;in .0254 inch inches; ft .3048 foot feet; yd .9144 yard; mi 1609.344 mile",
    "mass": "mg .001 milligram; g 1 gram; kg 1000 kilogram; t 1000000 tonne; oz 28.349523125 ounce; lb 453.59237 pound",
    "time": "ms .001 millisecond; s 1 sec second; min 60 minute; h 3600 hr hour; d 86400 day; wk 604800 week",
    "area": "mm^2 .000001; cm^2 .0001; m^2 1; km^2 1000000; ha 10000 hectare; in^2 .00064516; ft^2 .09290304",
    "volume": "ml .000001 milliliter millilitre; cl .00001; dl .0001; l .001 liter litre; mm^3 .000000001; cm^3 .000001"
    ";m^3 1; in^3 .000016387064; ft^3 .028316846592",
    "speed": "m/s 1; km/h 5/18 kmh kph; mph .44704 mi/h; ft/s .3048",
    "money": "dollar 1 usd $; cent .01 ¢",
    "euros": "euro 1 eur €",
    "sterling": "gbp 1 £",
    "angle": "degree 1 deg °; radian 57.295779513082320876798154814105 rad",
    "energy": "j 1 joule; kj 1000 kilojoule; mj .001 millijoule; cal 4.184 calorie; kcal 4184 kilocalorie; kwh 3600000",
    "power": "w 1 watt; kw 1000 kilowatt; mw .001 milliwatt",
}
_CASED = {
    "MW": Unit("MW", "power", Fraction(10**6)),
    "MJ": Unit("MJ", "energy", Fraction(10**6)),
    "Mg": Unit("Mg", "mass", Fraction(10**6)),
}
"""What is another unit in small letters."""
_NAME = r"[A-Za-z]+|[¢$€£]|°(?!\s?[A-Za-z])"
_WORD = re.compile(
    rf"[\s-]*(?:(?P<before>(?i:square|sq\.?|cubic|cu\.?))\s+)?(?P<unit>{_NAME})"
    r"(?P<power>\s?\^\s?\{?[+-]?[0-9]+\}?|[0-9]+|[⁰¹²³⁴-⁹⁻]+)?(?:\s+(?P<after>squared|cubed)\b)?"
    rf"(?:\s?(?:/|\bper\b|\ban?\s+(?=hour|minute|second|day))\s?(?P<below>{_NAME}))?(?P<rest>\s?[/^]\s?\{{?[\w+-]+)?"
)
_POWERS = {"square": "2", "sq": "2", "squared": "2", "cubic": "3", "cu": "3", "cubed": "3", "²": "2", "³": "3"}
_DRESS = re.compile(r"\\(?:text|mathrm|rm|operatorname)\s*\{\s*([^{}]{0,40})\}|\\[ ,;!]|~")
READ = 60
"""Characters after a number in which its unit is looked for."""


def _units() -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    for dimension, rows in _TABLE.items():
        for row in rows.split(";"):
            name, factor, *aliases = row.split()
            unit = Unit(name, dimension, Fraction(factor))
            plurals = [f"{alias}s" for alias in (name, *aliases) if alias.isalpha()]
            found |= dict.fromkeys([*plurals, name, *aliases], unit)
    return found | {name: found[name] for name in ("m", "s", "ms")}  # no plural of another unit


UNITS: dict[str, Unit] = _units()


def unit_after(text: str) -> Unit | None:
    """The unit with which ``text`` begins, LaTeX dress allowed, or None. A sentence may go on after it.

    ``square m``, ``m squared``, ``m^{2}``, ``miles per hour``. What is made of a known unit and is none of the table
    (``cm^4``, ``dollars per hour``) is a unit and a dimension of its own.
    """
    plain = _DRESS.sub(lambda found: found[1] or " ", text[:READ]).lstrip(" {}")
    match = _WORD.match(plain)
    if match is None:
        return None
    unit = known_unit(match["unit"])
    if unit is None or (match["unit"] == "in" and re.match(r"\s*in\s+\w", plain)):
        return None  # "12 in all": no inches
    power = (match["before"] or match["after"] or match["power"] or "1").strip("^{}. +").casefold()
    power = _POWERS.get(power, power)
    name = unit.name if power == "1" else f"{unit.name}^{power}"
    if match["below"]:
        below = known_unit(match["below"])
        name = f"{name}/{below.name if below else match['below'].casefold()}"
    name += re.sub(r"[\s{]", "", match["rest"] or "")
    return unit if name == unit.name else UNITS.get(name, Unit(name, name, Fraction(1)))


def known_unit(word: str) -> Unit | None:
    """The unit of this name, or None."""
    return _CASED.get(word) or UNITS.get(word.casefold())


def contradictory(one: Unit | None, two: Unit | None) -> bool:
    """Both are units of one dimension, but not the same: centimetres and metres."""
    return one is not None and two is not None and one.dimension == two.dimension and one.factor != two.factor
