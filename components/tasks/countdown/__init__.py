"""Reach a target from some numbers, each used at most once: a task of search, and a teacher who gives up too early.

- `problems` — how each family draws numbers and a target, the way there and ways that miss it
- `generator` — distinct prompts with their demonstrations, spread evenly over families and levels
"""

from components.tasks.countdown.generator import generate

__all__ = ["generate"]
