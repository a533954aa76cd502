"""Typed settings. Importable without torch.

- `settings` — all sections; `root` — `Settings`, which checks that they go together, and which of them may change while
  a run stays the same
- `combinations` — the combinations that are refused, and why
- `tasks`, `reasoning_gym`, `sources`, `data` — what is learned, where it comes from, what is refused
- `verifiers`, `answers`, `consistency`, `sandbox`, `reward` — how a completion is judged
- `policy`, `scheduling`, `rollout`, `objective`, `training`, `dpo`, `evaluation`, `judgement` — the sections
  of the line
- `canaries` — frozen probe sets
- `sinks` — the trackers that show a run
- `record`, `registry` — what a run may cost, where it is kept, and where its checkpoint goes
- `identity` — what a setting counts for, stated at its field
- `reading` — YAML, `extends`, `--set`, and the resolved file
- `inputs`, `pins` — what settings name and a run reads, and whether it is what they have pinned
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.config.inputs import pin_inputs
    from components.config.reading import dump, load
    from components.config.root import Settings, substance

__all__ = ["Settings", "dump", "load", "pin_inputs", "substance"]
MODULES = {"Settings": "root", "dump": "reading", "load": "reading", "pin_inputs": "inputs", "substance": "root"}


def __getattr__(name: str) -> Any:
    """Load what is imported from here when it is: all sections take 0.2 s, and a verifier's process needs two."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)
