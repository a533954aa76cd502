"""``evenkeel``: run, watch, judge, approve.

- `runs` — ``run``, ``audit-verifier``
- `nightly` — ``nightly``
- `judging` — ``audit``, ``gate``, ``rules``, ``params``
- `deciding` — ``approve``
- `serving` — ``serve``
- `machine` — ``doctor``
- `base` — what they share: the application, its options, `main`

A module's commands register themselves when it is imported.
"""

# isort: off - `--help` shows the commands in this order
from flows.cli import deciding, judging, machine, nightly, runs, serving
from flows.cli.base import app, main

# isort: on

__all__ = ["app", "deciding", "judging", "machine", "main", "nightly", "runs", "serving"]
