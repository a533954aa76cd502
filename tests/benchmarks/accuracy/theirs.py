"""TRL's side: `GRPOTrainer` on the same checkpoint, with the settings that ours has."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from datasets import Dataset
from transformers import TrainerCallback
from transformers.utils import logging
from trl import GRPOConfig, GRPOTrainer

from components.config import Settings
from components.config.objective import ObjectiveSettings
from components.config.ratios import ClipRatio
from components.layout import Layout
from components.policy import Policy
from components.rewards import build_verifier
from components.types import Prompt
from tests.benchmarks.accuracy.clock import Clock
from tests.benchmarks.accuracy.task import HeldOut, Task, start, training_prompts
from tests.benchmarks.section import Row

Chat = list[dict[str, str]]
PARTS = {
    (GRPOTrainer, "_generate_single_turn"): "rollout",
    (GRPOTrainer, "_calculate_rewards"): "scoring",
    (GRPOTrainer, "training_step"): "update",
    (torch.optim.AdamW, "step"): "update",
}


def run(task: Task, layout: Layout, folder: Path, seed: int) -> Row:
    """Train, measuring held-out accuracy every so many steps."""
    settings = task.settings(task.same, seed)
    held_out, began = HeldOut(task, layout), time.perf_counter()
    policy, reward = start(layout, settings), Reward(training_prompts(layout), settings)
    trainer = trainer_of(policy, reward, settings, folder, seed)
    reached: list[tuple[int, float, float]] = []
    clock: Clock

    def measure(step: int) -> None:
        if step % task.every == 0:
            seconds = clock.seconds()
            with clock.stopped():
                reached.append((step, seconds, held_out.pass_at_1(policy.weights())))

    trainer.add_callback(after_steps(measure))
    clock = Clock(task.clock)
    startup = time.perf_counter() - began
    with ExitStack() as stack:
        for (owner, name), phase in PARTS.items():
            stack.enter_context(mock.patch.object(owner, name, clock.counted(phase, getattr(owner, name))))
        trainer.train()
    return {"startup_s": startup, "seconds": clock.seconds(), "phases_s": clock.phases(), "curve": reached,
            "steps": settings.train.steps, "completions": reward.completions}  # fmt: skip


class Reward:
    """The run's verifier as TRL calls it, in this process."""

    __name__ = "reward"  # TRL logs by it

    def __init__(self, prompts: list[Prompt], settings: Settings) -> None:
        self.prompts, self.completions = prompts, 0
        self._by_text = {prompt.text: prompt for prompt in prompts}
        self._judge = build_verifier(settings.reward.verifier)

    def __call__(self, prompts: list[Chat], completions: list[Chat], **_: Any) -> list[float]:
        self.completions += len(completions)
        pairs = zip(prompts, completions, strict=True)
        return [self._judge.accuracy(self._by_text[asked[0]["content"]], said[0]["content"]) for asked, said in pairs]


def after_steps(function: Callable[[int], None]) -> TrainerCallback:
    """Calls it after every step, with the number of those done."""

    class Watch(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            function(state.global_step)

    return Watch()


def trainer_of(
    policy: Policy, reward: Reward, settings: Settings, folder: Path, seed: int, passes: int = 1
) -> GRPOTrainer:
    """The trainer, ready to train; a batch is parted into so many ``passes``."""
    logging.disable_progress_bar()

    def lr(update: int) -> float:
        return min(1.0, (update + 1) / settings.learner.warmup)

    trainer = GRPOTrainer(
        policy.model,
        reward_funcs=reward,
        args=trl_settings(settings, folder, seed, passes),
        train_dataset=Dataset.from_list([{"prompt": chat(prompt)} for prompt in reward.prompts]),
        processing_class=policy.tokenizer,
        optimizers=optimizer_and_schedule(policy.model, settings, lr),
    )
    check_prompts(policy.encode_prompt(reward.prompts[0].text), trainer, reward.prompts[0])
    return trainer


def chat(prompt: Prompt) -> Chat:
    return [{"role": "user", "content": prompt.text}]


def trl_settings(settings: Settings, folder: Path, seed: int, passes: int) -> GRPOConfig:
    """Ours in TRL's words; what only costs time (saving, bars, reports) is off."""
    objective, rows = settings.objective, settings.train.prompts_per_step * settings.rollout.group_size
    ratio = clip_of(objective)
    return GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=rows // passes,
        gradient_accumulation_steps=passes,
        num_generations=settings.rollout.group_size,
        max_completion_length=settings.rollout.max_new_tokens,
        temperature=settings.rollout.temperature,
        loss_type="dapo",
        scale_rewards="group",  # by the unbiased standard deviation of a group, plus 1e-4
        beta=0.0,
        epsilon=ratio.low,
        epsilon_high=ratio.high,
        num_iterations=1,
        learning_rate=settings.learner.lr,
        max_grad_norm=settings.learner.grad_clip,
        max_steps=settings.train.steps,
        seed=seed,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_steps=10,
        dataloader_num_workers=0,
    )


def clip_of(objective: ObjectiveSettings) -> ClipRatio:
    assert isinstance(objective.ratio, ClipRatio)
    return objective.ratio


def optimizer_and_schedule(model: torch.nn.Module, settings: Settings, lr: Any) -> tuple[Any, Any]:
    """AdamW with our betas, weight decay and warm-up, fused as ours is."""
    how = settings.learner
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=how.lr, betas=how.betas, weight_decay=how.weight_decay, fused=True
    )
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lr)


def check_prompts(ours: tuple[int, ...], trainer: GRPOTrainer, prompt: Prompt) -> None:
    """Both sides must ask with the same tokens."""
    theirs = tuple(trainer._tokenize_prompts([chat(prompt)])[0][0])
    if ours != theirs:
        raise ValueError(f"{prompt.text!r} is {ours} for one side and {theirs} for the other")
