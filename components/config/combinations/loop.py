"""Data, models, tools and the sizes of the loop."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.policy import TinyModel
from components.config.rollout import TorchEngine
from components.config.scheduling import AdsSchedule
from components.config.servers import VllmEngine
from components.config.settings import Sections
from components.config.tasks import CalculatorSource

LARGEST_RANK = 512
"""Of an adapter in a vLLM server."""


def ads(s: Sections) -> Iterator[str]:
    if not isinstance(s.schedule, AdsSchedule):
        return
    if s.schedule.active * s.schedule.window != s.train.prompts_per_step:
        yield (
            f"schedule.active x schedule.window ({s.schedule.active} x {s.schedule.window}) "
            f"must equal train.prompts_per_step ({s.train.prompts_per_step})"
        )
    if s.rollout.dynamic_sampling is not None and s.rollout.dynamic_sampling.sized:
        yield (
            "schedule.kind ads draws whole windows and cannot fill up part of a batch: leave out "
            "rollout.dynamic_sampling.sized, or take another schedule"
        )
    if s.schedule.active > s.clusters.k:
        yield f"schedule.active ({s.schedule.active}) cannot exceed clusters.k ({s.clusters.k})"
    if s.schedule.alpha == 1 and s.schedule.min_prob == 0:
        yield (
            "schedule.alpha 1 with schedule.min_prob 0 never draws a cluster again once nothing in it was right; "
            "lower the one or raise the other"
        )


def sizes(s: Sections) -> Iterator[str]:
    if s.triage.samples != "auto" and s.triage.samples < s.rollout.group_size:
        yield (
            f"triage.samples ({s.triage.samples}) must be at least rollout.group_size ({s.rollout.group_size}): "
            "zero-variance groups are counted at the size that training uses"
        )
    room = s.rollout.engine.max_model_len if isinstance(s.rollout.engine, VllmEngine) else None
    for name, suite in s.evaluation.suites.items():
        if room is not None and (suite.max_new_tokens or 0) >= room:
            yield (
                f"evaluation.suites.{name}.max_new_tokens ({suite.max_new_tokens}) and a prompt do not fit into "
                f"rollout.engine.max_model_len ({room}); lower the one or raise the other"
            )
    if s.learner.updates_per_step > s.train.prompts_per_step:
        yield "learner.updates_per_step cannot exceed train.prompts_per_step: an update needs a group"
    if s.train.prompts_per_step < s.admission.min_distinct:
        yield (
            f"train.prompts_per_step ({s.train.prompts_per_step}) is below admission.min_distinct "
            f"({s.admission.min_distinct}): no step could have as many distinct prompts, and of few one can turn the "
            "policy (2606.10931); raise the one or, for a trial, lower the other"
        )
    if s.learner.kind != "torch":
        yield from _ranks(s)
    if s.dpo.steps and s.dpo.pairs is None and s.train.keep_pairs == 0:
        yield "dpo.steps without pairs: raise train.keep_pairs, or name a file under dpo.pairs"


def _ranks(s: Sections) -> Iterator[str]:
    rows, ranks = s.train.prompts_per_step * s.rollout.group_size, s.learner.ranks.processes
    if ranks > 1 and s.launch.kind == "inline":
        yield (
            f"learner.kind {s.learner.kind} with learner.ranks.processes {ranks} needs as many processes: set "
            "launch.kind processes, which starts them"
        )
    if rows % (ranks * s.learner.updates_per_step):
        yield (
            f"the {rows} completions of a step (train.prompts_per_step x rollout.group_size, "
            f"{s.train.prompts_per_step} x {s.rollout.group_size}) do not divide into learner.updates_per_step "
            f"({s.learner.updates_per_step}) "
            f"updates for the ranks of learner.ranks.processes ({ranks}): some would always wait"
        )


def models(s: Sections) -> Iterator[str]:
    if isinstance(s.policy.model, TinyModel) and s.sft.steps == 0:
        yield "sft.steps 0 with policy.model.kind tiny would train a model with random weights by RL"
    if isinstance(s.policy.model, TinyModel) and s.data.splits.sft == 0:
        yield "data.splits.sft 0 with policy.model.kind tiny leaves nothing to learn the tokenizer from"
    if s.learner.routing_replay:
        yield from _routes(s)
    if isinstance(s.rollout.engine, VllmEngine) and s.rollout.engine.transfer == "adapter":
        yield from _adapter(s)


def tools(s: Sections) -> Iterator[str]:
    if s.rollout.tool is None and isinstance(s.data.source, CalculatorSource):
        yield (
            "data.source.task calculator without rollout.tool would teach the policy to write the calculator's "
            "answers itself; set rollout.tool to {kind: calculator}"
        )


def _adapter(s: Sections) -> Iterator[str]:
    if s.policy.lora is None:
        yield "rollout.engine.transfer adapter needs an adapter: set policy.lora, or use transfer files"
    elif s.policy.lora.rank > LARGEST_RANK:
        yield (
            f"rollout.engine.transfer adapter: vLLM takes adapters of policy.lora.rank {LARGEST_RANK} at most, not "
            f"{s.policy.lora.rank}; lower it, or use transfer files"
        )


def _routes(s: Sections) -> Iterator[str]:
    engine = s.rollout.engine
    if not isinstance(engine, TorchEngine):
        yield (
            f"learner.routing_replay needs the routes of the sampler, which rollout.engine.kind {engine.kind} does not "
            "tell; use {kind: torch, record_routes: true}, or leave it off"
        )
    elif not engine.record_routes:
        yield "learner.routing_replay needs the routes of the sampler: set rollout.engine.record_routes"
