"""Rollout and learner compared with `transformers.generate` and TRL: how `rollout`, `learner` and `gpu` measure.

- `shapes` — models with random weights, and a tokenizer for any vocabulary
- `rates` — several ways of doing the same, in turns, by processor time
- `memory` — peak memory above what was loaded
- `trl_trainer` — TRL's `GRPOTrainer` without its dataset loop
- `sampling` — ways of sampling a batch
- `groups`, `updating` — a batch of scored groups, and ways of making one update on it
- `on_gpu`, `flops` — one update on a GPU; its arithmetic, and what GPUs can do at best
- `cases`, `agreement` — what is varied around a base, one thing at a time; whether two updates were the same
- `figures` — tables of such cases; pure
- `operations` — a command: single operations of the lean pass compared with what they replace, for docs/performance.md

`cases`, `agreement`, `flops`, `figures` and `rates` do without torch; the sections import the others in the process
of a cell.
"""
