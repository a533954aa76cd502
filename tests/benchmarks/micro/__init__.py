"""Rollout and learner beside `transformers.generate` and TRL: what the sections `rollout`, `learner` and `gpu` measure with.

- `shapes` — models with random weights, and a tokenizer for any vocabulary
- `rates` — several ways of doing the same, in turns, by processor time
- `memory` — peak memory above what was loaded
- `trl_trainer` — TRL's `GRPOTrainer` without its dataset loop
- `sampling` — ways of sampling a batch
- `groups`, `updating` — a batch of scored groups, and ways of making one update on it
- `flops` — the arithmetic of an update, and what GPUs can do at best
- `cases` — what is varied around a base, one axis at a time
- `figures` — tables of such cases; pure

Only `cases`, `flops` and `figures` do without torch: the sections import the others in the process of a cell.
"""
