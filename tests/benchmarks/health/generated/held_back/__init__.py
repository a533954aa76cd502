"""Mechanisms that were written apart from the rules, and that no rule is designed on.

- `data`, `schedules`, `verifiers` — of these parts
- `samplers`, `weights` — of the sampler, and of what it is handed over
- `learners`, `optimizers` — of the learner's batches, and of what is below it
- `settings` — of the settings
- `logs` — of what is reported
- `resumes` — of a run that is stopped and goes on
- `base` — what makes a kind one that is held back
"""

from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.data import DATA
from tests.benchmarks.health.generated.held_back.learners import LEARNERS
from tests.benchmarks.health.generated.held_back.logs import LOGS
from tests.benchmarks.health.generated.held_back.optimizers import OPTIMIZERS
from tests.benchmarks.health.generated.held_back.resumes import RESUMES
from tests.benchmarks.health.generated.held_back.samplers import SAMPLERS
from tests.benchmarks.health.generated.held_back.schedules import SCHEDULES
from tests.benchmarks.health.generated.held_back.settings import SETTINGS
from tests.benchmarks.health.generated.held_back.verifiers import VERIFIERS
from tests.benchmarks.health.generated.held_back.weights import WEIGHTS

HELD_BACK: tuple[type[Generated], ...] = (
    *DATA,
    *SCHEDULES,
    *VERIFIERS,
    *SAMPLERS,
    *WEIGHTS,
    *LEARNERS,
    *OPTIMIZERS,
    *SETTINGS,
    *LOGS,
    *RESUMES,
)

__all__ = ["HELD_BACK"]
