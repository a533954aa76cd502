"""Everything that one run is made of, from settings and the outputs of the stages before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from components.config import Settings, substance
from components.config.consistency import EmbeddedConsistency
from components.config.ppo import GaeAdvantage
from components.config.root import DEPENDS_ON
from components.data.prompts import read_prompts, subset
from components.environments.episodes import opened
from components.health.monitor import Monitor
from components.health.responses import Responder
from components.layout import Layout
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.build import build_learner
from components.learner.critic import Critic
from components.objectives.ratios import check_correction
from components.policy import Policy, load_policy
from components.policy.beginning import beginning
from components.policy.lora import AdaptedPolicy, adapted
from components.policy.outline import is_hollow
from components.processes.stopping import STOPPING, Stopping
from components.resume import ResumeState, identity
from components.rewards import Scorer
from components.rollout import Collector, Engine, build_engine
from components.scheduling import Clusters, Schedule, build_schedule
from components.scheduling.checked import Checked
from components.seeds import derive
from components.training.canaries import Canaries
from components.training.evidence import Evidence, UsualGap, explained
from components.training.heldout import HeldOut
from components.training.pipeline import Rollouts
from components.training.reference import reads_reference
from components.training.run import RunState
from components.training.second_opinion import SecondOpinion
from components.types import Prompt

T = TypeVar("T")
Wrap = Callable[[T], T]


@dataclass(frozen=True)
class Parts:
    """What `components.training.loop.train` takes.

    ``policy`` lends its tokenizer. ``reference`` gives log-probabilities ``[B, R]`` (nats) under the policy that the
    run started from, which the learner keeps; None where nothing reads the KL to it.
    """

    state: RunState
    rollouts: Rollouts
    policy: Policy
    reference: Callable[[Batch], Tensor] | None
    second: SecondOpinion
    canaries: Canaries
    stopping: Stopping = STOPPING


def unwrapped(part: T) -> T:
    """The part itself: no wrapper."""
    return part


@contextmanager
def assembled(
    settings: Settings,
    layout: Layout,
    clusters: Clusters,
    *,
    dev: Sequence[Prompt] | None = None,
    wrap_engine: Wrap[Engine] = unwrapped,
    wrap_learner: Wrap[Learner] = unwrapped,
    wrap_schedule: Wrap[Schedule] = unwrapped,
    wrap_scorer: Wrap[Scorer] = unwrapped,
) -> Iterator[Parts]:
    """The parts of a run, continued from its newest checkpoint; worker processes end with the context.

    The wrappers stand between the loop and the real part: that is how a fault is planted.
    """
    check_correction(settings.objective)
    learned, weights = beginning(layout.sft_checkpoint, settings, apart=settings.learner.kind != "torch")
    policy = learned.base if isinstance(learned, AdaptedPolicy) else learned
    if dev is None:
        dev = subset(read_prompts(layout.split("dev")), settings.train.eval_prompts, derive(settings.seed, "dev"))
    with ExitStack() as stack:
        read = reads_reference(settings)
        learner = stack.enter_context(closing(build_learner(learned, settings, weights, reference=read)))
        learner.on_stop_request(STOPPING.request)
        engine = stack.enter_context(closing(build_engine(policy, settings.rollout, layout.logs, learner.weights())))
        state = RunState(
            critic=_critic(policy, settings, layout),
            learner=wrap_learner(learner),
            engine=wrap_engine(engine),
            schedule=Checked(wrap_schedule(build_schedule(clusters, settings)), build_schedule(clusters, settings)),
            monitor=Monitor(settings.health.rules if settings.health.enabled else {}),
            responder=Responder(settings),
            resume=ResumeState(layout.state / "train", _identity(settings, layout)),
            prompts={prompt.id: prompt for members in clusters.values() for prompt in members},
            evidence=Evidence(usual_gap=UsualGap(explained(settings, policy.model.device))),
        )
        stack.callback(state.writer.close)
        state.restore()
        scorer = wrap_scorer(stack.enter_context(Scorer(settings.reward, layout.consistency)))
        episodes = stack.enter_context(opened(settings.data.source, settings.reward, policy, state.engine))
        collector = Collector(policy, state.engine, scorer, settings.rollout, episodes)
        second = stack.enter_context(SecondOpinion(settings.audit, settings.reward.sandbox, settings.seed))
        held_out = HeldOut(collector, dev, settings.train.eval_samples)
        probed = settings.health.canaries if settings.health.enabled else {}
        canaries = Canaries(collector, policy, probed, getattr(settings.reward.verifier, "marker", None))
        rollouts = stack.enter_context(Rollouts(state, collector, held_out, canaries, second))
        yield Parts(state, rollouts, policy, learner.reference if read else None, second, canaries)


def _critic(policy: Policy, settings: Settings, layout: Layout) -> Critic | None:
    """With ``policy.lora`` the critic has an adapter of its own, on the base that the policy's is on; where that is
    spread over ranks, on one that this process loads."""
    if not isinstance(settings.objective.advantage, GaeAdvantage):
        return None
    whole = load_policy(layout.sft_checkpoint, settings.policy) if is_hollow(policy.model) else policy
    own = adapted(whole, settings.policy.lora, derive(settings.seed, "critic"))
    return Critic(own, settings.learner.critic, settings.learner)


def _identity(settings: Settings, layout: Layout) -> dict[str, object]:
    """What the run's bytes depend on; a state with another identity is another run's."""
    inputs = {"train": layout.split("train"), "dev": layout.split("dev"), "sft": layout.sft_checkpoint}
    if isinstance(settings.reward.consistency, EmbeddedConsistency):
        inputs["consistency"] = layout.consistency
    return identity(substance(settings, DEPENDS_ON), {**inputs, "clusters": layout.clusters})
