"""The records that flow between components. Importable without torch; tensors live in `components.learner.batch`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from statistics import fmean
from typing import Any, Literal

Split = Literal["sft", "train", "dev", "test"]
FinishReason = Literal["stop", "stop_token", "length"]
"""The end token, one of the other tokens that the sampling stops at, or the limit of new tokens."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One verifiable question.

    ``solution`` is the reference solution, answer included; ``demonstration`` is what the SFT teacher wrote, which may
    be wrong. ``difficulty`` is the source's own level (higher is harder), ``cluster`` is -1 until the clusters stage.
    ``reference`` is what a scorer needs besides the answer, as text; most need nothing.
    """

    id: str
    text: str
    answer: str
    solution: str
    demonstration: str = ""
    task: str = ""
    source: str = ""
    family: str = ""
    difficulty: float = 0.0
    cluster: int = -1
    reference: str = ""

    def to_dict(self) -> dict[str, Any]:
        named = {field.name: getattr(self, field.name) for field in fields(self)}  # `asdict` copies texts, slowly
        if not self.reference:
            del named["reference"]
        return named


@dataclass(frozen=True, slots=True)
class Mix:
    """A step of N-GRPO (2606.10768): what was fed on after the token at ``position`` of the response.

    The next input was the sum of the ``token_ids``' embeddings with these ``weights``, which add up to 1; the first id
    is the anchor, the token that stands in the text. It is the likeliest one and was not drawn, so a correction for the
    sampler's probabilities leaves it out.
    """

    position: int
    token_ids: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """What the policy wrote: token ids, the *sampler's own* log-probability of each (nats), and the decoded text.

    ``token_ids`` ends with the token that ended it unless ``finish_reason`` is ``length``; ``text`` leaves it out.
    ``mixes`` are in order of their positions. ``sampled`` states for each token whether the policy drew it (False for
    what a tool wrote; None means all). ``routes`` are the experts that each token took, an integer array
    ``[tokens, layers, k]``, where the policy has experts and they were recorded. ``versions`` states which hand-over of
    weights (1, 2, ...) each token was sampled under, as the engine reported it; empty where it does not say. ``server``
    is the number of the server that sampled it, -1 where none did.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    text: str
    mixes: tuple[Mix, ...] = ()
    sampled: tuple[bool, ...] | None = None
    routes: Any = field(default=None, compare=False, repr=False)
    versions: tuple[int, ...] = ()
    server: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Score:
    """What one completion is worth, or the reason why it could not be scored.

    ``accuracy`` is the verifier's raw verdict in [0, 1] and is never shaped; ``weight`` is what one unit of it adds to
    the reward. ``parts`` are the other contributions to the reward, by name, already weighted. ``metrics`` are measured
    and never rewarded. A completion that the verifier could not judge (error, timeout, refusal) has ``accuracy None``
    and a reason: it is neither right nor wrong.
    """

    accuracy: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    unscorable: str | None = None
    weight: float = 1.0
    metrics: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.accuracy is None) != (self.unscorable is not None):
            raise ValueError("a score has either an accuracy or the reason why it is unscorable")

    @property
    def rewards(self) -> dict[str, float]:
        """What each part adds to the reward, ``accuracy`` first. Undefined (an error) for an unscorable completion."""
        if self.accuracy is None:
            raise ValueError(f"an unscorable completion has no reward: {self.unscorable}")
        return {"accuracy": self.weight * self.accuracy, **self.parts}

    @property
    def reward(self) -> float:
        """Sum of the parts, accuracy included. Undefined (an error) for an unscorable completion."""
        return sum(self.rewards.values())


def mean_by_name(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every name, over the rows that have it; names in the order of their first appearance."""
    values: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: fmean(column) for name, column in values.items()}


@dataclass(frozen=True, slots=True)
class Group:
    """One prompt with its G completions and their G scores, in the same order."""

    prompt: Prompt
    prompt_ids: tuple[int, ...]
    completions: tuple[Completion, ...]
    scores: tuple[Score, ...]

    @property
    def accuracies(self) -> list[float]:
        """Raw accuracies of the scorable completions only."""
        return [score.accuracy for score in self.scores if score.accuracy is not None]

    @property
    def mean_accuracy(self) -> float | None:
        """Mean raw accuracy, or None when nothing in the group could be scored."""
        values = self.accuracies
        return sum(values) / len(values) if values else None

    @property
    def informative(self) -> bool:
        """True when the raw accuracies differ, so that the group carries a gradient."""
        return len(set(self.accuracies)) > 1


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One line of the training log: every signal of one step. Signals absent in a step are absent from the mapping."""

    step: int
    signals: Mapping[str, float]
    notes: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.step, "signals": dict(self.signals), "notes": dict(self.notes)}


Level = Literal["pass", "warn", "intervene", "rollback", "stop"]
GateResult = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one health rule says at one step, with the window of values that made it say so.

    ``clean`` is the last step that is no part of that evidence: what was then is not known to be ill.
    """

    rule: str
    level: Level
    step: int
    reason: str
    evidence: Mapping[str, list[float | None]] = field(default_factory=dict)
    clean: int = -1

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that a response changed; ``knob`` is its path in the settings."""

    knob: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Response:
    """An entry of a run's ledger: what was seen, and what was done about it.

    ``asked`` is the level that the rule requested, ``level`` what was done: a budget that is used up makes the ladder
    go further, and of several rules that fire at once only the gravest is acted upon. ``back_to`` is the step of the
    log whose state the run went back to. ``part`` is what of the run is to blame, ``found`` what a diagnosis found, and
    ``undoes`` the number of the response that this one takes back.
    """

    number: int
    step: int
    rule: str
    asked: Level
    level: Level
    reason: str
    saw: Mapping[str, list[float | None]] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    back_to: int | None = None
    quarantined: tuple[str, ...] = ()
    did: str = ""
    back_progress: int | None = None
    part: str = ""
    found: tuple[str, ...] = ()
    undoes: int | None = None

    @property
    def returns_to(self) -> int | None:
        """The step that the run went back to, in steps that the policy has behind it."""
        return self.back_to if self.back_progress is None else self.back_progress

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "response", **asdict(self)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a response: whether the run recovered, each signal then and now, and steps lost by it.

    ``recovered``: the rule holds no more, and held-out accuracy is what it was at its best. It is None where that was
    not measured before the run ended. ``below`` are the families whose held-out accuracy is measurably lower, ``all``
    for that of all prompts. ``useless``: its rule still holds, and held-out accuracy has not risen since.
    """

    of: int
    step: int
    recovered: bool | None
    signals: Mapping[str, list[float | None]] = field(default_factory=dict)
    cost_steps: int = 0
    below: tuple[str, ...] = ()
    useless: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "outcome", **asdict(self)}


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One line of the promotion gate: a result, the evidence for it and, unless it passed, what would change it."""

    name: str
    result: GateResult
    evidence: str
    how: str = ""

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        return fields if self.how else {name: value for name, value in fields.items() if name != "how"}

    @property
    def words(self) -> str:
        """All of it in one line."""
        return f"{self.name}: {self.result}: {self.evidence}" + (f"; to change that: {self.how}" if self.how else "")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the gate says of a candidate by the policy of the project.

    ``evidence`` is the digest of the stored evidence that was judged (None: the candidate has none, which fails), and
    ``base`` the number of the promotion record that the champion stood on that the candidate was compared with (0:
    there was no champion). It holds for that champion only.
    """

    result: GateResult
    checks: tuple[GateCheck, ...]
    policy_sha256: str
    evidence: str | None
    base: int

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "checks": [check.to_dict() for check in self.checks]}
