"""An engine seen as two servers, for faults of one of them: completions say which one wrote them, and one may go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from components.rollout import Engine, Sampling
from components.types import Completion
from tests.benchmarks.health.faults.base import AroundEngine, Fault
from tests.benchmarks.health.generated.base import Generated


def as_servers(engine: Engine, fault: Fault) -> Engine:
    """The engine, as two servers where the fault is one of a server."""
    if isinstance(fault, Generated) and fault.of_a_server:
        return _Servers(engine, fault)  # type: ignore[return-value]
    return engine


class _Servers(AroundEngine):
    """Every second prompt goes to server 0, which is broken, until it is excluded."""

    def __init__(self, inner: Engine, fault: Generated) -> None:
        super().__init__(inner)
        self._fault = fault

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        return [
            tuple(replace(one, server=1 if self._fault.excluded else place % 2) for one in group)
            for place, group in enumerate(super().generate(prompts, sampling))
        ]

    def exclude(self, server: int) -> bool:
        self._fault.excluded = self._fault.excluded or server == 0
        return True
