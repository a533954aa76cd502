"""Faults that are composed at random: a mechanism x a form x an onset x a size, drawn by seed.

- `forms` — when a fault is there, and what of a step it touches
- `data`, `schedules`, `verifiers`, `samplers`, `learners` — the mechanisms, by the part that they break
- `held_back` — mechanisms of all parts that rules are never designed on
- `drawing` — which faults a trial consists of, and which of them rules may be designed on

`MECHANISMS` maps a name to its class.
"""

from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.data import DATA
from tests.benchmarks.health.generated.held_back import HELD_BACK
from tests.benchmarks.health.generated.learners import LEARNERS
from tests.benchmarks.health.generated.samplers import SAMPLERS
from tests.benchmarks.health.generated.schedules import SCHEDULES
from tests.benchmarks.health.generated.verifiers import VERIFIERS

MECHANISMS: dict[str, type[Generated]] = {
    kind.__name__.lower(): kind for kind in (*DATA, *SCHEDULES, *VERIFIERS, *SAMPLERS, *LEARNERS, *HELD_BACK)
}

__all__ = ["MECHANISMS", "Generated"]
