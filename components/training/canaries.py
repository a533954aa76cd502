"""Probe sets while training: which are due, answered by the sampler and scored by the learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.canaries.items import Measured
from components.canaries.measuring import Score, measure_generation, measure_likelihood, rows_of
from components.canaries.sets import probe_sets
from components.config.canaries import By, CanarySettings
from components.learner.base import Learner
from components.learner.batch import batch_of_rows
from components.policy import Policy
from components.policy.weights import Text
from components.rollout import Collector


class Canaries:
    """The probe sets of one run. Nothing here draws a random number: the run's bytes are those of one without them.

    Raises:
        InputError: a file is missing, empty, malformed, or not the one that the settings name, or a probe is too long
            for the policy.
    """

    def __init__(
        self, collector: Collector, policy: Policy, settings: Mapping[str, CanarySettings], marker: str | None = None
    ) -> None:
        self._collector, self._policy, self._settings, self._marker = collector, policy, settings, marker
        self._sets = probe_sets(settings)
        for name in self._measured_by("likelihood"):
            for probe in self._sets[name].probes:
                rows_of(probe, policy)
        for name in self._measured_by("generation"):
            collector.check_lengths([text for probe in self._sets[name].probes for text in probe.texts])

    def generation(self, progress: int, jump: float) -> list[Measured]:
        """The sets that are due, as the sampler answers them greedily.

        Args:
            jump: the largest rise of one question's accuracy in the step before.
        """
        return [
            measure_generation(self._sets[name], self._settings[name], self._collector, self._marker)
            for name in self._due("generation", progress, jump)
        ]

    def likelihood(self, learner: Learner, progress: int, jump: float) -> list[Measured]:
        """The sets that are due, under the learner's weights as they are."""
        score = scores_of_learner(learner, self._policy.pad_id)
        return [
            measure_likelihood(self._sets[name], self._settings[name], self._policy, score)
            for name in self._due("likelihood", progress, jump)
        ]

    def _measured_by(self, by: By) -> list[str]:
        return [name for name, one in self._settings.items() if by in one.by]

    def _due(self, by: By, progress: int, jump: float) -> list[str]:
        return [name for name in self._measured_by(by) if is_due(self._settings[name], progress, jump)]


def is_due(settings: CanarySettings, progress: int, jump: float) -> bool:
    """Every so many steps of the training's progress, and after a jump."""
    return not progress % settings.every or (settings.jump is not None and jump > settings.jump)


def scores_of_learner(learner: Learner, pad_id: int) -> Score:
    """Scores under a learner's weights, wherever they are; at the temperature that the run samples at."""

    def score(rows: Sequence[Text]) -> list[float]:
        order = sorted(range(len(rows)), key=lambda place: sum(map(len, rows[place])))  # like lengths share a pass
        sums = learner.logprobs(batch_of_rows([rows[place] for place in order], pad_id)).double().sum(1).tolist()
        found = [0.0] * len(rows)
        for place, total in zip(order, sums, strict=True):
            found[place] = total
        return found

    return score
