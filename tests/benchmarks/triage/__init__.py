"""What triage says of a checkpoint and a task, and what training gains: `make triage`, an hour.

- `pairs` — the pairs, and the half that the rule was chosen on
- `measuring` — one pair: the figures of triage, then training whatever the verdict
- `figures` — the table, and how often each half is judged rightly
"""
