"""The weights of a learner as others read them: one at a time, whole, those of one moment, until it changes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from components.policy import Policy
from components.policy.lazily import Lazily, Read
from components.policy.lora import adapted_matrices, names_in_model
from components.policy.policy import Apart
from components.policy.weights import Superseded

Gather = Callable[[Sequence[str]], list[Tensor]]
"""Whole values of parameters of the model, by their names in it."""


class Changes:
    """The changes of a learner's weights, one at a time, and none while a weight is read."""

    def __init__(self) -> None:
        self.made, self.reading = 0, threading.Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Inside, weights change."""
        with self.reading:
            self.made += 1
            yield


class Live(Lazily):
    """Weights of this process as they are now, each copied when it is read.

    Raises:
        Superseded: on reading, once they have changed.
    """

    def __init__(self, weights: Mapping[str, Tensor], changes: Changes) -> None:
        self._weights, self._changes, self._made = weights, changes, changes.made
        self.names = weights.keys()

    def __getitem__(self, name: str) -> Tensor:
        with self._changes.reading:
            if self._changes.made != self._made:
                raise Superseded("the learner has changed its weights since")
            return self._weights[name].clone()


class Gathered(Lazily):
    """Weights of several ranks by the names that ``policy`` has for them without an adapter, in its precision, on the
    device of rank 0. Each is gathered when it is read; an adapter is merged.

    Args:
        policy: names, precisions and adapter; its values are not used.
        gather: raises `components.policy.weights.Superseded`.
        begun: what the ranks began with, by the names in the model; frozen weights are read from it.
        learned: values of what is trained that stand in for the learner's own, by their names in the model.
    """

    def __init__(
        self,
        policy: Policy,
        gather: Gather,
        begun: Mapping[str, Tensor],
        learned: Mapping[str, Tensor] | None = None,
    ) -> None:
        self._names, self._adapted, self._gather = names_in_model(policy), adapted_matrices(policy), gather
        self._policy, self.names = policy, self._names.keys()
        self._trained, self._begun = policy.trainable().keys(), begun
        self._learned = {} if learned is None else learned
        own = dict(policy.model.named_parameters())
        self._dtypes: dict[str, torch.dtype] = {name: own[inside].dtype for name, inside in self._names.items()}

    def __getitem__(self, name: str) -> Tensor:
        inside, dtype = self._names[name], self._dtypes[name]
        if name not in self._adapted:
            return self._whole([inside])[0].to(dtype)
        made = self._adapted[name]
        weight, down, up = self._whole([made.weight, made.down, made.up])
        return made.merged(weight.to(dtype), down, up)

    def _whole(self, wanted: Sequence[str]) -> list[Tensor]:
        there = [name for name in wanted if name in self._trained and name not in self._learned]
        found = dict(zip(there, self._gather(there), strict=True)) if there else {}
        for name in wanted:
            if name not in found:
                found[name] = self._learned[name] if name in self._trained else self._begun[name]
        return [found[name] for name in wanted]

    @property
    def learned(self) -> Mapping[str, Tensor]:
        """What is trained, by the names that it has in the model."""
        return Read(self._trained, lambda name: self._whole([name])[0])

    @property
    def apart(self) -> Apart | None:
        """The same with the adapter not merged, likewise gathered when it is read."""
        base = Read(self._names, lambda name: self._begun[self._names[name]].to(self._dtypes[name]))
        found = self._policy.apart(self.learned)
        return None if found is None else replace(found, base=base)
