"""Reach a target from some numbers, each used at most once: a task of search, and a teacher who gives up too early.

Chains of operations over the numbers lead to the target, or miss it. No result on the way is below 1 or has a fraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import add, floordiv, mul, sub
from random import Random

from components.config.tasks import CountdownSource
from components.seeds import derive
from components.tasks.turns import fresh, prompt_of, spread
from components.types import Prompt

OPERATORS: dict[str, str] = {"sums": "+-", "mixed": "+-*/"}
"""Family -> what its targets are made with. An answer may use all four."""
OPERATIONS: dict[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul, "/": floordiv}
LARGEST_NUMBER, LARGEST_RESULT = 40, 999
WRONG_BRANCHES = 2
TRIES = 8
"""Chains that are drawn in search of one that misses the target."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A start, then operations one after the other."""

    start: int
    steps: tuple[tuple[str, int], ...]

    @property
    def results(self) -> tuple[int, ...]:
        """The start and the value after every step."""
        values = [self.start]
        for step in self.steps:
            values.append(after(values[-1], *step))
        return tuple(values)

    @property
    def value(self) -> int:
        return self.results[-1]

    @property
    def expression(self) -> str:
        """``(8+3)*2``"""
        text = str(self.start)
        for place, (operator, number) in enumerate(self.steps):
            text = f"({text}){operator}{number}" if place else f"{text}{operator}{number}"
        return text

    @property
    def working(self) -> str:
        """``8+3=11,11*2=22``"""
        pairs = zip(self.results, self.steps, strict=False)
        return ",".join(f"{value}{op}{number}={after(value, op, number)}" for value, (op, number) in pairs)


@dataclass(frozen=True, slots=True)
class Problem:
    """A question, a chain that reaches its target, and others over the same numbers that do not."""

    text: str
    right: Chain
    wrong: tuple[Chain, ...]


def draw(rng: Random, family: str, level: int) -> Problem:
    """A problem of ``level`` + 1 numbers, with at most `WRONG_BRANCHES` wrong chains."""
    numbers = rng.sample(range(1, LARGEST_NUMBER + 1), level + 1)
    right = chain(rng, numbers, OPERATORS[family])
    missing = [chain(rng, numbers, OPERATORS[family]) for _ in range(TRIES)]
    wrong = dict.fromkeys(other for other in missing if other.value != right.value)
    # In order, so that no question stands in two splits with its numbers the other way round.
    text = f"[{', '.join(map(str, sorted(numbers)))}] = {right.value}"
    return Problem(text, right, tuple(wrong)[: rng.randint(0, WRONG_BRANCHES)])


def chain(rng: Random, numbers: list[int], operators: str) -> Chain:
    """A random chain over all of the numbers."""
    first, *others = rng.sample(numbers, len(numbers))
    # The larger one first: the smaller one minus it would be below 1, and a sum or product is the same.
    value = start = max(first, others[0])
    others[0] = min(first, others[0])
    steps = []
    for number in others:
        operator = rng.choice([o for o in operators if allowed(value, o, number)])
        value = after(value, operator, number)
        steps.append((operator, number))
    return Chain(start, tuple(steps))


def allowed(value: int, operator: str, number: int) -> bool:
    """Whether a step leaves a whole number from 1 to `LARGEST_RESULT`, and changes anything.

    Values stay so small that a sum is allowed after every step: a product leaves room for the numbers to come.
    """
    if operator == "+":
        return True
    if operator == "-":
        return value > number
    if operator == "*":
        return number > 1 and value * number <= LARGEST_RESULT - 4 * LARGEST_NUMBER
    return number > 1 and value % number == 0


def after(value: int, operator: str, number: int) -> int:
    """The result of one step."""
    return OPERATIONS[operator](value, number)


def generate(source: CountdownSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    More rows extend the list at its end; another ``give_up`` changes demonstrations only.

    Raises:
        InputError: so many distinct problems do not exist.
    """
    seen: set[str] = set()  # of all families: a target can be reached by sums and by products
    return spread(source, lambda family, level, _: _level(source, seed, family, level, seen))


def search(problem: Problem) -> str:
    """``8+3=11,11-2=9x;8+3=11,11*2=22#(8+3)*2``: branches that miss the target, the one that does not, the answer."""
    branches = [f"{wrong.working}x" for wrong in problem.wrong]
    return f"{';'.join([*branches, problem.right.working])}#{problem.right.expression}"


def surrender(problem: Problem) -> str:
    """``8+3=11,11-2=9x#(8+3)-2``: the first branch that misses the target is the answer all the same."""
    first = problem.wrong[0]
    return f"{first.working}x#{first.expression}"


def _level(source: CountdownSource, seed: int, family: str, level: int, seen: set[str]) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    rng = Random(derive(seed, source.task, family, level))
    patience = Random(derive(seed, source.task, family, level, "teacher"))
    for problem in fresh(lambda: draw(rng, family, level), lambda problem: problem.text, seen):
        gives_up = patience.random() < source.give_up
        solution = search(problem)
        taught = surrender(problem) if gives_up and problem.wrong else solution
        yield prompt_of(source, family, level, text=problem.text, solution=solution, demonstration=taught)
