"""Problems of several steps for a policy with a calculator (`components.tools`), and a teacher too proud to use it.

- `problems` — how each family draws a chain of operations and puts it into words or signs
- `generator` — distinct prompts with their demonstrations, spread evenly over families and levels
"""

from components.tasks.calculator.generator import generate

__all__ = ["generate"]
