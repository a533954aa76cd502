"""What a server must be before it is trusted: this model, this tokenizer, these very weights, which are proved by what
it makes of a text that the policy wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from components.config.servers import CheckSettings, ServerEngine, VllmEngine
from components.errors import InputError
from components.policy import Policy
from components.policy.weights import Scores, Text
from components.rollout.servers.background import in_a_thread
from components.rollout.servers.client import Facts, Request, ServerClient, Written

VERSIONS: Mapping[str, tuple[str, ...]] = {"vllm": ("0.32.",), "sglang": ("0.5.",)}
"""Versions whose interface is known, by how they begin."""
LIMITS: Mapping[str, tuple[float, float]] = {
    "float32": (1e-3, 2e-2),
    "float16": (2e-2, 0.5),
    "bfloat16": (5e-2, 1.5),
    "fp8_e4m3": (0.15, 8.0),
    "fp8_e5m2": (0.4, 15.0),
}
"""Mean and largest gap in nats that is taken for rounding, by the coarsest format that a server computes in. Small
policies were measured at a fifth of them or less; weights that are wrong are off by nats."""
PROBES = ("1+1=", "The answer is 42.", "x = [3.5, -7]\n\tif a != b:", "Überprüfung: naïve café, 東京 №5")
"""Texts that two tokenizers hardly agree on by chance."""
SURE = 0.9
"""Share of tokens that must be nearer to the old weights than to the new ones before a server is called stale."""
FEW = 32
"""Tokens below which that share means nothing: with so many, rounding alone reaches it once in a million hand-overs."""
LEAST = 1e-6
"""Nats that a token must have moved to count: below it everything is rounding, and old weights do no harm."""
TOKENS = 64
"""Of the text: twice what a test for old weights needs, and short, as it is computed after every hand-over."""


class Gap(NamedTuple):
    """|server - policy| over tokens, nats: mean and largest; ``k3`` estimates KL(server || policy) (nats per token)."""

    mean: float
    largest: float
    k3: float
    tokens: int


def counted(texts: Sequence[Text]) -> Tensor:
    """Which tokens of the texts count, ``[tokens]`` bool: what several begin with counts once, because a policy that is
    sure of its answer gives the same one again and again."""
    seen: set[Text] = set()
    first = []
    for context, ids in texts:
        for end in range(1, len(ids) + 1):
            begun = context, ids[:end]
            first.append(begun not in seen)
            seen.add(begun)
    return torch.tensor(first)


def gap(off: Tensor) -> Gap:
    """What differences of log-probabilities come to; NaN where one of them is."""
    return Gap(off.abs().mean().item(), off.abs().max().item(), (off.exp() - 1 - off).mean().item(), len(off))


def stale(old: Tensor, new: Tensor) -> bool:
    """Whether a server has the old weights, by the differences of its log-probabilities to those and to the new ones.

    A sign test on the half of the tokens that the update moved most: rounding, however coarse, takes neither side. Of
    few tokens it says nothing; then the label of the weights and the limits of the gap have to do.
    """
    moved = (new - old).abs()
    informative = (moved > LEAST) & (moved >= moved.median())
    if int(informative.sum()) < FEW:
        return False
    return bool((old.abs() < new.abs())[informative].double().mean() >= SURE)


def limits(settings: CheckSettings, facts: Facts, *dtypes: str) -> tuple[float, float]:
    """Mean and largest gap that are allowed; ``dtypes`` are the configured one and the policy's own."""
    formats = [facts.dtype or "", *dtypes, facts.kv_cache_dtype or "auto"]
    known = [LIMITS[name] for name in formats if name in LIMITS]
    mean, largest = max(known, default=LIMITS["bfloat16"])
    return settings.mean_gap or mean, settings.max_gap or largest


def refuse_gap(name: str, new: Tensor, old: Tensor | None, allowed: tuple[float, float]) -> None:
    """Raise unless the server samples from the present weights.

    Args:
        new: log-probabilities of the same tokens under the present weights, minus the server's.
        old: likewise under those before them.
        allowed: Mean and largest gap.
    """
    (mean, largest), found = allowed, gap(new)
    how = "restart the server; raise rollout.engine.check only where its precision explains the gap"
    if not (found.mean <= mean and found.largest <= largest):  # a NaN must not pass
        raise InputError(
            f"{name} does not sample from the policy's weights: its log-probabilities of {found.tokens} tokens are off "
            f"by {found.mean:.3g} nats on average (limit {mean:g}) and {found.largest:.3g} at most (limit {largest:g})",
            where="rollout.engine.check",
            how=how,
        )
    if old is not None and stale(old, new):
        raise InputError(
            f"{name} still samples from the weights before the last update: its log-probabilities are "
            f"{gap(old).mean:.3g} nats from those, and {found.mean:.3g} from the present ones",
            where="rollout.engine.check",
            how=how,
        )


def check_facts(name: str, url: str, facts: Facts, policy: Policy, settings: ServerEngine, dtype: str) -> None:
    """Raise where a server is not what the run needs; both values are named."""
    config = policy.model.config.get_text_config()
    said: dict[str, tuple[object, object]] = {
        "model type": (facts.model_type, config.model_type),
        "dtype": (facts.dtype, dtype),
        "logprobs mode": (facts.logprobs_mode, "processed_logprobs"),
    }
    expected = {field: pair for field, pair in said.items() if pair[0] is not None}
    expected |= {field: (value, getattr(config, field, None)) for field, value in (facts.shape or {}).items()}
    if isinstance(settings, VllmEngine):
        expected["KV cache"] = (facts.kv_cache_dtype, settings.kv_cache_dtype)
        expected["weight transfer"] = (facts.transfer, f"evenkeel_{settings.transfer}")
    known = VERSIONS[settings.kind]
    if not facts.version.startswith(known):
        expected["version"] = (facts.version, " or ".join(f"{start}x" for start in known))
    odd = [f"{field} is {found}, not {own}" for field, (found, own) in expected.items() if found != own]
    if odd:
        raise InputError(
            f"{name} is not a server for this policy: {'; '.join(odd)}",
            where=url,
            how="start it with the policy's checkpoint, as components/rollout/servers/__init__.py says",
        )


def probes(policy: Policy) -> dict[str, tuple[int, ...]]:
    """The policy's token ids of every text in `PROBES`."""
    return {text: tuple(policy.tokenizer.encode(text, add_special_tokens=False)) for text in PROBES}


def check_tokens(name: str, url: str, text: str, found: Sequence[int] | None, own: Sequence[int]) -> None:
    """Raise where the server's tokenizer writes a text otherwise than the policy's."""
    if found is not None and tuple(found) != tuple(own):
        raise InputError(
            f"{name} has another tokenizer: {text!r} is {list(found)[:12]} there and {list(own)[:12]} for the policy",
            where=url,
            how="start it with the policy's own tokenizer",
        )


class Proof:
    """A text, in parts that servers have room for, and what the present weights make of it.

    The text is what the first server that is prepared samples under the weights that the engine begins with. What every
    server that is prepared then says of its samples is compared with those weights too, at the temperature of the run:
    that is the only time at which the learner is sure to be idle.

    Args:
        scores: by the weights that the engine begins with.
    """

    def __init__(
        self, policy: Policy, settings: CheckSettings, temperature: float, seed: int, scores: Scores | None
    ) -> None:
        self.prompt, self.stop = policy.encode_prompt(settings.prompt), (policy.eos_id,)
        self._request = Request(self.prompt, settings.samples, settings.tokens, temperature, seed, self.stop)
        self._scores, self._one = scores, asyncio.Lock()
        self.texts: tuple[Text, ...] = ()
        self._expected: Tensor | None = None

    async def begin(
        self, name: str, client: ServerClient, room: int | None, allowed: tuple[float, float], timeout: float
    ) -> None:
        """Have a server sample, compare what it says of it, and keep what the first one samples.

        Args:
            room: positions that a text may take; None: any number.
            allowed: mean and largest gap, nats.

        Raises:
            InputError: it samples from something else, or reports something else.
        """
        if self._scores is None:
            return
        written = await client.generate(self._request, timeout)
        sampled = tuple((self.prompt, one.token_ids) for one in written)
        own = await self._scored(sampled, self._request.temperature or 1.0)
        refuse_gap(name, (own - values(written))[counted(sampled)], None, allowed)
        async with self._one:
            if not self.texts:
                ids = tuple(chain.from_iterable(ids for _, ids in sampled))[:TOKENS]
                # A server scores a text by adding one token, for which there must be room.
                most = len(ids) if room is None else max(1, room - len(self.prompt) - 1)
                self.texts = tuple((self.prompt, ids[start : start + most]) for start in range(0, len(ids), most))
                self._expected = await self._scored(self.texts, 1.0)

    async def _scored(self, texts: Sequence[Text], temperature: float) -> Tensor:
        scores = self._scores
        assert scores is not None
        return (await in_a_thread(lambda: scores(texts, temperature))).double()

    def started(self) -> None:
        """The servers are all prepared: from now on the learner may be at work."""
        self._scores = None

    def renew(self, expected: Tensor | None) -> Tensor | None:
        """Expect ``[tokens]`` of other weights from now on; None where that is not known. Returns what was expected."""
        before, self._expected = self._expected, None if expected is None else expected.double()
        return before

    def refuse(self, name: str, said: Sequence[Written], before: Tensor | None, allowed: tuple[float, float]) -> None:
        """Raise unless what a server makes of the text is what the present weights make of it.

        Args:
            before: what the weights before made of it.
            allowed: mean and largest gap, nats.
        """
        if self._expected is not None:
            own = values(said)
            refuse_gap(name, self._expected - own, None if before is None else before - own, allowed)

    def gap(self, said: Sequence[Written]) -> Gap:
        """How far what a server makes of the text is from the present weights; NaN where those are not known."""
        own = values(said)
        return gap((torch.full_like(own, torch.nan) if self._expected is None else self._expected) - own)


def values(written: Sequence[Written]) -> Tensor:
    """The log-probabilities of all tokens, one text after the other, ``[tokens]`` float64."""
    return torch.tensor([value for one in written for value in one.logprobs], dtype=torch.float64)
