"""Sentences of building regulations and the structured expressions that say the same.

"Every corridor that serves more than 50 people must be at least 1.2 m wide." is
``class Corridor { if people(over=50) require width(min=1.2, unit=m) }``, a skeleton in the language of
`components.rewards.structure`.

- `rules` — what a rule consists of, as a sentence and as an expression, whole or with parts forgotten
- `phrases` — how each family words its requirements, and what they mean
- `generator` — distinct prompts, spread evenly over families and levels
"""

from components.tasks.building_rules.generator import generate

__all__ = ["generate"]
