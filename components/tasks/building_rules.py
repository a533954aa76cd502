"""Sentences of building regulations and the structured expressions that say the same.

"Every corridor that serves more than 50 people must be at least 1.2 m wide." is
``class Corridor { if people(over=50) require width(min=1.2, unit=m) }``, a skeleton in the language of
`components.rewards.structure`. The expression can be written from memory: a forgetful writer leaves out conditions and
units, and gets everything else right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

from components.config.tasks import BuildingRulesSource
from components.seeds import derive
from components.tasks.turns import Forget, careful, fresh, prompt_of, spread
from components.types import Prompt

Verb = Literal["require", "forbid"]

AUXILIARY: dict[Verb, str] = {"require": "must", "forbid": "must not"}
OPENINGS = ("Every", "Each", "Any", "The")
SUBJECTS = (
    "corridor", "stair", "ramp", "door", "window", "bedroom", "kitchen", "balcony", "lift", "garage",
    "fire door", "escape route",
)  # fmt: skip
BOUNDS = {"at least": "min", "no less than": "min", "at most": "max", "no more than": "max"}
MEASURES = {"wide": "width", "high": "height", "long": "length", "deep": "depth"}
SIZES = {1: (0, 1), 2: (1, 1), 3: (1, 2), 4: (2, 2)}
"""Level -> numbers of conditions and of requirements."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Some words and what they mean: a call with its parameters, and the unit of its number where it has one."""

    words: str
    name: str
    parameters: tuple[str, ...] = ()
    unit: str = ""

    def call(self, forget: Forget) -> str:
        """``width(min=1.2, unit=m)``, or without its unit."""
        unit = (f"unit={self.unit}",) if self.unit and not forget() else ()
        return f"{self.name}({', '.join((*self.parameters, *unit))})"


@dataclass(frozen=True, slots=True)
class Rule:
    """What is required or forbidden of a subject, and under which conditions."""

    opening: str
    subject: str
    conditions: Sequence[Phrase]
    verb: Verb
    requirements: Sequence[Phrase]

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        subject = " ".join((self.opening, self.subject, *(phrase.words for phrase in self.conditions)))
        auxiliary = AUXILIARY[self.verb]
        return f"{subject} {auxiliary} {f' and {auxiliary} '.join(phrase.words for phrase in self.requirements)}."

    def expression(self, forget: Forget) -> str:
        """The rule as a skeleton, as the writer remembers it; a memory is called at every condition and unit."""
        conditions = [phrase.call(forget) for phrase in self.conditions if not forget()]
        condition = f"if {' and '.join(conditions)} " if conditions else ""
        requirements = " and ".join(phrase.call(forget) for phrase in self.requirements)
        return f"class {self.subject.title().replace(' ', '')} {{ {condition}{self.verb} {requirements} }}"


Draw = Callable[[Random], Phrase]


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


def generate(source: BuildingRulesSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    More rows extend the list at its end; another ``forget`` changes demonstrations only.

    Raises:
        InputError: so many distinct rules do not exist.
    """
    return spread(source, partial(_level, source, seed))


def draw(rng: Random, family: str, level: int) -> Rule:
    """A rule whose first requirement is of the family. A ban has a condition at every level."""
    conditions, requirements = SIZES[level]
    first = FAMILIES[family](rng)
    ban = family == "ban"
    others = distinct(rng, [FAMILIES["ban"]] if ban else REQUIREMENTS, requirements - 1, [first])
    return Rule(
        opening=rng.choice(OPENINGS),
        subject=rng.choice(SUBJECTS),
        conditions=distinct(rng, CONDITIONS, max(1, conditions) if ban else conditions),
        verb="forbid" if ban else "require",
        requirements=[first, *others],
    )


def _level(source: BuildingRulesSource, seed: int, family: str, level: int, seen: set[str]) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    rng = Random(derive(seed, source.task, family, level))
    memory = Random(derive(seed, source.task, family, level, "teacher"))
    for rule in fresh(lambda: draw(rng, family, level), lambda rule: rule.sentence, seen):
        expression = rule.expression(careful)
        taught = rule.expression(lambda: memory.random() < source.forget)
        yield prompt_of(source, family, level, text=rule.sentence, solution=expression, demonstration=taught)
