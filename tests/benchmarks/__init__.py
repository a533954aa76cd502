"""Benchmarks that a stranger can run: ``make bench``.

- `section`, `sections` — what a section is, and all of them
- `running`, `results`, `machine` — cells in processes of their own; their rows with date, machine and versions
- `spread`, `pages` — medians, exponents; figures in Markdown
- `accuracy` — wall time to a held-out accuracy, beside TRL
- `rollout`, `learner`, `gpu` — tokens a second and memory, beside `transformers.generate` and TRL; `micro` is what they
  share
- `orchestration` — bare commands, DVC, Prefect
- `trial` — the health rules on every planted fault, once
- `growth` — what costs how much more where there is more of it

Not sections, with commands of their own: `health` (the trial), `recipes`, `schedules`, `staleness`, and the
``test_*.py`` files, which print tables of single parts.
"""
