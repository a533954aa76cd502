"""Word problems in the form in which GSM8K was published (2110.14168). They are read, not generated.

- `reader` — the final number and the solution without calculator annotations
"""

from components.tasks.grade_school.reader import read

__all__ = ["read"]
