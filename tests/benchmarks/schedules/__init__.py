"""How many completions each way to choose prompts needs until the policy reaches an accuracy on held-out prompts.

- `methods` — what is compared, and on which tasks
- `measure` — one run, and its curve of held-out accuracy over completions
- `figures` — the tables
"""
