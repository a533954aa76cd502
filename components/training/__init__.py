"""One GRPO run.

- `loop` — the loop
- `run` — its stateful parts, saved and restored together
- `heldout`, `reference` — what it is measured against
"""
