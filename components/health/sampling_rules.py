"""What a step is checked by, and what holds of everything that is sampled, whatever samples it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from components.config import Settings
from components.types import Completion, Group, Prompt

EXACT = 1e-6
"""Relative difference that rounding may make."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a step is checked by.

    ``settings`` are those in force: the configured ones, or what a response has set. ``ends`` are the tokens that end
    a completion, ``prompts`` the training split as it was read, by id (empty: unknown). ``agreement`` is by family the
    covariance of rewards and advantages, where those are centred rewards; ``rejudged`` are completions that were
    judged before: the prompt's id, the accuracy then, and now. ``in_force`` are checksums of the settings of an update:
    as they should be, and as the learner has them.
    """

    settings: Settings
    signals: Mapping[str, float]
    sampled: Sequence[Group]
    ends: Container[int]
    trained: Sequence[Group] = ()
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    agreement: Mapping[str, float] = field(default_factory=dict)
    rejudged: Sequence[tuple[str, float, float]] = ()
    in_force: tuple[float, float] | None = None

    @property
    def completions(self) -> Iterator[Completion]:
        """All that were sampled in the step."""
        return (completion for group in self.sampled for completion in group.completions)


def usable(group: Group, settings: Settings, end_tokens: Container[int]) -> bool:
    """Whether what was sampled for a prompt keeps the rules of the sampling, so that it can be learned from."""
    facts = Facts(settings, {}, [group], end_tokens)
    return all(check(facts) is None for check in (ends, logprobs))


def ends(facts: Facts) -> str | None:
    """A completion ends with an end token, or has the most tokens that are allowed."""
    if facts.settings.rollout.tool is not None:  # whose turns end by rules of their own
        return None
    wrong, limit = _ended_wrongly(facts), facts.settings.rollout.max_new_tokens
    if not wrong:
        return None
    first, total = wrong[0], sum(1 for _ in facts.completions)
    return (
        f"{len(wrong)} of {total} completions end otherwise than by an end token or at {limit} tokens; the first has "
        f"{len(first.token_ids)} tokens and says {first.finish_reason!r}"
        f"{f'; all of them are of server {the_server(facts)}' if the_server(facts) >= 0 else ''}"
    )


def _ended_wrongly(facts: Facts) -> list[Completion]:
    limit = facts.settings.rollout.max_new_tokens
    return [one for one in facts.completions if not _ends_well(one, limit, facts.ends)]


def the_server(facts: Facts) -> int:
    """The server of all completions that ended wrongly; -1 where they are of several, or of none."""
    servers = {one.server for one in _ended_wrongly(facts)}
    return servers.pop() if len(servers) == 1 else -1


def _ends_well(completion: Completion, limit: int, end_tokens: Container[int]) -> bool:
    ids = completion.token_ids
    if completion.finish_reason == "length":
        return len(ids) == limit
    return 0 < len(ids) <= limit and (completion.finish_reason == "stop_token" or ids[-1] in end_tokens)


def logprobs(facts: Facts) -> str | None:
    """Every token that was drawn has a log-probability that can be one."""
    for completion in facts.completions:
        if len(completion.logprobs) != len(completion.token_ids):
            return f"{len(completion.logprobs)} log-probabilities for {len(completion.token_ids)} tokens"
        if any(value > EXACT for value in completion.logprobs):
            return f"a log-probability of {max(completion.logprobs):.6g}"
    return None


def group_sizes(facts: Facts) -> str | None:
    """Every group has as many completions, and scores, as the settings say; one that was not completed those of its
    first stage."""
    size, stage = facts.settings.rollout.group_size, facts.settings.rollout.two_stage
    sizes = (size,) if stage is None else (stage.first, size)
    wrong = [g for g in facts.sampled if len(g.completions) != len(g.scores) or len(g.completions) not in sizes]
    return None if not wrong else f"a group has {len(wrong[0].completions)} completions; rollout.group_size is {size}"
