"""Attacks and bad inputs: whatever is fed to a command, it ends with exit code 0, 2 or 3, says why, and shows no
traceback, within `cases.SECONDS` and with at most `cases.MEMORY` more memory than the command itself.

- `cases` — a case, and what its end must be
- `mutations` — values, trees, texts and bytes that are never right
- `ground` — a project, a registry, a checkpoint and data that are as they should be
- `server` — a process that has everything loaded, and forks for each case
- `runner` — hands cases to that process
- ``test_*`` — a file per kind of input
"""
