"""What looks at the signals of a run and says when something is wrong.

- `base` — the `Detector` seam
- `rules` — a file of rules; and `PLAIN`, the one rule that everybody starts with
- `thresholds`, `cusum` — two ways without rules, tuned on healthy runs

`detectors_of` maps a name to each of them; the first is what the others are held against.
"""

from collections.abc import Mapping, Sequence

from components.config.judgement import RuleSettings
from components.types import StepRecord
from tests.benchmarks.health.detectors import cusum, thresholds
from tests.benchmarks.health.detectors.base import Alarm, Detector
from tests.benchmarks.health.detectors.rules import PLAIN, Rules


def detectors_of(rules: Mapping[str, RuleSettings], healthy: Sequence[Sequence[StepRecord]]) -> dict[str, Detector]:
    """The detectors, those without rules tuned on these healthy runs."""
    return {
        "rules": Rules(rules),
        "entropy < 0.5": PLAIN,
        "thresholds": thresholds.tuned(healthy),
        "CUSUM": cusum.tuned(healthy),
    }


__all__ = ["Alarm", "Detector", "Rules", "detectors_of"]
