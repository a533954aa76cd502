"""The embedded engine: one prefill per group, then batched decode with a KV cache, in this process."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.policy import Policy
from components.policy.routing import recorded
from components.rollout.base import Engine, Sampling
from components.rollout.decoding import Choice, Context, Writing
from components.rollout.mixing import Marker, Mixer
from components.rollout.neighbours import Neighbours
from components.rollout.precision import PRECISIONS
from components.rollout.routes import RouteLog
from components.seeds import derive
from components.types import Completion


class TorchEngine(Engine):
    """Decodes with `transformers` and its dynamic cache; finished rows leave the batch when half of it is done."""

    def __init__(self, policy: Policy, settings: TorchEngineSettings) -> None:
        self._policy = PRECISIONS[settings.precision](policy)
        self._rows, self._record_routes = settings.batch_rows, settings.record_routes
        self._neighbours: dict[int, Neighbours] = {}  # by number of candidates, of the present weights

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        self._policy.load_weights(weights)
        self._neighbours.clear()

    @torch.no_grad()
    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        generator = torch.Generator().manual_seed(sampling.seed)
        per_batch = max(1, self._rows // sampling.n)
        groups: list[tuple[Completion, ...]] = []
        for start in range(0, len(prompts), per_batch):
            batch = prompts[start : start + per_batch]
            mixer = self._mixer(sampling, len(batch) * sampling.n, derive(sampling.seed, "mixing", start))
            with recorded(self._policy.model, self._record_routes) as router:
                routes = RouteLog(router, batch, sampling.n)
                completions = self._decode(batch, sampling, generator, mixer, routes)
            groups += [tuple(completions[i : i + sampling.n]) for i in range(0, len(completions), sampling.n)]
        return groups

    def _decode(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        generator: torch.Generator,
        mixer: Mixer | None,
        routes: RouteLog,
    ) -> list[Completion]:
        context = Context(self._policy, prompts)
        logits = context.read_prompts(sampling.n)
        routes.note_prompts()
        writing = Writing(len(logits), sampling, self._policy.eos_id)
        while True:
            choice = Choice(*choose(logits, sampling.temperature, generator))
            if mixer is not None:
                choice = mixer.mix(logits, choice, writing)
            writing.add(choice)
            if writing.over:
                return routes.attached(writing.completions(self._policy))
            staying = writing.leave()
            if staying is not None:
                context.keep(staying)
                choice = choice.rows(staying)
            logits = context.read(choice)
            routes.note_tokens(writing.rows)

    def _mixer(self, sampling: Sampling, rows: int, seed: int) -> Mixer | None:
        """What mixes the steps of one batch of ``rows``; None where the sampling does not ask for it."""
        mixing = sampling.mixing
        if mixing is None:
            return None
        if mixing.neighbours not in self._neighbours:
            table = self._policy.model.get_input_embeddings().weight
            self._neighbours[mixing.neighbours] = Neighbours(table, mixing.neighbours)
        marker = Marker(mixing.until, self._policy.tokenizer, rows)
        return Mixer(mixing, sampling.temperature, self._neighbours[mixing.neighbours], marker, seed)


def choose(logits: Tensor, temperature: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Next token and its log-probability for each row of ``logits`` ``[B, V]``; temperature 0 takes the likeliest."""
    if temperature == 0:
        distribution = torch.log_softmax(logits.float(), dim=-1)
        logp, chosen = distribution.max(dim=-1)
        return chosen, logp
    distribution = torch.log_softmax(logits.float() / temperature, dim=-1)
    chosen = torch.multinomial(distribution.exp(), 1, generator=generator).squeeze(-1)
    return chosen, distribution.gather(-1, chosen[:, None]).squeeze(-1)
