"""What holds of everything that is sampled, whatever samples it."""

from __future__ import annotations

from collections.abc import Container

from components.config import Settings
from components.health.facts import EXACT, Facts
from components.types import Completion, Group


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
