"""What the terminal shows.

- `console` — live progress, read from the progress file; `summary` — a finished run
- `plan` — `evenkeel run --dry-run`; `memory_plan` — `evenkeel plan`
- `output` — printing that escapes control characters and reports a closed output
"""
