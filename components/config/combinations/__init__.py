"""Combinations of settings that would run and teach nothing, or something else than their names say.

- `ratio` — ratio families, corrections, selections
- `advantage` — advantages, aggregation, rewards
- `judges` — verifiers and their sandbox
- `environments` — what goes with an environment, which runs episodes and judges them
- `loop` — schedule, sizes, models
- `tools` — what goes with a tool, and with a critic
- `asynchrony` — rollouts that are older than the policy
- `sharing` — one GPU for server and learner
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

from components.config.combinations.advantage import (
    critic,
    groups_of_one,
    kl_in_the_reward,
    length_and_difficulty,
    negative_rewards,
    overlong,
    scales_that_cancel,
)
from components.config.combinations.asynchrony import asynchrony
from components.config.combinations.cluster import learner_pods, rollout_pods, section, state
from components.config.combinations.environments import environments, judges_of_texts
from components.config.combinations.judges import probes_of_others, scorers_of_others, second_code, solutions_in_form
from components.config.combinations.loop import ads, models, sizes
from components.config.combinations.ratio import (
    nothing_has_moved,
    sampler_twice,
    weights_of_sequences,
    whole_sequences,
)
from components.config.combinations.sharing import sharing
from components.config.combinations.tools import critic_schedule, tools
from components.config.settings import Sections

RULES: tuple[Callable[[Sections], Iterator[str]], ...] = (
    whole_sequences,
    sampler_twice,
    weights_of_sequences,
    nothing_has_moved,
    length_and_difficulty,
    kl_in_the_reward,
    negative_rewards,
    scales_that_cancel,
    critic,
    groups_of_one,
    overlong,
    ads,
    sizes,
    models,
    tools,
    critic_schedule,
    second_code,
    scorers_of_others,
    probes_of_others,
    solutions_in_form,
    environments,
    judges_of_texts,
    asynchrony,
    sharing,
    section,
    rollout_pods,
    learner_pods,
    state,
)


def problems(s: Sections) -> list[str]:
    """A sentence for each thing that is wrong with the combination."""
    return [problem for rule in RULES for problem in rule(s)]
