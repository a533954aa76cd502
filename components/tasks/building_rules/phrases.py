"""What can be required, forbidden and made a condition: as text and as meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from components.tasks.building_rules.rules import Phrase

Draw = Callable[[Random], Phrase]

OPENINGS = ("Every", "Each", "Any", "The")
SUBJECTS = (
    "corridor", "stair", "ramp", "door", "window", "bedroom", "kitchen", "balcony", "lift", "garage",
    "fire door", "escape route",
)  # fmt: skip
BOUNDS = {"at least": "min", "no less than": "min", "at most": "max", "no more than": "max"}
MEASURES = {"wide": "width", "high": "height", "long": "length", "deep": "depth"}


def dimension(rng: Random) -> Phrase:
    """A length in one of two wordings."""
    number, unit = _length(rng)
    bound, adjective = rng.choice(list(BOUNDS)), rng.choice(list(MEASURES))
    noun = MEASURES[adjective]
    words = rng.choice((f"be {bound} {number} {unit} {adjective}", f"have a {noun} of {bound} {number} {unit}"))
    return Phrase(words, noun, (f"{BOUNDS[bound]}={number}",), unit)


def fire(rng: Random) -> Phrase:
    """How long it resists fire."""
    number, unit = rng.choice(((rng.randrange(15, 100, 5), "minutes"), (rng.randint(2, 9), "hours")))
    bound = rng.choice(("at least", "no less than"))
    words = rng.choice(("resist fire for {}", "have a fire resistance of {}")).format(f"{bound} {number} {unit}")
    return Phrase(words, "fire", (f"min={number}",), unit)


def slope(rng: Random) -> Phrase:
    """How steep it may be."""
    number, unit = rng.randint(1, 45), rng.choice(("percent", "degrees"))
    bound = rng.choice(list(BOUNDS))
    return Phrase(f"have a slope of {bound} {number} {unit}", "slope", (f"{BOUNDS[bound]}={number}",), unit)


def light(rng: Random) -> Phrase:
    """How bright it must be."""
    number = rng.randrange(50, 1000, 10)
    bound = rng.choice(list(BOUNDS))
    words = rng.choice((f"have {bound} {number} lux of light", f"be lit with {bound} {number} lux"))
    return Phrase(words, "light", (f"{BOUNDS[bound]}={number}",), "lux")


def fixture(rng: Random) -> Phrase:
    """Some things, and how high they hang."""
    (number, unit), count, thing = _length(rng), rng.randint(2, 9), rng.choice(("handrail", "sign", "lamp", "alarm"))
    return Phrase(
        f"have {count} {thing}s {number} {unit} above the floor", thing, (f"count={count}", f"height={number}"), unit
    )


def ban(rng: Random) -> Phrase:
    """What must not be."""
    number, unit = _length(rng)
    return rng.choice(
        (
            Phrase("be locked", "lock"),
            Phrase("open inwards", "open", ("direction=inwards",)),
            Phrase("be used for storage", "use", ("purpose=storage",)),
            Phrase(f"have a step of more than {number} {unit}", "step", (f"over={number}",), unit),
            Phrase(f"have a gap of more than {number} {unit}", "gap", (f"over={number}",), unit),
        )
    )


def people(rng: Random) -> Phrase:
    number = rng.randrange(5, 500, 5)
    return Phrase(f"that serves more than {number} people", "people", (f"over={number}",))


def building(rng: Random) -> Phrase:
    kind = rng.choice(("hospital", "school", "hotel", "theatre"))
    return Phrase(f"in a {kind}", "building", (f"type={kind}",))


def floor(rng: Random) -> Phrase:
    number = rng.randint(1, 30)
    return Phrase(f"above floor {number}", "floor", (f"above={number}",))


def built(rng: Random) -> Phrase:
    year = rng.randint(1950, 2020)
    return Phrase(f"built before {year}", "built", (f"before={year}",))


def boundary(rng: Random) -> Phrase:
    number, unit = _length(rng)
    return Phrase(f"within {number} {unit} of a boundary", "boundary", (f"within={number}",), unit)


FAMILIES: dict[str, Draw] = {
    "dimension": dimension, "fire": fire, "slope": slope, "light": light, "fixture": fixture, "ban": ban,
}  # fmt: skip
REQUIREMENTS: Sequence[Draw] = [draw for family, draw in FAMILIES.items() if family != "ban"]
CONDITIONS: Sequence[Draw] = (people, building, floor, built, boundary)


def distinct(rng: Random, draws: Sequence[Draw], count: int, taken: Sequence[Phrase] = ()) -> list[Phrase]:
    """``count`` phrases whose calls have names of their own, also among those ``taken``."""
    found: list[Phrase] = []
    while len(found) < count:
        phrase = rng.choice(draws)(rng)
        if phrase.name not in {other.name for other in (*taken, *found)}:
            found.append(phrase)
    return found


def _length(rng: Random) -> tuple[str, str]:
    """A number and its unit: metres with one decimal place, or whole tens of millimetres."""
    if rng.random() < 0.5:
        return f"{rng.randint(1, 9)}.{rng.randint(1, 9)}", "m"
    return str(rng.randrange(100, 1000, 10)), "mm"
