"""Settings that change in the middle of a run, as when somebody edits a file that is read again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from components.config.exploration import EntropyBonus, TopEntropy
from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.learner.base import Learner
from components.learner.batch import Batch
from components.rollout import Engine, Sampling
from tests.benchmarks.health.faults.base import AroundEngine, AroundLearner
from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.base import HeldBack
from tests.benchmarks.health.generated.samplers import Groups

Given = tuple[LearnerSettings, ObjectiveSettings]


class Reset(HeldBack, Generated):
    """The learner has other settings than the run."""

    part = "settings"
    scopes = ("all",)

    def learner(self, learner: Learner) -> Learner:
        return _Reset(learner, self)  # type: ignore[return-value]

    @abstractmethod
    def reset(self, settings: LearnerSettings, objective: ObjectiveSettings) -> Given:
        """What they are."""


class _Reset(AroundLearner):
    def __init__(self, inner: Learner, fault: Reset) -> None:
        super().__init__(inner)
        self._fault = fault
        self._given: Given | None = None

    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        self._given = settings, objective
        self.inner.configure(settings, objective)

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
        if self._given is not None:
            self.inner.configure(*(self._fault.reset(*self._given) if self._fault.strength else self._given))
        return super().step(batch, seed, norm_limit)


class ManyUpdates(Reset):
    """A batch is cut into ``size`` updates."""

    sizes = (4, 16)

    def reset(self, settings: LearnerSettings, objective: ObjectiveSettings) -> Given:
        count = max(1, round(self.size * self.strength))
        return settings.model_copy(update={"updates_per_step": count}), objective


class Exploring(Reset):
    """A bonus for entropy that nobody asked for."""

    sizes = (0.3, 5.0)

    def reset(self, settings: LearnerSettings, objective: ObjectiveSettings) -> Given:
        return settings, objective.model_copy(update={"entropy": EntropyBonus(coef=self.size * self.strength)})


class RunningOut(Reset):
    """The learning rate falls, as at the end of a much shorter run."""

    sizes = (0.9, 0.999)

    def reset(self, settings: LearnerSettings, objective: ObjectiveSettings) -> Given:
        return settings.model_copy(update={"lr": settings.lr * (1 - self.size * self.strength)}), objective


class LongWarmup(Reset):
    """The learning rate still warms up, over ``size`` updates."""

    sizes = (100, 5000)

    def reset(self, settings: LearnerSettings, objective: ObjectiveSettings) -> Given:
        return settings.model_copy(update={"warmup": max(1, round(self.size * self.strength))}), objective


class FewTokens(Reset):
    """Nearly all tokens but those of the highest entropy have no gradient."""

    sizes = (0.9, 0.98)

    def reset(self, settings: LearnerSettings, objective: ObjectiveSettings) -> Given:
        kept = TopEntropy(kind="top_entropy", share=1 - self.size * self.strength)
        return settings, objective.model_copy(update={"selection": kept})


class Resampling(HeldBack, Generated):
    """What is sampled is asked for with other settings."""

    part = "settings"
    scopes = ("all",)

    def engine(self, engine: Engine) -> Engine:
        return _Asking(engine, self)  # type: ignore[return-value]

    @abstractmethod
    def asked(self, sampling: Sampling) -> Sampling:
        """What the sampler is asked for."""


class _Asking(AroundEngine):
    def __init__(self, inner: Engine, fault: Resampling) -> None:
        super().__init__(inner)
        self._fault = fault

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Groups:
        return super().generate(prompts, self._fault.asked(sampling) if self._fault.strength else sampling)


class LowLimit(Resampling):
    """Completions may be much shorter than they may."""

    sizes = (0.3, 0.6)

    def asked(self, sampling: Sampling) -> Sampling:
        return replace(
            sampling, max_new_tokens=max(1, round(sampling.max_new_tokens * (1 - self.size * self.strength)))
        )


class SmallGroups(Resampling):
    """Groups have a share of ``size`` fewer completions, at least two; the dev split is sampled as it was."""

    sizes = (0.5, 0.75)
    DEV = 4

    def asked(self, sampling: Sampling) -> Sampling:
        if sampling.n <= self.DEV:
            return sampling
        return replace(sampling, n=max(2, round(sampling.n * (1 - self.size * self.strength))))


class OneSeed(Resampling):
    """Every call samples with the same seed."""

    sizes = (1.0,)

    def asked(self, sampling: Sampling) -> Sampling:
        return replace(sampling, seed=self.seed)


class Tempered(Resampling):
    """Sampler and learner agree upon another temperature, ``size`` times the configured one."""

    sizes = (1.5, 3.0)
    _sound: float | None = None

    @property
    def _factor(self) -> float:
        return 1 + (self.size - 1) * self.strength

    def asked(self, sampling: Sampling) -> Sampling:
        return replace(sampling, temperature=sampling.temperature * self._factor)

    def learner(self, learner: Learner) -> Learner:
        return _Tempered(learner, self)  # type: ignore[return-value]


class _Tempered(AroundLearner):
    def __init__(self, inner: Learner, fault: Tempered) -> None:
        super().__init__(inner)
        self._fault = fault
        self._sound = inner._temperature  # type: ignore[attr-defined]

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
        self.inner._temperature = self._sound * (self._fault._factor if self._fault.strength else 1.0)
        return super().step(batch, seed, norm_limit)


SETTINGS = (
    ManyUpdates,
    Exploring,
    RunningOut,
    LongWarmup,
    FewTokens,
    LowLimit,
    SmallGroups,
    OneSeed,
    Tempered,
)
