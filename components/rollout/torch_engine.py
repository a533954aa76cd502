"""The embedded engine: one prefill per group, then batched decode with a KV cache, in this process, on a copy of the
policy of its own, and with the experts that sampled tokens went to kept for the learner (R3, 2510.11370)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.device import computes_in
from components.policy import Policy
from components.policy.quantised import in_int4, in_int8, rounded_weights
from components.policy.routing import UNKNOWN, Router, Routes, recorded
from components.rollout.base import Engine, Sampling
from components.rollout.context import Context, DenseContext, ModelContext
from components.rollout.decoding import Choice, Writing
from components.rollout.dense import dense_model
from components.rollout.draws import choose, uniform_numbers
from components.rollout.mixing import Marker, Mixer, Neighbours
from components.seeds import derive
from components.types import Completion
from components.working import Work, working

BUCKET = 128
"""Rows that a batch has at least before it is parted for the sake of padding: smaller ones cost more than they save."""
STRETCH = 1.5
"""A prompt that is that much longer than the shortest of its batch begins another one."""


class RouteLog:
    """Routes of one batch while it is decoded: of the prompts, then of one token of each row after the other.

    Without a router (a dense model, or not requested) nothing is kept.
    """

    def __init__(self, router: Router | None, prompts: Sequence[Sequence[int]], n: int) -> None:
        self._router, self._prompts, self._n = router, prompts, n
        self._of_prompts: Routes | None = None
        self._of_tokens: list[tuple[Tensor, Routes]] = []  # rows that read a token, and [rows, layers, k]

    def note_prompts(self) -> None:
        """Keep what the prompts' pass chose."""
        if self._router is not None:
            self._of_prompts = self._router.take(len(self._prompts)).cpu().numpy()

    def note_tokens(self, rows: Tensor) -> None:
        """Keep what the pass over one token of each of ``rows`` chose; finished rows may be among them."""
        if self._router is not None:
            self._of_tokens.append((rows.cpu(), self._router.take(len(rows))[:, 0].cpu().numpy()))

    def attached(self, completions: Sequence[Completion]) -> list[Completion]:
        """The completions with their routes, ``[prompt and response without its last token, layers, k]``."""
        if self._of_prompts is None:
            return list(completions)
        width = self._of_prompts.shape[1]
        written = np.full((len(completions), len(self._of_tokens), *self._of_prompts.shape[2:]), UNKNOWN, np.int16)
        for step, (rows, routes) in enumerate(self._of_tokens):
            written[rows.numpy(), step] = routes
        found = []
        for row, completion in enumerate(completions):
            prompt = row // self._n
            own = self._of_prompts[prompt, width - len(self._prompts[prompt]) :]
            read = written[row, : len(completion.token_ids) - 1]
            found.append(replace(completion, routes=np.concatenate([own, read])))
        return found


def in_bfloat16(own: Policy) -> Policy:
    """With parameters in bfloat16, to which weights that are loaded later are rounded. Buffers stay as they are, as in
    a checkpoint that is loaded in bfloat16: rounded frequencies would misplace late positions."""
    kept = [(module, dict(module._buffers)) for module in own.model.modules()]
    own.model.to(torch.bfloat16)
    for module, buffers in kept:
        module._buffers.update(buffers)
    return own


def auto(own: Policy) -> Policy:
    """In bfloat16 on a GPU, in the policy's own precision on a CPU."""
    half = computes_in("auto", own.model.device) == torch.bfloat16
    return in_bfloat16(own) if half else own


PRECISIONS: dict[str, Callable[[Policy], Policy]] = {
    "auto": auto,
    "policy": lambda own: own,
    "bfloat16": in_bfloat16,
    "int8": in_int8,
    "int4": in_int4,
}
"""What puts a frozen policy, which is the engine's alone, at a precision. Loading new weights into it rounds them, but
for int4 (`rounded_weights`)."""


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
        groups: list[tuple[Completion, ...]] = [()] * len(prompts)
        with working("sampling", most, "tokens", at_most=True) as work:
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
