"""A log that another trainer is writing, judged while it grows.

- `tail` — the new lines of a file that may be rotated, cut short, or not there yet
- `live` — lines, read by whatever format they turn out to have, as steps that are judged once; and what has been said,
  in a small file, so that a restart says nothing twice
- `calls` — whom a grave verdict calls: a webhook, a command, a process to be stopped
"""
