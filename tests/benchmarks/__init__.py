"""Benchmarks that a stranger can run: ``make bench``.

- `section`, `sections` — what a section is, and all of them
- `running`, `results`, `machine` — cells in processes of their own; their rows with date, machine and versions
- `spread`, `pages` — medians, exponents; figures in Markdown
- `accuracy` — wall time to a held-out accuracy, beside TRL
- `growth` — cost curves over prompts, steps, checkpoints and pods

Not sections, with commands of their own: `health` (the trial), `recipes`, `schedules`, `staleness`, and the
``test_*.py`` files, which print tables of single parts.
"""
