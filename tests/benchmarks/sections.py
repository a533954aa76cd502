"""The sections of the benchmarks, by name, in the order in which ``make bench`` measures them."""

from __future__ import annotations

from tests.benchmarks.accuracy import Accuracy
from tests.benchmarks.gpu import Gpu
from tests.benchmarks.learner import Learner
from tests.benchmarks.rollout import Rollout
from tests.benchmarks.section import Section

SECTIONS: dict[str, Section] = {
    "accuracy": Accuracy(),
    "rollout": Rollout(),
    "learner": Learner(),
    "gpu": Gpu(),
}
