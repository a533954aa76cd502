"""The sections of the benchmarks, by name, in the order in which ``make bench`` measures them."""

from __future__ import annotations

from tests.benchmarks.accuracy import Accuracy
from tests.benchmarks.growth import Growth
from tests.benchmarks.section import Section

SECTIONS: dict[str, Section] = {
    "accuracy": Accuracy(),
    "growth": Growth(),
}
