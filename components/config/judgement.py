"""Watching, measuring, judging and proposing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from components.config.base import Fraction, Section, without_nulls
from components.config.canaries import CanarySettings, RequiredCanary, check_names
from components.config.identity import JUDGED, LOGISTICS, RUN, chosen
from components.config.kubernetes import KubernetesSettings

QUARANTINE, REPAIR = "quarantine", "repair"
"""Actions that turn no knob: the prompts of a batch whose update was skipped take no part in updates any more; and what
can be repaired of the part that the rule points at is (`components.health.responses.repairs`)."""


class ActionSettings(Section):
    """One bounded change. Which knobs there are, and their bounds: `components.health.responses.knobs`."""

    knob: str = Field(min_length=1, description="The setting that is changed, or `quarantine`, or `repair`.")
    times: float | None = Field(None, gt=0, description="What its value is multiplied with.")
    to: float | None = Field(None, description="Its new value.")

    def conflicts(self) -> Iterator[str]:
        if self.times is not None and self.to is not None:
            yield f"{self.knob}: give `times` or `to`, not both"


Part = Literal["data", "schedule", "verifier", "sampler", "learner", "settings", "policy"]
"""What of a run may be broken."""


class RuleSettings(Section):
    """One health rule. ``when`` is an expression over signals; see `configs/health/default.yaml`."""

    when: str = Field(min_length=1, description="Condition over the current step's signals and their history.")
    unless: str = Field("", description="The exception: where this holds as well, the rule does not.")
    streak: int = Field(1, ge=1, description="Consecutive steps on which it must hold.")
    cooldown: int = Field(
        0, ge=0, description="Steps of silence after it has fired; if it still holds then, it fires again. 0: once."
    )
    level: Literal["warn", "intervene", "rollback", "stop"] = Field(
        "warn",
        description="Response when it fires. warn: it is recorded. intervene: the action is taken. rollback: the run "
        "returns to an earlier checkpoint. stop: it ends.",
    )
    part: Part | None = Field(None, description="The part of the run that it points at.")
    action: tuple[ActionSettings, ...] = Field(
        (), description="What to change: the first one the first time, then the next; the last one again after that."
    )
    escalate: bool = Field(
        False, description="Of level intervene: where nothing is left to change, it requests a roll-back."
    )
    optional: bool = Field(False, description="The gate does not mind when its signals were never recorded.")
    why: str = Field(min_length=1, description="What it means, for the person who reads the verdict.")
    source: str = Field("", description="Where the rule comes from.")

    def conflicts(self) -> Iterator[str]:
        if self.level == "intervene" and not self.action:
            yield "level intervene needs an action"
        if self.escalate and self.level != "intervene":
            yield f"escalate is for level intervene, this is {self.level}"
        if self.level in ("warn", "stop") and self.action:
            yield f"level {self.level} changes nothing, so it takes no action"


class ResponseSettings(Section):
    """What the monitor may do by itself. Every budget is for the whole run, so the ladder ends: intervene, roll back,
    go on under watch, stop."""

    enabled: bool = Field(True, description="Without it every verdict is recorded, and only `stop` is acted upon.")
    interventions: int = Field(6, ge=0, description="Changes of a knob without going back.")
    per_rule: int = Field(2, ge=1, description="Of these, for one rule.")
    rollbacks: int = Field(
        2, ge=0, description="Returns to an earlier checkpoint because of the policy; after them the run stops."
    )
    returns: int = Field(3, ge=0, description="Returns because another part of the run was broken.")
    go_on: bool = Field(
        True,
        description="Where a part is broken and nothing repairs it: go on under watch, and stop once the policy is "
        "harmed. Without it the run stops at once.",
    )
    quarantine: float = Field(
        0.1, ge=0, le=1, description="Largest share of the training prompts that are not trained on any more."
    )
    judge_after: int = Field(10, ge=1, description="Steps after which a response is judged: did its rule recover?")
    keep: int = Field(3, ge=1, description="Healthy checkpoints that are kept to go back to.")
    norm_factor: float = Field(
        50.0,
        gt=1,
        description="An update whose gradient norm is this many times the median of the last is skipped; before there "
        "are enough for a median, this many times the largest so far.",
    )
    norm_window: int = Field(20, ge=5, description="Updates that this median is taken over.")


class PrometheusSettings(Section):
    """Every step's signals for Prometheus."""

    textfile: Path | None = Field(None, description="Written after every step, for the node exporter's collector.")
    port: int | None = Field(None, ge=1024, le=65535, description="Of an HTTP endpoint.")
    host: str = Field(
        "127.0.0.1",
        pattern=r"^[0-9a-zA-Z.:-]+$",
        description="Interface that it listens on; in a pod of a cluster all of them, behind a network policy.",
    )


class HealthSettings(Section):
    """The monitor. ``rules`` is filled from the file named under ``rules_file`` when the configuration is loaded."""

    enabled: Annotated[bool, JUDGED] = Field(
        True, description="False: no rule is applied, no probe set is sampled, and there are no responses."
    )
    rules_file: Annotated[str, RUN] = Field("default", description="Name of a file in configs/health, without .yaml.")
    rules: Annotated[dict[str, RuleSettings], JUDGED] = Field(default_factory=dict)
    responses: Annotated[ResponseSettings, JUDGED] = ResponseSettings()
    canaries: Annotated[dict[str, CanarySettings], JUDGED] = Field(
        default_factory=dict, description="By name, which is a word; null leaves a set out that another file has."
    )
    prometheus: Annotated[PrometheusSettings, LOGISTICS] = PrometheusSettings()

    _null_takes_out = field_validator("canaries", mode="before")(without_nulls)
    _rules_can_name_them = field_validator("canaries")(check_names)


JUDGED_BY = set(chosen(HealthSettings, lambda identity: identity.judgement))
"""The health settings that a run and its judgement depend on."""


class GateSettings(Section):
    """Stage `gate`: what a checkpoint must show before approval is requested.

    Where a stage has such a limit too, it stops by its own, and the gate judges what it recorded by these. So the
    promotion policy holds for a run that allowed its stages more.
    """

    max_quarantined: Fraction = Field(
        0.01, description="Share of quarantined rows; the stage stops at data.validation.max_quarantined."
    )
    max_false_positive: Fraction = Field(
        0.02, description="What the verifier's audit may have found, as audit.max_false_positive for the stage."
    )
    max_false_negative: Fraction = Field(0.01, description="The same, as audit.max_false_negative.")
    min_gain: float = Field(0.0, description="Lower end of the 95 % interval of the pass@1 gain must exceed this.")
    min_prompts: int = Field(
        60,
        ge=2,
        description="Test prompts, scorable under both, that a gain must have been measured on, also one over a "
        "champion. On fewer one that is large enough is inconclusive: an interval knows only of what occurred among "
        "its prompts. What training does to one prompt in twenty does not occur at all in 60 of them with a "
        "probability of 5 %, in 30 with one of 21 %, in 10 with one of 60 %.",
    )
    max_truncated: float = Field(
        0.1, ge=0, le=1, description="Share of test completions that may hit the length limit."
    )
    max_unscorable: float = Field(
        0.01, ge=0, le=1, description="Share of completions, of each policy that is compared, that may be unscorable."
    )
    max_contaminated: float = Field(
        0.01, ge=0, le=1, description="Share of the prompts of any suite that may have been found in the training data."
    )
    min_gain_over_champion: float = Field(
        -0.05,
        ge=-1,
        le=1,
        description="Where evaluation.champion is set: the lower end of the 95 % interval of the pass@1 gain over it "
        "must exceed this. The default allows for the width of the interval, so that an equal checkpoint passes and a "
        "clearly worse one does not; 0 requires proof that it is better.",
    )
    canaries: dict[str, RequiredCanary] = Field(
        default_factory=dict, description="Probe sets that a candidate must have been scored on, by name."
    )


class LaunchSettings(Section):
    """Where the training stage runs."""

    kind: Literal["inline", "processes", "kubernetes"] = Field(
        "inline",
        description="inline: in the process of the stage. processes: in one of its own on this machine, a log under "
        "logs/, and ended with all that it started. kubernetes: in pods of a cluster, as one JobSet.",
    )
    kubernetes: KubernetesSettings | None = Field(None, description="Used by kind kubernetes.")
