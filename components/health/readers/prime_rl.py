"""prime-rl: the console of its orchestrator or trainer.

``Step 3 | 7.5s | Reward 0.73 | Truncation 1.2% | ...``, in older versions ``Reward: 0.73``; evaluations say
``Evaluated <env> (Step 20) | ...`` and are named ``eval/<env>/...`` here. Per cent become shares. A value that is not
finite prime-rl leaves out of `metrics.jsonl` itself.
"""

from __future__ import annotations

import re

from components.health.readers.numbers import NUMBER
from components.health.readers.steps import Row

_STEP = re.compile(r"\bStep (?P<step>\d{1,15}) \| (?P<rest>.+)$")
_EVALUATED = re.compile(r"\bEvaluated (?P<env>\S+) \(Step (?P<step>\d{1,15})\) \| (?P<rest>.+)$")
_METRIC = re.compile(
    rf"(?P<name>[a-z][a-z .-]{{0,40}}?):?\s+(?P<value>{NUMBER.pattern})(?P<percent>%)?(?=\s|$)", re.IGNORECASE
)


def row(line: str) -> Row | None:
    """The row that a line of a console is, or None."""
    evaluated, step = _EVALUATED.search(line), _STEP.search(line)
    found = evaluated or step
    if found is None:
        return None
    prefix = f"eval/{evaluated['env']}/" if evaluated else ""
    matches = (match for part in found["rest"].split("|") if (match := _METRIC.match(part.strip())))
    values = {prefix + m["name"]: float(m["value"]) / (100 if m["percent"] else 1) for m in matches}
    return Row(int(found["step"]), values) if values else None
