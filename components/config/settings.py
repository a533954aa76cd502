"""The root of the configuration, and the combinations that make no sense."""

from __future__ import annotations

from pydantic import Field, model_validator

from components.config.base import Section
from components.config.data import DataSettings
from components.config.dpo import DpoSettings
from components.config.judgement import (
    EvaluationSettings,
    GateSettings,
    HealthSettings,
    LaunchSettings,
    RegistrySettings,
)
from components.config.objective import ObjectiveSettings
from components.config.policy import PolicySettings, SftSettings, TinyModel, TriageSettings
from components.config.reward import RewardSettings
from components.config.rollout import RolloutSettings
from components.config.scheduling import AdsSchedule, ClustersSettings, Schedule, UniformSchedule
from components.config.training import LearnerSettings, TrainSettings


class Settings(Section):
    """Everything a run depends on besides its inputs and its code."""

    name: str = Field("run", pattern=r"^[a-z0-9][a-z0-9-]{0,40}$", description="Names the run's folder and branch.")
    seed: int = Field(0, ge=0, lt=2**31)
    threads: int = Field(
        1,
        ge=1,
        description="CPU threads of torch; the result depends on their number. Two are a third faster on an idle "
        "machine, and many times slower beside a busy neighbour.",
    )
    data: DataSettings = DataSettings()
    policy: PolicySettings = PolicySettings()
    sft: SftSettings = SftSettings()
    triage: TriageSettings = TriageSettings()
    clusters: ClustersSettings = ClustersSettings()
    schedule: Schedule = UniformSchedule()
    rollout: RolloutSettings = RolloutSettings()
    reward: RewardSettings = RewardSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    learner: LearnerSettings = LearnerSettings()
    train: TrainSettings = TrainSettings()
    dpo: DpoSettings = DpoSettings()
    health: HealthSettings = HealthSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    gate: GateSettings = GateSettings()
    registry: RegistrySettings = RegistrySettings()
    launch: LaunchSettings = LaunchSettings()

    @model_validator(mode="after")
    def _refuse_degenerate_combinations(self) -> Settings:
        if problems := _problems(self):
            raise ValueError("; ".join(problems))
        return self


def _problems(s: Settings) -> list[str]:
    """Every combination that would run and teach nothing, or something else than its name says."""
    found = []
    if s.rollout.group_size < 2:
        found.append(
            "rollout.group_size 1 with the group baseline of objective.advantage gives only zeros; use 2 or more"
        )
    if isinstance(s.schedule, AdsSchedule) and s.schedule.active * s.schedule.window != s.train.prompts_per_step:
        found.append(
            f"schedule.active x schedule.window ({s.schedule.active} x {s.schedule.window}) "
            f"must equal train.prompts_per_step ({s.train.prompts_per_step})"
        )
    if isinstance(s.schedule, AdsSchedule) and s.schedule.active > s.clusters.k:
        found.append(f"schedule.active ({s.schedule.active}) cannot exceed clusters.k ({s.clusters.k})")
    if isinstance(s.schedule, AdsSchedule) and s.schedule.alpha == 1 and s.schedule.min_prob == 0:
        found.append(
            "schedule.alpha 1 with schedule.min_prob 0 never draws a cluster again once nothing in it was right; "
            "lower the one or raise the other"
        )
    if s.triage.samples < s.rollout.group_size:
        found.append(
            f"triage.samples ({s.triage.samples}) must be at least rollout.group_size ({s.rollout.group_size}): "
            "zero-variance groups are counted at the size that training uses"
        )
    if s.learner.updates_per_step > s.train.prompts_per_step:
        found.append("learner.updates_per_step cannot exceed train.prompts_per_step: an update needs a group")
    if getattr(s.objective.advantage, "std", "") == "none" and s.objective.aggregation.kind == "sequence_mean":
        found.append(
            "objective.advantage.std none removes a difficulty bias that aggregation sequence_mean's length bias "
            "replaces (2503.20783); use token_mean"
        )
    if s.dpo.steps and s.dpo.pairs is None and s.train.keep_pairs == 0:
        found.append("dpo.steps without pairs: raise train.keep_pairs, or name a file under dpo.pairs")
    overlong = s.reward.soft_overlong
    if overlong and overlong.limit > s.rollout.max_new_tokens:
        found.append(
            f"reward.soft_overlong.limit ({overlong.limit}) is beyond rollout.max_new_tokens "
            f"({s.rollout.max_new_tokens}): the penalty could never reach -1"
        )
    if isinstance(s.policy.model, TinyModel) and s.sft.steps == 0:
        found.append("sft.steps 0 with policy.model.kind tiny would train a model with random weights by RL")
    if isinstance(s.policy.model, TinyModel) and s.data.splits.sft == 0:
        found.append("data.splits.sft 0 with policy.model.kind tiny leaves nothing to learn the tokenizer from")
    return found
