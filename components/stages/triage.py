"""Stage `triage`: sample the SFT checkpoint on training prompts and say whether RL can start from it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from components.config import Settings
from components.data.prompts import read_admitted, subset
from components.files import write_json
from components.layout import Layout
from components.learner.batch import build_batch
from components.learner.scoring import score_all
from components.policy import Policy, load_policy
from components.progress import Progress, progress
from components.rewards import Scorer
from components.rollout import Collector, build_engine
from components.seeds import derive
from components.sft.triage import triage
from components.types import Group, Prompt


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/triage.json`. A refusal is a result, not an error: the train stage acts on it."""
    limits = settings.triage
    policy = load_policy(layout.sft_checkpoint, settings.policy)
    prompts = subset(
        read_admitted(layout.split("train"), layout.admission_flags), limits.prompts, derive(settings.seed, "triage")
    )
    with progress("triage", len(prompts)) as bar:
        groups = sample(policy, prompts, settings, layout, "triage", limits.samples, bar)
    figures = triage(groups, mean_entropy(policy, groups, settings), settings.rollout.group_size, limits)
    write_json(layout.triage, figures)


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
    ):
        collector = Collector(policy, engine, scorer, settings.rollout)
        for start in range(0, len(prompts), size):
            sampling = collector.sampling(derive(settings.seed, purpose, start), n=samples)
            groups += collector.groups(prompts[start : start + size], sampling)
            bar.advance(len(groups))
    return groups


def mean_entropy(policy: Policy, groups: list[Group], settings: Settings) -> float:
    """Exact entropy of the policy on what it sampled, nats per token, at the training temperature."""
    batch = build_batch(groups, policy.pad_id)
    stats = score_all(policy.model, batch, settings.rollout.temperature, settings.learner.micro_batch_tokens)
    return stats.entropy[batch.response_mask].double().mean().item() if batch.response_mask.any() else 0.0
