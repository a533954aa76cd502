"""The embedded engine: one prefill per group, then batched decode with a KV cache, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.policy import Policy
from components.policy.int4 import rounded_weights
from components.policy.routing import recorded
from components.rollout.base import Engine, Sampling
from components.rollout.context import Context, ModelContext
from components.rollout.decoding import Choice, Writing
from components.rollout.dense import dense_model
from components.rollout.dense_context import DenseContext
from components.rollout.draws import choose, uniform_numbers
from components.rollout.mixing import Marker, Mixer, Neighbours
from components.rollout.precision import PRECISIONS
from components.rollout.routes import RouteLog
from components.seeds import derive
from components.types import Completion
from components.working import Work, working

BUCKET = 128
"""Rows that a batch has at least before it is parted for the sake of padding: smaller ones cost more than they save."""
STRETCH = 1.5
"""A prompt that is that much longer than the shortest of its batch begins another one."""


class TorchEngine(Engine):
    """Prompts of like length are decoded together; a completion does not depend on the others in its batch but for
    rounding. With mixing it does: the gates of a batch are drawn together, so that the same prompts in other batches
    mix elsewhere. Dense decoders are computed by `dense`, all other models by their own forward pass.

    Args:
        own: ``policy`` is frozen, and the engine's alone: no copy is made.
    """

    def __init__(self, policy: Policy, settings: TorchEngineSettings, *, own: bool = False) -> None:
        self._policy = PRECISIONS[settings.precision](policy if own else policy.frozen_copy())
        self._in_int4 = settings.precision == "int4"
        self._dense = dense_model(self._policy.model)
        if self._dense is not None:
            self._dense.pack()
        self._rows, self._record_routes = settings.batch_rows, settings.record_routes
        self._neighbours: dict[int, Neighbours] = {}  # by number of candidates, of the present weights

    @torch.no_grad()
    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        weights = rounded_weights(self._policy, weights) if self._in_int4 else weights
        (self._dense or self._policy).load_weights(weights)
        self._neighbours.clear()

    @torch.no_grad()
    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        most = len(prompts) * sampling.n * sampling.max_new_tokens
        with working("sampling", most, "tokens", at_most=True) as work:
            return self._generate(prompts, sampling, work)

    def _generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, work: Work
    ) -> list[tuple[Completion, ...]]:
        groups: list[tuple[Completion, ...]] = [()] * len(prompts)
        for places in buckets([len(prompt) for prompt in prompts], sampling.n, self._rows):
            batch = [prompts[place] for place in places]
            device = self._policy.model.device
            draws = uniform_numbers(sampling.seed, places, sampling.n, sampling.max_new_tokens, device)
            mixer = self._mixer(sampling, len(batch) * sampling.n, derive(sampling.seed, "mixing", places[0]))
            with recorded(self._policy.model, self._record_routes) as router:
                routes = RouteLog(router, batch, sampling.n)
                completions = self._decode(batch, sampling, draws, mixer, routes, work)
            for row, place in enumerate(places):
                groups[place] = tuple(completions[row * sampling.n : (row + 1) * sampling.n])
        return groups

    def _decode(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        draws: Tensor,
        mixer: Mixer | None,
        routes: RouteLog,
        work: Work,
    ) -> list[Completion]:
        context = self._context(prompts, sampling.max_new_tokens)
        logits = context.read_prompts(sampling.n)
        routes.note_prompts()
        writing = Writing(len(logits), sampling, self._policy.eos_id, logits.device)
        while True:
            choice = Choice(*choose(logits, sampling.temperature, draws[writing.rows, writing.length]))
            if mixer is not None:
                choice = mixer.mix(logits, choice, writing)
            writing.add(choice)
            work.add(len(choice.tokens))
            if writing.over:
                work.spare(len(choice.tokens) * writing.left)
                return routes.attached(writing.completions(self._policy))
            staying = writing.leave(context.leave_at)
            if staying is not None:
                work.spare((len(choice.tokens) - len(staying)) * writing.left)
                context.keep(staying)
                choice = choice.rows(staying)
            logits = context.read(choice)
            routes.note_tokens(writing.rows)

    def _context(self, prompts: Sequence[Sequence[int]], limit: int) -> Context:
        if self._dense is None:
            return ModelContext(self._policy, prompts)
        return DenseContext(self._dense, prompts, limit)

    def _mixer(self, sampling: Sampling, rows: int, seed: int) -> Mixer | None:
        """What mixes the steps of one batch of ``rows``; None where the sampling does not use it."""
        mixing = sampling.mixing
        if mixing is None:
            return None
        if mixing.neighbours not in self._neighbours:
            table = self._policy.model.get_input_embeddings().weight
            self._neighbours[mixing.neighbours] = Neighbours(table, mixing.neighbours)
        marker = Marker(mixing.until, self._policy.tokenizer, rows, self._policy.model.device)
        return Mixer(mixing, sampling.temperature, self._neighbours[mixing.neighbours], marker, seed)


def buckets(lengths: Sequence[int], n: int, rows: int) -> Iterator[list[int]]:
    """Places of the prompts that are decoded together: shorter ones first, at most ``rows`` completions a batch (one
    prompt at least), and no padding worth a batch of its own."""
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    batch: list[int] = []
    for number, place in enumerate(order):
        full = (len(batch) + 1) * n > rows
        long = lengths[place] > STRETCH * lengths[batch[0]] if batch else False
        worth = min(len(batch), len(order) - number) * n >= BUCKET
        if batch and (full or (long and worth)):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
