"""Typed settings. Importable without torch.

- `settings` — all sections; `root` — `Settings`, which checks that they go together
- `combinations` — the combinations that are refused, and why
- `tasks`, `reasoning_gym`, `sources`, `data` — what is learned, where it comes from, what is refused
- `verifiers`, `answers`, `runners`, `consistency`, `sandbox`, `reward` — how a completion is judged
- `policy`, `scheduling`, `rollout`, `objective`, `training`, `dpo`, `evaluation`, `judgement` — the sections
  of the line
- `canaries` — frozen probe sets
- `sinks` — the trackers that show a run
- `budget`, `record`, `registry` — what a run may cost, where it is kept, and where its checkpoint goes
- `identity`, `logistics` — what a setting counts for, stated at its field; which may change while a run stays the same
- `load` — YAML, `extends`, `--set`, input digests, and the resolved file
"""

from components.config.load import dump, load, pin_inputs
from components.config.logistics import substance
from components.config.root import Settings

__all__ = ["Settings", "dump", "load", "pin_inputs", "substance"]
