"""Arithmetic with written-out steps, in families and difficulty levels.

- `columns` — column arithmetic as text, right or with forgotten carries and borrows
- `families` — how each family draws its questions
- `generator` — distinct prompts, spread evenly over families and levels
"""

from components.tasks.arithmetic.generator import generate

__all__ = ["generate"]
