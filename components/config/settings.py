"""All sections of the configuration, each valid by itself. `components.config.root` checks how they combine."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from components.config.admission import AdmissionSettings
from components.config.audit import AuditSettings
from components.config.base import Device, Section
from components.config.data import DataSettings
from components.config.dpo import DpoSettings
from components.config.evaluation import EvaluationSettings
from components.config.identity import LOGISTICS, RUN, TRAINED
from components.config.judgement import GateSettings, HealthSettings, LaunchSettings
from components.config.objective import ObjectiveSettings
from components.config.policy import PolicySettings, SftSettings, TriageSettings
from components.config.record import BudgetSettings, RecordSettings
from components.config.registry import RegistrySettings
from components.config.reward import RewardSettings
from components.config.rollout import RolloutSettings
from components.config.scheduling import ClustersSettings, Schedule, UniformSchedule
from components.config.sinks import Sinks, default_sinks
from components.config.training import LearnerSettings, TrainSettings


class Sections(Section):
    """Every setting of a run, before its combinations are checked."""

    name: Annotated[str, RUN] = Field(
        "run", pattern=r"^[a-z0-9][a-z0-9-]{0,40}$", description="Names the run's folder and branch."
    )
    seed: Annotated[int, TRAINED] = Field(
        0, ge=0, lt=2**31, description="The random numbers of every stage are derived from it, for each purpose apart."
    )
    threads: Annotated[int, TRAINED] = Field(
        1,
        ge=1,
        description="CPU threads of torch; the result depends on their number. Two are a third faster on an idle "
        "machine, and many times slower next to a busy process.",
    )
    device: Annotated[Device, RUN] = Field(
        "auto",
        description="Of every stage that has a model. auto: the GPU, where there is one that this build of torch "
        "reaches, else the CPU. A rank takes the GPU of its LOCAL_RANK.",
    )
    data: Annotated[DataSettings, RUN] = DataSettings()
    audit: AuditSettings = AuditSettings()
    policy: Annotated[PolicySettings, TRAINED] = PolicySettings()
    sft: Annotated[SftSettings, RUN] = SftSettings()
    admission: Annotated[AdmissionSettings, RUN] = AdmissionSettings()
    triage: Annotated[TriageSettings, RUN] = TriageSettings()
    clusters: Annotated[ClustersSettings, RUN] = ClustersSettings()
    schedule: Annotated[Schedule, TRAINED] = Field(
        UniformSchedule(), description="Chooses the training prompts of each step."
    )
    rollout: Annotated[RolloutSettings, TRAINED] = RolloutSettings()
    reward: Annotated[RewardSettings, TRAINED] = RewardSettings()
    objective: Annotated[ObjectiveSettings, TRAINED] = ObjectiveSettings()
    learner: Annotated[LearnerSettings, TRAINED] = LearnerSettings()
    train: TrainSettings = TrainSettings()
    dpo: Annotated[DpoSettings, RUN] = DpoSettings()
    health: HealthSettings = HealthSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    gate: Annotated[GateSettings, RUN] = GateSettings()
    registry: Annotated[RegistrySettings, RUN] = RegistrySettings()
    launch: Annotated[LaunchSettings, LOGISTICS] = LaunchSettings()
    sinks: Annotated[Sinks, LOGISTICS] = Field(
        default_factory=default_sinks, description="Trackers that show the run, by name; null turns one off."
    )
    record: Annotated[RecordSettings, LOGISTICS] = RecordSettings()
    budget: Annotated[BudgetSettings, LOGISTICS] = BudgetSettings()
