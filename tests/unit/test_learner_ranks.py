"""Several ranks without their processes: who scores which rows, sums over all of them, and their settings."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from factories import settings
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from test_learner import batch_of, sampled
from torch import Tensor

from components.config import substance
from components.config.root import DEPENDS_ON
from components.config.training import LearnerSettings
from components.learner.ranks import Peers, Ranks, idle_pass, share_of, split_rows
from components.learner.signals import TokenTotals
from components.objectives.objective import Terms
from components.objectives.tokens import TokenLoss

# Rows


@given(st.lists(st.integers(1, 500), max_size=60), st.integers(1, 8))
def test_every_row_is_scored_by_one_rank_and_no_two_loads_differ_by_more_than_a_row(tokens, ranks):
    rows = split_rows(tokens, ranks)
    assert sorted(row for own in rows for row in own.tolist()) == list(range(len(tokens)))
    assert all(own.tolist() == sorted(own.tolist()) for own in rows)
    loads = [sum(tokens[row] for row in own) for own in rows]
    assert max(loads) - min(loads) <= max(tokens, default=0)


@pytest.mark.parametrize(
    ("tokens", "ranks", "expected"),
    [
        ([5, 5, 5, 5], 2, [[0, 2], [1, 3]]),
        ([1, 2, 3, 9], 2, [[3], [0, 1, 2]]),
        ([4], 3, [[0], [], []]),
        ([], 2, [[], []]),
    ],
)
def test_worked_shares(tokens, ranks, expected):
    assert [own.tolist() for own in split_rows(tokens, ranks)] == expected


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("max_tokens", [1, 40, 10_000])
def test_all_ranks_make_the_same_number_of_passes_and_count_every_token_once(ranks, max_tokens):
    batch = batch_of(sampled())
    shares = [share_of(batch, Ranks(rank, ranks), max_tokens) for rank in range(ranks)]
    assert len({len(share.parts) + len(share.idle) for share in shares}) == 1
    counted = [part.response_mask.sum().item() for share in shares for part in (*share.parts, *share.idle)]
    assert sum(counted) == batch.response_mask.sum().item()
    assert all(not part.response_mask.any() for share in shares for part in share.idle)


def test_an_idle_pass_has_no_token_in_the_loss_but_one_to_read():
    idle = idle_pass(batch_of(sampled()))
    assert (len(idle), int(idle.response_mask.sum())) == (1, 0)
    assert idle.attention_mask.any()


# Sums


@dataclass(frozen=True)
class Together(Ranks):
    """Ranks that are threads of this process; they meet at a barrier, and leave what they have in ``room``."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    room: dict[int, Tensor] = field(default_factory=dict)

    def total(self, values: Tensor) -> Tensor:
        return self._met(values).sum(0)

    def largest(self, values: Tensor) -> Tensor:
        return self._met(values).amax(0)

    def joined(self, values: Tensor) -> Tensor:
        return Peers.joined(self, values)

    def _met(self, values: Tensor) -> Tensor:
        self.room[self.rank] = values
        self.barrier.wait()
        found = torch.stack([self.room[rank] for rank in range(self.size)])
        self.barrier.wait()
        return found


def together(size: int, program: Callable[[Ranks], Any]) -> list[Any]:
    """What ``program`` returns on every rank."""
    barrier, room = threading.Barrier(size), {}
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(lambda rank: program(Together(rank, size, barrier, room)), range(size)))


def counted(totals: TokenTotals, ratios: list[float], entropy: float) -> TokenTotals:
    ratio = torch.tensor([ratios])
    tokens = TokenLoss(torch.zeros_like(ratio), ratio < 0.8, ratio > 1.28, ratio)
    terms = Terms(torch.zeros(()), tokens, rejected=ratio == 0.5, nonfinite=ratio == 1.5)
    totals.add(torch.ones_like(ratio, dtype=torch.bool), torch.full_like(ratio, entropy), terms)
    return totals


def test_signals_are_those_of_all_ranks_on_every_rank():
    rows = [([1.5, 0.5, 1.0], 1.0), ([2.0], 3.0), ([], 0.0), ([1.0, 1.0, 0.25], 2.0)]
    whole = TokenTotals()
    for ratios, entropy in rows:
        counted(whole, ratios, entropy)

    def one(ranks: Ranks) -> dict[str, float]:
        totals = counted(TokenTotals(), *rows[ranks.rank])
        totals.reduce(ranks)
        return totals.means()

    assert together(4, one) == [pytest.approx(whole.means())] * 4


def test_rows_come_back_in_their_places_whoever_scored_them():
    batch = batch_of(sampled())
    ids = batch.input_ids[:, -batch.responses :].float()

    def one(ranks: Ranks) -> Tensor:
        share = share_of(batch, ranks, max_tokens=40)
        parts = [part.input_ids[:, -part.responses :].float() for part in share.parts]
        return share.whole(parts, batch.responses, len(batch), ranks)

    for found in together(3, one):
        assert torch.equal(found * batch.response_mask, ids * batch.response_mask)


# Settings


@pytest.mark.parametrize(
    ("learner", "why"),
    [
        ({"ranks": {"processes": 4}}, "kind torch has one process"),
        ({"kind": "fsdp2", "zero": {"stage": 3}}, "learner.zero is for kind deepspeed, not for fsdp2"),
        ({"zero": {"stage": 3}}, "learner.zero is for kind deepspeed, not for torch"),
        ({"kind": "deepspeed", "zero": {"stage": 4}}, "zero.stage"),
        ({"kind": "deepspeed", "ranks": {"processes": 0}}, "ranks.processes"),
        ({"activation_checkpointing": True, "routing_replay": True}, "would route freely"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(learner, why):
    with pytest.raises(ValidationError, match=re.escape(why)):
        LearnerSettings.model_validate(learner)


@pytest.mark.parametrize(("ranks", "refused"), [(2, False), (4, False), (3, True), (16, True)])
def test_a_number_of_ranks_that_does_not_divide_the_completions_of_an_update_is_refused(ranks, refused):
    learner = {"kind": "fsdp2", "updates_per_step": 2, "ranks": {"processes": ranks}}  # of 4 prompts x 4 completions
    if not refused:
        assert settings(learner=learner, launch={"kind": "processes"}).learner.ranks.processes == ranks
        return
    why = rf"the 16 completions .* \(2\) updates .*learner.ranks.processes \({ranks}\)"
    with pytest.raises(ValidationError, match=why):
        settings(learner=learner, launch={"kind": "processes"})


def test_how_a_learner_is_spread_is_no_part_of_a_runs_identity():
    def identity(**learner: Any) -> dict[str, Any]:
        return substance(settings(learner=learner, launch={"kind": "processes"}), DEPENDS_ON)

    two = identity(kind="deepspeed", ranks={"processes": 2})
    assert identity(kind="deepspeed", ranks={"processes": 4}, zero={"stage": 3}) == two
    assert identity(kind="fsdp2") != two
    assert identity(kind="deepspeed", lr=1e-5) != two
