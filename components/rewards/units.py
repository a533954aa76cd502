"""Units of measurement, exactly. A table of our own: answers name few units, and the large libraries evaluate
expressions that they are given. Temperatures are left out, since their zeros differ."""

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
    "money": "dollar 1 usd; cent .01 ¢",
    "angle": "degree 1 deg °",
    "energy": "j 1 joule; kj 1000 kilojoule; cal 4.184 calorie; kcal 4184 kilocalorie; kwh 3600000",
    "power": "w 1 watt; kw 1000 kilowatt",
}
_WORD = re.compile(r"[\s-]?(?P<unit>[A-Za-z¢°]+(?:/[A-Za-z]+)?(?:\^?[23]|[²³])?)(?![A-Za-z0-9])")
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
    """The unit with which ``text`` begins, LaTeX dress allowed, or None. A sentence may go on after it."""
    plain = _DRESS.sub(lambda found: found[1] or " ", text[:READ]).lstrip(" {}")
    match = _WORD.match(f" {plain}")
    if match is None:
        return None
    word = match["unit"].replace("²", "^2").replace("³", "^3").casefold()
    word = re.sub(r"(?<=[a-z])([23])$", r"^\1", word)
    if word == "in" and re.match(r"\s+\w", plain[2:]):
        return None  # "12 in all": no inches
    return UNITS.get(word)
