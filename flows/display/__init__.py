"""What the terminal shows.

- `console` — live progress, read from the progress file; `summary` — `evenkeel run --dry-run`, and a finished run
- `memory_plan` — `evenkeel plan`
- `output` — printing that escapes control characters and reports a closed output
"""
