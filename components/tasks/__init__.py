"""What is learned. Torch-free.

- `identity` — normalised text and content ids, shared by every source of prompts
- `turns` — families and levels take turns in a generated data set
- `arithmetic` — generated problems with written-out steps, and a teacher that forgets
- `building_rules` — generated sentences of building regulations, to be written as structured expressions
- `calculator` — generated problems for a policy with a calculator, and a teacher who would rather guess
- `countdown` — reach a target from some numbers: search, and a teacher who gives up

`TASKS` maps ``data.source.task`` to the generator of its prompts, which takes that section and a seed.
"""

from collections.abc import Callable

from components.tasks import arithmetic, building_rules, calculator, countdown
from components.types import Prompt

TASKS: dict[str, Callable[..., list[Prompt]]] = {
    "arithmetic": arithmetic.generate,
    "building_rules": building_rules.generate,
    "calculator": calculator.generate,
    "countdown": countdown.generate,
}

__all__ = ["TASKS"]
