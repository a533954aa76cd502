"""Labels that the base policy never gives although it nearly always gives another answer: mislabelled, or planted.

RL would reward exactly the completions that the policy knows to be wrong, so a person looks at these prompts first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from components.config.admission import AdmissionSettings
from components.config.verifiers import Verifier
from components.evaluation.answers import final_answer
from components.types import Group


@dataclass(frozen=True, slots=True)
class LabelEvidence:
    """What ``samples`` scorable completions of the base policy say about one label."""

    label: str
    label_rate: float
    alternative: str
    alternative_rate: float
    samples: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def words(self) -> str:
        return (
            f"the label {self.label!r} has {self.label_rate:.1%} of {self.samples} samples of the base policy, "
            f"{self.alternative!r} has {self.alternative_rate:.1%}"
        )


def suspicious_labels(
    groups: Sequence[Group], limits: AdmissionSettings, verifier: Verifier
) -> dict[str, LabelEvidence]:
    """Prompt id -> evidence, for labels below one rate with an alternative above the other."""
    found = {group.prompt.id: evidence(group, verifier) for group in groups}
    return {
        name: one
        for name, one in found.items()
        if one and one.label_rate < limits.max_label_rate and one.alternative_rate > limits.min_alternative_rate
    }


def undecided(group: Group, samples: int, limits: AdmissionSettings, verifier: Verifier) -> bool:
    """Whether the label could still be suspicious after ``samples`` completions, whatever the missing ones say."""
    missing = samples - len(group.completions)
    found = evidence(group, verifier)
    scored, label, other = (found.samples, found.label_rate, found.alternative_rate) if found else (0, 0.0, 0.0)
    most = scored + missing
    return (
        most > 0
        and label * scored / most < limits.max_label_rate
        and (other * scored + missing) / most > limits.min_alternative_rate
    )


def evidence(group: Group, verifier: Verifier) -> LabelEvidence | None:
    """Rates of the label and of the most frequent other answer; None when nothing could be scored."""
    scored = [
        (c.text, s.accuracy) for c, s in zip(group.completions, group.scores, strict=True) if s.accuracy is not None
    ]
    if not scored:
        return None
    right = sum(accuracy == 1 for _, accuracy in scored)
    others = Counter(answer for text, accuracy in scored if accuracy < 1 and (answer := final_answer(text, verifier)))
    alternative, count = others.most_common(1)[0] if others else ("", 0)
    return LabelEvidence(group.prompt.answer, right / len(scored), alternative, count / len(scored), len(scored))
