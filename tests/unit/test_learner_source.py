"""A rank's model takes no memory until its shares are there, and is the model of rank 0 then."""

from __future__ import annotations

import torch
from factories import policy, settings
from torch import nn
from torch.nn import Parameter

from components.config.policy import LoraSettings
from components.learner.follower import Start
from components.learner.ranks import Ranks
from components.learner.sharding.source import Source, make_room
from components.learner.torch_learner import TorchLearner
from components.policy.lora import adapted
from components.policy.outline import replaced

CPU = torch.device("cpu")


class Tied(nn.Module):
    """Two layers that share a weight, and two buffers, of which one is no part of a checkpoint."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.first, self.last = (nn.Linear(3, 3, bias=False, device=device) for _ in range(2))
        self.last.weight = self.first.weight
        self.register_buffer("kept", torch.arange(2.0))
        self.register_buffer("derived", torch.arange(3.0), persistent=False)


def test_parameters_of_a_rank_s_policy_take_no_memory_and_its_buffers_are_there():
    whole = policy()
    found = Start.of(TorchLearner, whole, settings()).policy()
    assert all(parameter.is_meta for parameter in found.model.parameters())
    buffers = dict(found.model.named_buffers())
    assert buffers and all(torch.equal(buffers[name], own) for name, own in whole.model.named_buffers())


def test_with_an_adapter_too_it_has_the_parameters_of_rank_0_under_the_same_names():
    chosen = settings(policy={"lora": {"rank": 2}})
    whole = adapted(policy(), LoraSettings(rank=2), seed=1)
    found = Start.of(TorchLearner, whole, chosen).policy()
    assert found.trainable().keys() == whole.trainable().keys()
    shapes = {name: (p.shape, p.requires_grad) for name, p in whole.model.named_parameters()}
    assert {name: (p.shape, p.requires_grad) for name, p in found.model.named_parameters()} == shapes
    assert all(parameter.is_meta for parameter in found.model.parameters())


def test_tied_parameters_are_replaced_once_and_stay_tied():
    model, seen = Tied("meta"), []
    replaced(model, lambda name, parameter: torch.ones(parameter.shape), seen.append)
    assert model.first.weight is model.last.weight is seen[0]
    assert len(seen) == 1 and torch.equal(seen[0], torch.ones(3, 3))


def test_a_parameter_that_was_frozen_is_frozen_in_its_new_place():
    model = Tied("meta").requires_grad_(False)
    replaced(model, lambda name, parameter: torch.ones(parameter.shape))
    assert not model.first.weight.requires_grad


def test_room_is_made_for_parameters_and_buffers_keep_their_values():
    model = Tied("meta")
    make_room(model, CPU)
    assert not any(parameter.is_meta for parameter in model.parameters())
    assert torch.equal(model.kept, torch.arange(2.0)) and torch.equal(model.derived, torch.arange(3.0))


def test_rank_0_gives_its_values_as_fp32_and_copies_them_where_they_are_to_stay():
    state = {"weight": Parameter(torch.ones(2, dtype=torch.bfloat16)), "fp32": torch.ones(2)}
    source = Source(Ranks(), CPU, state)
    assert source.whole("weight", torch.Size([2])).dtype == torch.float32
    source.copied("fp32", torch.Size([2])).zero_()
    assert torch.equal(state["fp32"], torch.ones(2))


def test_buffers_of_a_checkpoint_are_those_of_rank_0_and_others_follow_from_the_configuration():
    model = nn.ModuleDict({"model": Tied()})
    Source(Ranks(), CPU, {"kept": torch.full((2,), 7.0)}).fill_buffers(model, "model.")
    assert torch.equal(model["model"].kept, torch.full((2,), 7.0))
    assert torch.equal(model["model"].derived, torch.arange(3.0))
