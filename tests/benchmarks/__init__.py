"""Benchmarks that a stranger can run: ``make bench``.

- `section`, `sections` — what a section is, and all of them
- `running`, `results`, `machine` — cells in processes of their own; their rows with date, machine and versions
- `spread`, `pages` — medians, exponents; figures in Markdown
- `accuracy` — wall time to a held-out accuracy, beside TRL
- `rollout`, `learner` — tokens a second and memory of sampling and of an update, beside `transformers.generate` and TRL
- `gpu` — updates of models with half a billion parameters and more, where there is a GPU
- `micro` — what these three measure with

Not sections, with commands of their own: `health` (the trial), `recipes`, `schedules`, `staleness`, and the
``test_*.py`` files, which print tables of single parts.
"""
