"""Groups of text become one padded batch of tensors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from components.learner.cuts import Lengths, cuts, group_cuts
from components.policy.mixing import pad_mixes
from components.policy.padding import pad, same_prompts
from components.policy.routing import pad_routes
from components.types import Completion, Group, Score

WHOLE = ("input_ids", "attention_mask", "routes")
"""Tensors over prompt and response, ``[B, T, ...]``."""
ROWS = ("group", "member", "server")
"""Tensors ``[B]``. All others are over the response, ``[B, R, ...]``."""


@dataclass(frozen=True)
class Batch:
    """B completions. Prompts are left-padded to a common width P, responses right-padded to R; T = P + R.

    The three log-probability arrays are fp32 nats and never stand in for each other: ``rollout_logp`` is what the
    sampler reported, ``old_logp`` what the learner computed before its first update, ``ref_logp`` the reference's.
    """

    input_ids: Tensor  # [B, T]
    attention_mask: Tensor  # [B, T]
    group: Tensor  # [B], number of the group, and
    member: Tensor  # [B] of the completion in it
    response_mask: Tensor  # [B, R] bool; tokens that the policy wrote and that count
    rollout_logp: Tensor  # [B, R]
    advantages: Tensor | None = None  # [B, R]
    old_logp: Tensor | None = None  # [B, R]
    ref_logp: Tensor | None = None  # [B, R]
    weights: Tensor | None = None  # [B, R], of every token in the loss; set by the learner
    selected: Tensor | None = None  # [B, R] bool, what exploration chose; set by the learner
    mix_ids: Tensor | None = None  # [B, R, k], see components.policy.mixing
    mix_weights: Tensor | None = None  # [B, R, k]
    routes: Tensor | None = None  # [B, T, layers, k] experts, -1 unknown
    versions: Tensor | None = None  # [B, R] number of the hand-over of weights that each token was sampled under
    server: Tensor | None = None  # [B] number of the server that sampled the row; None where this process did
    seal: Tensor | None = None  # [2] `checksum` when it was handed over, whether it binds; of the whole batch alone

    def __len__(self) -> int:
        return self.input_ids.shape[0]

    @property
    def responses(self) -> int:
        """R, the padded response length."""
        return self.response_mask.shape[1]

    @property
    def forced(self) -> Tensor | None:
        """``[B, R]`` bool, tokens that were not drawn from the sampler's distribution; None where all were."""
        return None if self.mix_weights is None else self.mix_weights.sum(-1) > 0

    @property
    def checksum(self) -> int:
        """Of what is learned from: the tokens, which of them count, and their advantages."""
        found = 0
        for tensor in (self.input_ids, self.response_mask, self.advantages):
            if tensor is not None:
                found = zlib.crc32(tensor.cpu().contiguous().numpy().tobytes(), found)
        return found

    def sealed(self, *, binding: bool = True) -> Batch:
        """The same with its checksum, for the learner that it is handed to. Where the seal is binding, a batch that has
        changed since is not learned from."""
        return replace(self, seal=torch.tensor([self.checksum, binding]))

    @property
    def intact(self) -> bool:
        """Whether it is still the batch that was sealed; True where it never was."""
        return self.seal is None or int(self.seal[0]) == self.checksum

    @property
    def refused(self) -> bool:
        """Whether it must not be learned from."""
        return self.seal is not None and bool(self.seal[1]) and not self.intact

    def to(self, device: torch.device) -> Batch:
        """The same on a device; itself where it is there."""
        if device == self.input_ids.device:
            return self
        tensors = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{name: t.to(device, non_blocking=True) for name, t in tensors.items() if t is not None})

    def rows(self, index: Tensor | slice) -> Batch:
        """Some of the rows, at the same padded width."""
        return self._map(lambda _, values: values[index])

    def trimmed(self) -> Batch:
        """The same rows without the columns that are padding in all of them."""
        used = self.attention_mask.any(0).nonzero().squeeze(-1)
        first, last = int(used[0]), int(used[-1]) + 1
        prompts = self.input_ids.shape[1] - self.responses
        response = slice(0, max(0, last - prompts))

        def cut(name: str, values: Tensor) -> Tensor:
            if name in ROWS:
                return values
            return values[:, first:last] if name in WHOLE else values[:, response]

        return self._map(cut)

    def _map(self, change: Callable[[str, Tensor], Tensor]) -> Batch:
        """A batch with every tensor that is set changed, and without a seal: that is of the whole batch."""
        old = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "seal"}
        new: dict[str, Any] = {name: value if value is None else change(name, value) for name, value in old.items()}
        return Batch(**new)

    def micro_batches(self, max_tokens: int) -> Iterator[Batch]:
        """Runs of rows of at most ``max_tokens`` padded tokens each (one row at least), trimmed."""
        for part in cuts(*self._lengths(), max_tokens):
            yield self.rows(part).trimmed()

    def group_passes(self, max_tokens: int) -> list[Tensor]:
        """Numbers of the rows of each pass that computes prompts once a group, at most ``max_tokens`` a pass."""
        found = group_cuts(self.group.cpu().numpy(), *self._lengths(), max_tokens)
        return [torch.from_numpy(rows) for rows in found]

    def _lengths(self) -> tuple[Lengths, Lengths]:
        """Tokens of every row's prompt and response, ``[B]`` each."""
        real, prompts = self.attention_mask.bool(), self.input_ids.shape[1] - self.responses
        return real[:, :prompts].sum(1).cpu().numpy(), real[:, prompts:].sum(1).cpu().numpy()


def build_batch(groups: Sequence[Group], pad_id: int, overlong_filter: bool = False) -> Batch:
    """Tensors of all completions, shortest rows first; advantages come later.

    A completion that takes no part in the loss keeps its row with an empty response mask: unscorable ones, and with
    ``overlong_filter`` those that were cut off. Tokens that the policy did not write (a tool did) are masked too.
    """
    rows = [
        (n, g, group, completion, score)
        for n, group in enumerate(groups)
        for g, (completion, score) in enumerate(zip(group.completions, group.scores, strict=True))
    ]
    completions = [completion for *_, completion, _ in rows]
    padded = pad([group.prompt_ids for _, _, group, _, _ in rows], [c.token_ids for c in completions], pad_id)
    counts = torch.tensor([_counts(c, score, overlong_filter) for *_, c, score in rows], dtype=torch.bool)
    mask = padded.response_mask & counts[:, None]
    rollout = torch.zeros(mask.shape)
    for row, completion in enumerate(completions):
        rollout[row, : len(completion.logprobs)] = torch.tensor(completion.logprobs)
        if completion.sampled is not None:
            mask[row, : len(completion.sampled)] &= torch.tensor(completion.sampled)
    mixes = pad_mixes([c.mixes for c in completions], mask.shape[1])
    prompts = [len(group.prompt_ids) for _, _, group, _, _ in rows]
    batch = Batch(
        input_ids=padded.input_ids,
        attention_mask=padded.attention_mask,
        group=torch.tensor([n for n, *_ in rows]),
        member=torch.tensor([g for _, g, *_ in rows]),
        response_mask=mask,
        rollout_logp=rollout,
        mix_ids=mixes.token_ids if mixes else None,
        mix_weights=mixes.weights if mixes else None,
        routes=pad_routes([c.routes for c in completions], prompts, padded.input_ids.shape[1]),
        versions=_pad_versions([c.versions for c in completions], mask.shape[1]),
        server=torch.tensor([c.server for c in completions]) if all(c.server >= 0 for c in completions) else None,
    )
    # Rows of like length stand together, so that micro-batches can be trimmed to what they hold.
    return batch.rows(padded.attention_mask.sum(1).argsort(stable=True))


def _pad_versions(versions: Sequence[tuple[int, ...]], width: int) -> Tensor | None:
    """``[B, width]``, 0 behind the end of a row; None where a completion does not say."""
    if not all(versions):
        return None
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in versions])


def _counts(completion: Completion, score: Score, overlong_filter: bool) -> bool:
    return score.accuracy is not None and not (overlong_filter and completion.finish_reason == "length")


def batch_of_rows(rows: Sequence[tuple[Sequence[int], Sequence[int]]], pad_id: int) -> Batch:
    """Contexts with their continuations as a batch to be scored, in the given order; rows of one context are a group,
    so that it need not be computed for each of them."""
    padded = pad([context for context, _ in rows], [continuation for _, continuation in rows], pad_id)
    return Batch(
        input_ids=padded.input_ids,
        attention_mask=padded.attention_mask,
        group=same_prompts([context for context, _ in rows]),
        member=torch.arange(len(rows)),
        response_mask=padded.response_mask,
        rollout_logp=torch.zeros(padded.response_mask.shape),
    )
