"""Combinations of settings that would run and teach nothing, or something else than their names say.

- `ratio` — ratio families, corrections, selections
- `advantage` — advantages, aggregation, rewards, and the critic
- `judges` — verifiers and their sandbox, and what goes with an environment
- `loop` — schedule, sizes, models, tools
- `sampling` — rollouts that are older than the policy, and one GPU for server and learner
- `cluster` — what pods on Kubernetes need of the rest

Each rule yields errors that name the settings, why they do not go together (with the paper), and the way out. There are
no warnings: they go unread before a run.

Some pairs cannot be written at all, and need no rule: two ratio families, two aggregations or two deviations (each is
one choice); k2 or k3 in the reward and k1 in the loss (`KlLoss`, `KlReward`); a CISPO cap below 1, which would scale
every gradient down (`CispoRatio`); an adaptive KL without a KL (`KlTarget` is a part of it); the sampler's
log-probabilities in the place of the old ones (they are separate arrays). Mixing with an engine that takes no
embeddings is refused by `RolloutSettings`. Dynamic sampling filters on the raw accuracy and draws through the schedule,
whatever else is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from components.config.combinations import advantage, cluster, judges, loop, ratio, sampling
from components.config.settings import Sections

RULES: tuple[Callable[[Sections], Iterator[str]], ...] = (
    ratio.whole_sequences,
    ratio.sampler_twice,
    ratio.weights_of_sequences,
    ratio.nothing_has_moved,
    advantage.length_and_difficulty,
    advantage.kl_in_the_reward,
    advantage.negative_rewards,
    advantage.scales_that_cancel,
    advantage.critic,
    advantage.groups_of_one,
    advantage.overlong,
    loop.ads,
    loop.sizes,
    loop.models,
    loop.tools,
    advantage.critic_schedule,
    judges.second_code,
    judges.scorers_of_others,
    judges.solutions_in_form,
    judges.environments,
    judges.judges_of_texts,
    judges.other_problems,
    sampling.asynchrony,
    sampling.sharing,
    cluster.section,
    cluster.rollout_pods,
    cluster.learner_pods,
    cluster.state,
)


def problems(s: Sections) -> list[str]:
    """A sentence for each thing that is wrong with the combination."""
    return [problem for rule in RULES for problem in rule(s)]
