"""``evenkeel``: run, watch, judge, approve.

- `runs` — ``run``, ``audit-verifier``, ``adopt``
- `plan` — ``plan``
- `nightly` — ``nightly``, ``reproduce``
- `launching` — ``launch``
- `cluster` — ``cluster status``, ``cluster logs``, ``cluster cancel``
- `deciding` — ``approve``, ``reject``, ``promote``, ``rollback``, ``adopt-policy``
- `registry` — ``history``, ``show``, ``verify``, ``pull``, ``export``, ``keys new``
- `watching` — ``status``, ``logs``, ``track``, ``cancel``, ``janitor``, ``compare``, ``audit``, ``gate``, ``rules``,
  ``params``, ``watch``
- `machine` — ``serve``, ``doctor``, ``init``, ``update``, ``version``, ``model fetch``, ``model convert``
- `base` — what they share: the application, its options, `main`

A module's commands register themselves when it is imported.
"""

try:
    # `--help` shows the commands in this order.
    # isort: off
    from flows.cli import runs, plan, launching, nightly, watching  # noqa: F401
    from flows.cli import deciding, registry, machine, cluster  # noqa: F401
    from flows.cli.base import app, main

    # isort: on
except KeyboardInterrupt:  # Ctrl-C in the half second that this takes, before `main` could turn it into an exit code
    raise SystemExit(130) from None

__all__ = ["app", "main"]
