"""Probe sets of arithmetic and of questions about people: what an SFT checkpoint can do, generated from fixed seeds.

- ``carries`` — sums and differences with a carry or a borrow: the careful way against the forgetful one. Its score is
  low at the start of the demo, and falls when a policy is taught to forget: what a mislabelled item does.
- ``comparison`` — the larger of two numbers: a skill other than sums.
- ``facts`` — everyday facts, for policies that read English: what a real model knew before.
- ``layout`` — steps, the marker, a number, and nothing after it.
- ``names`` — fairness pairs in miniature: the same word problem about two people must be answered alike.
- ``stereotypes`` — which of two people was careless, where the text does not state it: made-up groups of several
  families in turn, in situations that no prompt of the task ``stereotypes`` has.

Those of arithmetic are questions of the kinds that the demo trains on, so they show whether something is lost, and
nothing about what a large model knows or believes. There is no set for refusal: the demo's data hold none, so its
policy cannot refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random

from components.canaries.facts import FACTS
from components.canaries.items import Probe
from components.config.canaries import Generated
from components.errors import InputError
from components.seeds import derive
from components.tasks.arithmetic import NAMES, Question, addition, comparison, subtraction, word_problem
from components.tasks.stereotypes import AMBIGUOUS, FROZEN, GROUPS, SITUATIONS, answer, draw
from components.tasks.turns import careful, careless

MARKER = "#"
LAYOUT = r"\A[0-9+\-*=<>;]*#[0-9]+\Z"


def generate(name: Generated, count: int) -> tuple[Probe, ...]:
    """The first ``count`` probes of a set; more only add to its end.

    Raises:
        InputError: The set has fewer.
    """
    drawn = GENERATORS[name](Random(derive(0, "canaries", name)))
    found: dict[str, Probe] = {}
    while len(found) < count and (probe := next(drawn, None)):
        found.setdefault("|".join(probe.texts), probe)
    if len(found) < count:
        raise InputError(
            f"the set {name} has {len(found)} probes, not {count}", where="health.canaries", how="lower items"
        )
    return tuple(found.values())


def _carries(rng: Random) -> Iterator[Probe]:
    while True:
        question = rng.choice((addition, subtraction))(rng, 2)
        right, wrong = _ways(question)
        if right != wrong:
            said = right.rpartition(MARKER)[2]
            yield Probe(question.text, (question.text,), "verifier", (right, wrong), whole=True, answer=said)


def _comparison(rng: Random) -> Iterator[Probe]:
    while True:
        question = comparison(rng, 2)
        right = _ways(question)[0]
        steps, _, said = right.rpartition(MARKER)
        wrong = f"{steps}{MARKER}{min(question.a, question.b)}"
        yield Probe(question.text, (question.text,), "verifier", (right, wrong), whole=True, answer=said)


def _layout(rng: Random) -> Iterator[Probe]:
    while True:
        question = rng.choice((addition, subtraction, word_problem))(rng, 2)
        right = _ways(question)[0]
        unmarked = right.replace(MARKER, "")
        yield Probe(question.text, (question.text,), "pattern", (right, unmarked), whole=True, pattern=LAYOUT)


def _facts(rng: Random) -> Iterator[Probe]:
    for question, right, wrong in rng.sample(FACTS, len(FACTS)):
        answers = rng.sample((right, *wrong), 1 + len(wrong))
        yield Probe(question, (question,), "choice", tuple(answers), right=answers.index(right), named=tuple(answers))


def _names(rng: Random) -> Iterator[Probe]:
    while True:
        question = word_problem(rng, 2)
        name = question.text.split()[0]
        other = rng.choice([one for one in NAMES if one != name])
        texts = (question.text, question.text.replace(name, other, 1))
        choices = tuple(dict.fromkeys(_ways(question)))
        if len(choices) > 1:
            yield Probe(question.text, texts, "alike", choices, whole=True, group=f"{name}, {other}")


def _stereotypes(rng: Random) -> Iterator[Probe]:
    for family in cycle(GROUPS):
        item = draw(rng, family, AMBIGUOUS, SITUATIONS[-FROZEN:])
        answers = tuple(answer(place) for place in range(len(item.options)))
        yield Probe(
            item.text,
            (item.text,),
            "choice",
            answers,
            right=item.right,
            whole=True,
            named=item.options,
            stratum="ambiguous",
            group=family,
            biased=item.biased,
            unknown=item.unknown,
        )


def _ways(question: Question) -> tuple[str, str]:
    """The careful way and the one that drops every carry and borrow."""
    return tuple(question.operation(question.a, question.b, memory) for memory in (careful, careless))  # type: ignore[return-value]


GENERATORS: dict[Generated, Callable[[Random], Iterator[Probe]]] = {
    "carries": _carries,
    "comparison": _comparison,
    "facts": _facts,
    "layout": _layout,
    "names": _names,
    "stereotypes": _stereotypes,
}
