"""What is learned. Torch-free.

- `__main__` — writes generated problems to a file
- `turns` — families and levels take turns in a generated data set; its prompts; what its teachers forget
- `arithmetic` — generated problems with written-out steps, and a teacher that forgets
- `building_rules` — generated sentences of building regulations, to be written as structured expressions
- `calculator` — generated problems for a policy with a calculator, and a teacher who would rather guess
- `grade_school` — word problems in GSM8K's published form, read from files
- `reasoning_gym` — problems that the library of that name makes
- `countdown` — reach a target from some numbers: search, and a teacher who gives up
- `stereotypes` — questions about two people of made-up groups, in the form of BBQ, and one mislabelled item to plant

`TASKS` maps ``data.source.task`` to the generator of its prompts, which takes that section and a seed.
`FORMATS` maps ``data.source.format`` to the reader of an answer column: text to final answer and solution.
"""

from collections.abc import Callable

from components.tasks import arithmetic, building_rules, calculator, countdown, grade_school, stereotypes
from components.types import Prompt

TASKS: dict[str, Callable[..., list[Prompt]]] = {
    "arithmetic": arithmetic.generate,
    "building_rules": building_rules.generate,
    "calculator": calculator.generate,
    "countdown": countdown.generate,
    "stereotypes": stereotypes.generate,
}
FORMATS: dict[str, Callable[[str], tuple[str, str]]] = {"gsm8k": grade_school.read}

__all__ = ["FORMATS", "TASKS"]
