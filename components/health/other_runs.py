"""A run of another trainer, judged step after step, its reward by its own best stretch; what has been said is not said
again while it goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from components.config.judgement import RuleSettings
from components.health.monitor import Monitor
from components.health.rules import LARGEST
from components.health.sequential import BETS, Count, detect, evidence
from components.types import StepRecord, Verdict

REST = 50
"""Logged steps in a row in which a rule has not held, after which it may fire again."""
FALL, LOST = "reward_fall", "reward_lost"
SHORTEST, WIDEST = 3, 50
"""Steps of a stretch, at least and at most."""
LEVEL = 5
"""Latest steps whose median is the present level."""
BARS = ((0.1, 0.7), (0.25, 0.55), (0.5, 0.35))
"""A quantile of the best stretch, and the share of steps that are at or above it if the run is no worse."""


class OtherRun:
    """A monitor whose rules fire once: a condition that comes and goes is one verdict. Rules that have ``fired``
    before the first step have their rest to come.

    Raises:
        InputError: a rule is malformed.
    """

    def __init__(self, rules: Mapping[str, RuleSettings], fired: Iterable[str] = ()) -> None:
        self._monitor = Monitor(rules)
        self._seen = 0
        self._held = dict.fromkeys(fired, 0)  # by rule that has fired: the last step, counted, on which it held

    def observe(self, record: StepRecord) -> list[Verdict]:
        """Take one step in and return what is new.

        Raises:
            ValueError: the record is not later than the one before.
        """
        verdicts = self._monitor.observe(record)
        self._seen += 1
        new = [one for one in verdicts if self._seen - self._held.get(one.rule, -REST) > REST]
        fired = self._held.keys() | {one.rule for one in verdicts}
        self._held |= {rule: self._seen for rule, length in self._monitor.metrics().items() if length and rule in fired}
        return new


def judge_other(rules: Mapping[str, RuleSettings], records: Iterable[StepRecord]) -> list[Verdict]:
    """Every verdict on the records of another trainer's run."""
    run = OtherRun(rules)
    return [verdict for record in records for verdict in run.observe(record)]


class OwnScale:
    """The rewards of one run, one a step: whether they have fallen, where their scale is not known.

    A log of another trainer holds the mean reward of a step, of unknown scale and noise, over an unknown number of
    completions. The best stretch is the one of a third of the run so far, and at most `WIDEST` steps, with the highest
    median. In a run that is no worse than its best stretch a step is below the stretch's lower quantiles no more often
    than they say; `components.health.sequential` bets against that, step after step (2203.03532). The stretch is the
    best of many, so the shares that are bet against lie well below those of the quantiles.
    """

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=3 * WIDEST)  # as many as a widest stretch needs to be chosen from
        self._lowest = 0.0
        self._best: list[float] = []  # the best stretch, sorted
        self._stakes = [[0.0] * len(BETS) for _ in BARS]

    def observe(self, value: float) -> dict[str, float]:
        """``reward_fall`` and ``reward_lost`` of a step with this reward; nothing while there is no stretch yet."""
        self._lowest = min(self._lowest, value)
        found = self._judge(value) if self._best else {}
        self._values.append(value)
        self._choose()
        return found

    def _judge(self, value: float) -> dict[str, float]:
        for place, (quantile, share) in enumerate(BARS):
            bar = self._best[int(quantile * len(self._best))]
            self._stakes[place] = detect(self._stakes[place], Count(int(value >= bar), 1), share)
        return {FALL: evidence([stake for stakes in self._stakes for stake in stakes]), LOST: self._lost(value)}

    def _lost(self, value: float) -> float:
        """The share of the best level, above the lowest reward or 0, that the present level lacks."""
        level, best = median([*list(self._values)[1 - LEVEL :], value]), median(self._best)
        return min(1.0, max(0.0, (best - level) / (best - self._lowest))) if best > self._lowest else 0.0

    def _choose(self) -> None:
        """Look for the best stretch again where stretches have become longer, else at the newest one only."""
        values = list(self._values)
        width = max(SHORTEST, len(values) // 3)
        first = len(values) - width if len(self._best) == width else 0
        if len(self._best) != width:
            self._best = []
        for start in range(max(0, first), len(values) - width + 1):
            stretch = sorted(values[start : start + width])
            if not self._best or median(stretch) > median(self._best):
                self._best = stretch


def scaled(scale: OwnScale, record: StepRecord) -> StepRecord:
    """A record with what its reward shows; unchanged where it has none."""
    reward = record.signals.get("reward")
    found = scale.observe(reward) if reward is not None and abs(reward) < LARGEST else {}
    return StepRecord(record.step, {**record.signals, **found}, record.notes)


def on_own_scale(records: Iterable[StepRecord]) -> Iterator[StepRecord]:
    """The records of another trainer's run, with what their rewards show."""
    scale = OwnScale()
    return (scaled(scale, record) for record in records)
