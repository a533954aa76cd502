"""Frozen probe sets: what training must not change, and held-out accuracy does not show (arXiv 2606.10931).

- `items` — a probe, what an answer to it is worth, a set, a measurement
- `loaders` — published formats: questions with answers, CrowS-Pairs, refusal, form, multiple choice; `bbq` — BBQ
- `generated` — sets for the demo
- `sets` — what the settings name, read and checked
- `measuring` (torch) — measuring a set in one way or the other
- `judging` — what an answer is worth
- `figures` — accuracy, margin, bias, with standard errors; falls, their limits, and what so many probes can show
- `baseline` — the signals of a training step
- `comparison` — before and after training: `out/canaries.json`
- `verdict` — what that means for a promotion

`components.training.canaries` measures while training, `components.stages.canaries` before and after.
"""
