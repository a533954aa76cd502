"""Direct preference optimisation, as a stage of its own.

- `pairs` — what a pair is, and the pairs of a training step's groups; no torch
- `dataset` — pairs read back from a run, or from a file of texts, and which of them are held out
- `trainer` — the updates

The loss is `components.objectives.dpo`.
"""
