"""Stage `triage`: sample the SFT checkpoint on training prompts and state whether RL can start from it.

Prompts that the label audit has sampled already are not sampled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from components.config import Settings
from components.data.prompts import nested, read_admitted
from components.environments.episodes import opened
from components.files import write_json
from components.kept_groups import read_groups
from components.layout import Layout
from components.learner.batch import build_batch
from components.learner.scoring import score_all
from components.policy import Policy, load_policy
from components.progress import Progress, progress
from components.proportion import MEASURED, triage_sample
from components.rewards import Scorer
from components.rollout import Collector, build_engine
from components.seeds import derive
from components.sft.triage import Step, triage
from components.types import Group, Prompt


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/triage.json`. A refusal is a result, not an error: the train stage acts on it."""
    size = triage_sample(settings)
    admitted = read_admitted(layout.split("train"), layout.admission_flags)
    prompts = nested(admitted, size.prompts, derive(settings.seed, "base"))
    known = read_groups(layout.base_answers, prompts, size.samples)
    missing = [prompt for prompt in prompts if prompt.id not in known]
    policy = load_policy(layout.sft_checkpoint, settings.policy)
    with progress("triage", len(missing)) as bar:
        sampled = sample(policy, missing, settings, layout, "triage", size.samples, bar) if missing else []
    by_id = known | {group.prompt.id: group for group in sampled}
    groups = [by_id[prompt.id] for prompt in prompts]
    entropy = mean_entropy(policy, groups, settings)
    write_json(layout.triage, triage(groups, entropy, Step.of(settings), settings.triage))


def sample(
    policy: Policy,
    prompts: Sequence[Prompt],
    settings: Settings,
    layout: Layout,
    purpose: str,
    samples: int,
    bar: Progress,
) -> list[Group]:
    """Groups of ``samples`` completions, as training samples them; ``purpose`` makes the seeds its own."""
    groups: list[Group] = []
    size = max(1, 1024 // samples)
    with (
        Scorer(settings.reward, layout.consistency) as scorer,
        closing(build_engine(policy, settings.rollout, layout.logs)) as engine,
        opened(settings.data.source, settings.reward, policy, engine) as episodes,
    ):
        collector = Collector(policy, engine, scorer, settings.rollout, episodes)
        for start in range(0, len(prompts), size):
            sampling = collector.sampling(derive(settings.seed, purpose, start), n=samples)
            groups += collector.groups(prompts[start : start + size], sampling)
            bar.advance(len(groups))
    return groups


def mean_entropy(policy: Policy, groups: list[Group], settings: Settings) -> float:
    """Exact entropy of the policy on some of what it sampled, nats per token, at the training temperature."""
    some = [replace(g, completions=g.completions[:MEASURED], scores=g.scores[:MEASURED]) for g in groups]
    batch = build_batch(some, policy.pad_id)
    stats = score_all(policy.model, batch, settings.rollout.temperature, settings.learner.micro_batch_tokens)
    return stats.entropy[batch.response_mask].double().mean().item() if batch.response_mask.any() else 0.0
