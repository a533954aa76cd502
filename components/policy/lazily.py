"""Tensors by name that are read when they are used."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping

from torch import Tensor


class Lazily(Mapping[str, Tensor]):
    """A mapping that knows its names without reading a value."""

    @property
    @abstractmethod
    def names(self) -> Collection[str]:
        """In the order in which they are best read."""

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
