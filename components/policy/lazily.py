"""Tensors by name that are read when they are used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from torch import Tensor


class Lazily(Mapping[str, Tensor]):
    """A mapping that knows its names without reading a value."""

    names: Collection[str]
    """In the order in which they are best read."""

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class Read(Lazily):
    """Tensors of these names, each read by a function of its name."""

    def __init__(self, names: Collection[str], read: Callable[[str], Tensor]) -> None:
        self.names, self._read = names, read

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.names:
            raise KeyError(name)
        return self._read(name)
