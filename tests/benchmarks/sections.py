"""The sections of the benchmarks, by name, in the order in which ``make bench`` measures them."""

from __future__ import annotations

from tests.benchmarks.accuracy import Accuracy
from tests.benchmarks.gpu import Gpu
from tests.benchmarks.growth import Growth
from tests.benchmarks.hand_over import HandOver
from tests.benchmarks.learner import Learner
from tests.benchmarks.orchestration import Orchestration
from tests.benchmarks.plan import Plan
from tests.benchmarks.real import Real
from tests.benchmarks.rollout import Rollout
from tests.benchmarks.section import Section
from tests.benchmarks.trial import Trial

SECTIONS: dict[str, Section] = {
    "accuracy": Accuracy(),
    "rollout": Rollout(),
    "learner": Learner(),
    "real": Real(),
    "orchestration": Orchestration(),
    "health": Trial(),
    "gpu": Gpu(),
    "growth": Growth(),
    "hand_over": HandOver(),
    "plan": Plan(),
}
