"""`docs/manual.md`, made from the code: every command with its options, every setting with its default.

- `commands` — from the command line's own definitions, and what `--json` prints
- `settings` — from the JSON schema of `components.config.Settings`

``python -m flows.manual > docs/manual.md`` makes the page; a test compares.
"""
