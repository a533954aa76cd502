"""What goes with a tool, and with a critic."""

from __future__ import annotations

from collections.abc import Iterator

from components.config.ppo import GaeAdvantage
from components.config.settings import Sections
from components.config.tasks import CalculatorSource


def tools(s: Sections) -> Iterator[str]:
    if s.rollout.tool is None and isinstance(s.data.source, CalculatorSource):
        yield (
            "data.source.task calculator without rollout.tool would teach the policy to write the calculator's "
            "answers itself; set rollout.tool to {kind: calculator}"
        )


def critic_schedule(s: Sections) -> Iterator[str]:
    if not isinstance(s.objective.advantage, GaeAdvantage):
        return
    if s.learner.critic.pretrain_steps >= s.train.steps:
        yield (
            f"learner.critic.pretrain_steps ({s.learner.critic.pretrain_steps}) leaves none of train.steps "
            f"({s.train.steps}) to the policy"
        )
    if s.objective.advantage.fallback == "group" and s.rollout.group_size == 1:
        yield (
            "objective.advantage.fallback group with rollout.group_size 1 is the completion's own reward and teaches "
            "nothing; use batch"
        )
