"""The weights of a learner in this process, as other threads read them: those of one moment, until it changes them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor

from components.policy.lazily import Lazily
from components.policy.weights import Superseded


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
    """Weights as they are now, each copied when it is read.

    Raises:
        Superseded: on reading, once they have changed.
    """

    def __init__(self, weights: Mapping[str, Tensor], changes: Changes) -> None:
        self._weights, self._changes, self._made = weights, changes, changes.made

    def __getitem__(self, name: str) -> Tensor:
        with self._changes.reading:
            if self._changes.made != self._made:
                raise Superseded("the learner has changed its weights since")
            return self._weights[name].clone()

    @property
    def names(self) -> Collection[str]:
        return self._weights.keys()
