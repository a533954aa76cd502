"""Benchmarks that a stranger can run: ``make bench``.

- `section`, `sections` — what a section is, and all of them
- `running`, `results`, `machine`, `measured_code` — cells in processes of their own; their rows with date, commit,
  machine and versions
- `runs` — the same for benchmarks that are not sections: a run, a line of its file
- `work`, `ending` — the folder of a cell; its process, and all that it started, ended
- `spread`, `pages` — medians, exponents; figures in Markdown
- `accuracy` — wall time to a held-out accuracy, compared with TRL
- `rollout`, `learner`, `gpu` — tokens a second and memory, compared with `transformers.generate` and TRL; `micro` is
  what they share
- `real` — the same questions of a real model, and what is aimed at
- `orchestration` — bare commands, DVC, Prefect
- `trial` — the health rules on every planted fault, once
- `growth` — what costs how much more where there is more of it

Not sections, with commands of their own: `health` (the trial), `gap`, `triage`, `recipes`, `schedules`, `horizon`,
`staleness`, `audit` (holes), `styles`, and the ``test_*.py`` files, which print tables of single parts.
"""
