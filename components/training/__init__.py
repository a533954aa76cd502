"""One GRPO run.

- `loop` — the loop
- `assembly` — everything a run is made of, built from settings
- `run` — its stateful parts, saved and restored together
- `heldout`, `reference` — what it is measured against
"""
