"""What holds in every step of a sound run, whatever its data: checked exactly, from the first step on.

No check has a threshold, so noise raises no alarm: one that fails names the part of the run that is broken. A new one
is a function of `Facts` and one entry in `INVARIANTS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from components.config.judgement import Part
from components.health.sampling_rules import EXACT, Facts, ends, group_sizes, logprobs, the_server
from components.types import StepRecord

SLACK = 0.05
"""Share by which an update may be larger than AdamW's bound: sums of single precision, and epsilon."""


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold: the part of the run that it blames, what was found, and where one server alone
    shows it, its number."""

    name: str
    part: Part
    found: str
    server: int = -1


Check = Callable[[Facts], str | None]


def broken(facts: Facts) -> list[Broken]:
    """The invariants that do not hold in this step."""
    found = ((name, part, check(facts)) for name, (part, check) in INVARIANTS.items())
    return [
        Broken(name, part, text, the_server(facts) if name == ends.__name__ else -1)
        for name, part, text in found
        if text is not None
    ]


def broken_signals(found: Sequence[Broken]) -> dict[str, float]:
    """``broken_<part>``: how many invariants of each part do not hold."""
    parts = dict.fromkeys((part for part, _ in INVARIANTS.values()), 0.0)
    for one in found:
        parts[one.part] += 1
    return {f"broken_{part}": count for part, count in parts.items()}


def with_broken(record: StepRecord, found: Sequence[Broken]) -> StepRecord:
    """The record with what was found in its notes, for the report; unchanged where all holds."""
    notes = {"broken": [asdict(one) for one in found]} if found else {}
    return replace(record, notes={**record.notes, **notes})


def learning_rate(facts: Facts) -> str | None:
    """That of the settings, or during warm-up its share of a whole number of updates."""
    settings, rate = facts.settings.learner, facts.signals.get("lr")
    none_made = rate == 0 and bool(facts.signals.get("updates_skipped"))
    if rate is None or none_made or _same(rate, settings.lr):
        return None
    updates = rate / settings.lr * max(1, settings.warmup)
    if 0.5 < updates < settings.warmup and abs(updates - round(updates)) < EXACT * settings.warmup:
        return None
    return f"the learning rate is {rate:.6g}; learner.lr is {settings.lr:.6g}"


def coefficients(facts: Facts) -> str | None:
    """Weights of the KL term and of the entropy bonus: those of the settings, where they follow no measurement."""
    kl, bonus = facts.settings.objective.kl, facts.settings.objective.entropy
    fixed: dict[str, float] = {}
    if kl is not None and getattr(kl, "target", None) is None:
        fixed["kl_beta"] = kl.beta
    if bonus is not None and bonus.target is None:
        fixed["entropy_coef"] = bonus.coef
    return _otherwise(facts, fixed)


def in_force(facts: Facts) -> str | None:
    """The learner works with the settings that the run gave it, all of them."""
    if facts.in_force is None or facts.in_force[0] == facts.in_force[1]:
        return None
    return "the learner works with other settings than those of the run"


def optimizer_settings(facts: Facts) -> str | None:
    """Clipping, momentum and weight decay that were applied are those of the settings."""
    how = facts.settings.learner
    expected = {
        "grad_clip": how.grad_clip,
        "beta_first": how.betas[0],
        "beta_second": how.betas[1],
        "weight_decay": how.weight_decay,
    }
    return _otherwise(facts, expected)


def _otherwise(facts: Facts, expected: Mapping[str, float]) -> str | None:
    """The first signal that is known and is not what the settings say."""
    for name, value in expected.items():
        found = facts.signals.get(name)
        if found is not None and not _same(found, value):
            return f"{name} is {found:.6g}; the settings say {value:.6g}"
    return None


def prompts(facts: Facts) -> str | None:
    """Every prompt that is trained on is one of the training split, word for word, with its answer."""
    wrong = [g.prompt.id for g in facts.trained if facts.prompts and facts.prompts.get(g.prompt.id) != g.prompt]
    return None if not wrong else f"{len(wrong)} prompts are not as in the training split, the first is {wrong[0]}"


def verdicts(facts: Facts) -> str | None:
    """The verifier gives the same completion the same verdict."""
    differ = [one for one in facts.rejudged if one[1] != one[2]]
    if not differ:
        return None
    prompt, then, now = differ[0]
    judged = len(facts.rejudged)
    return f"{len(differ)} of {judged} completions judged again; one of prompt {prompt} had {then:g} and has {now:g}"


def advantages(facts: Facts) -> str | None:
    """Advantages have the sign of reward minus baseline, in every family."""
    wrong = [family or "the prompts" for family, value in facts.agreement.items() if value < -EXACT]
    return None if not wrong else f"advantages have the sign opposite to the rewards in {', '.join(wrong)}"


def _none_of(signal: str, found: str) -> Check:
    """A signal that counts what must not be is 0."""
    return lambda facts: found.format(count) if (count := facts.signals.get(signal)) else None


drawn = _none_of("schedule_differ", "{:g} prompts of the step are not those that the schedule draws")
weights_kept = _none_of("weights_moved", "{:g} tensors of the policy were changed between two updates")
optimizer_steps = _none_of("optimizer_lag", "the moments of the optimizer lack {:g} of the learner's updates")


def update_size(facts: Facts) -> str | None:
    """An update changes no weight by more than AdamW can."""
    largest = facts.signals.get("update_largest")
    most = largest_step(facts.settings.learner.betas)
    if largest is None or largest <= most * (1 + SLACK):
        return None
    return f"a weight was changed by {largest:.3g} times the learning rate; AdamW can by {most:.3g}"


def largest_step(betas: tuple[float, float]) -> float:
    """The most by which AdamW changes a weight, as a multiple of the learning rate, weight decay apart.

    By Cauchy and Schwarz, over all histories of gradients (1412.6980 has it for two special ones); infinite where the
    second moment forgets faster than the square of the first.
    """
    first, second = betas
    if first**2 >= second:
        return math.inf
    return max(1.0, (1 - first) / math.sqrt((1 - second) * (1 - first**2 / second)))


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=EXACT)


INVARIANTS: dict[str, tuple[Part, Check]] = {
    "learning_rate": ("settings", learning_rate),
    "coefficients": ("settings", coefficients),
    "in_force": ("settings", in_force),
    "optimizer_settings": ("settings", optimizer_settings),
    "ends": ("sampler", ends),
    "logprobs": ("sampler", logprobs),
    "group_sizes": ("sampler", group_sizes),
    "prompts": ("data", prompts),
    "drawn": ("schedule", drawn),
    "verdicts": ("verifier", verdicts),
    "advantages": ("learner", advantages),
    "weights_kept": ("learner", weights_kept),
    "update_size": ("learner", update_size),
    "optimizer_steps": ("learner", optimizer_steps),
}
"""Name -> the part of a run that is broken where it does not hold, and the check."""
