"""Stage `sft`: the policy that RL starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from torch import Tensor

from components.config import Settings, substance
from components.config.pins import check_digest
from components.config.policy import CheckpointModel
from components.data.prompts import read_prompts
from components.device import own_device
from components.directories import write_directory
from components.errors import InputError
from components.files import sha256_tree, write_json, write_jsonl
from components.layout import Layout
from components.learner.supervised_leader import SHARED, builder_of, has_ranks
from components.policy import Policy
from components.policy.beginning import beginning
from components.policy.tiny import build_model, build_tokenizer
from components.progress import progress
from components.resume import ResumeState, identity, run_steps
from components.seeds import derive
from components.sft.trainer import SftTrainer
from components.tools import build_tool
from components.types import Prompt


def run(settings: Settings, layout: Layout) -> None:
    """Train on the demonstrations of the SFT split; write `out/sft` and its metrics."""
    prompts = read_prompts(layout.split("sft"))
    policy, weights = initial_policy(settings, prompts)
    log: list[dict[str, Any]] = []
    if settings.sft.steps:
        log = train(policy, weights, prompts, settings, layout)
    else:
        write_stage(layout, policy.save, log)
    metrics: dict[str, Any] = {
        "steps": settings.sft.steps,
        "parameters": policy.parameters,
        "checkpoint_sha256": sha256_tree(layout.sft_checkpoint),
    }
    if log:
        tail = [row["loss"] for row in log[-10:]]
        metrics["loss"] = sum(tail) / len(tail)
    write_json(layout.sft_metrics, metrics)


def initial_policy(settings: Settings, prompts: Sequence[Prompt]) -> tuple[Policy, Mapping[str, Tensor] | None]:
    """The tiny model with random weights, all of which are trained, or the checkpoint that the settings name; its
    weights apart where ranks are to share them out."""
    model = settings.policy.model
    if isinstance(model, CheckpointModel):
        check_digest(model.path, model.sha256)
        return beginning(model.path, settings, apart=has_ranks(settings) and settings.sft.steps > 0)
    texts = [text for p in prompts for text in (p.text, p.demonstration)]
    tokenizer = build_tokenizer(texts, model.vocab_size, model.max_positions)
    network = build_model(model, tokenizer, derive(settings.seed, "init")).to(own_device())
    return Policy(network, tokenizer, settings.policy.chat, settings.policy.instruction), None


def train(
    policy: Policy, weights: Mapping[str, Tensor] | None, prompts: Sequence[Prompt], settings: Settings, layout: Layout
) -> list[dict[str, Any]]:
    """Run or resume the SFT steps and write `out/sft`; returns the log, one row a step."""
    if not prompts:
        raise InputError("the SFT split is empty", where=layout.split("sft"), how="give data.splits.sft a share")
    sections = dict.fromkeys(("seed", "threads", "policy", "sft"), True)
    depends_on = substance(settings, {**sections, "learner": SHARED, "rollout": {"tool"}})
    inputs = {"data": layout.split("sft")}
    if isinstance(settings.policy.model, CheckpointModel):
        inputs["model"] = settings.policy.model.path
    resume = ResumeState(layout.state / "sft", identity(depends_on, inputs))
    tool = build_tool(settings.rollout.tool) if settings.rollout.tool else None
    trainer = SftTrainer(policy, prompts, settings.sft, settings.seed, tool, build=builder_of(settings, weights))
    with closing(trainer.learner), progress("sft", settings.sft.steps) as bar:

        def on_row(row: dict[str, Any]) -> None:
            bar.advance(row["step"] + 1, f"loss {row['loss']:.3f}")

        log = run_steps(trainer, resume, settings.sft.steps, settings.sft.checkpoint_every, on_row)
        write_stage(layout, trainer.learner.save_policy, log)
    return log


def write_stage(layout: Layout, save_policy: Callable[[Path], None], log: Sequence[dict[str, Any]]) -> None:
    """Write `out/sft`: the checkpoint and the log."""

    def fill(directory: Path) -> None:
        save_policy(directory / layout.sft_checkpoint.name)
        write_jsonl(directory / "log.jsonl", log)

    write_directory(layout.sft, fill)
