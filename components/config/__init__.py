"""Typed settings. Importable without torch.

- `settings` — the root `Settings`
- `combinations` — what it refuses, and why
- `tasks`, `sources`, `data`; `policy`, `scheduling`, `rollout`, `verifiers`, `consistency`, `reward`, `objective`, `training`, `judgement` — the
  sections, in the order of the pipeline
- `load` — YAML, `extends`, `--set`, input digests, and the resolved file
"""

from components.config.load import dump, load, pin_inputs
from components.config.settings import Settings

__all__ = ["Settings", "dump", "load", "pin_inputs"]
