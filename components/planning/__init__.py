"""How much memory the processes of a run's training take, before any of them is started.

- `shapes` — what a `config.json` says: parameters by kind, exactly, and of an adapter
- `passes` — parts, moments, processes; activations, logits, caches
- `held` — what a process of the learner holds, sharded or whole, and what the process with the loop holds besides
- `processes` — all processes, and what an inference server holds
- `fit` — what fits, and which setting helps
- `least` — what is needed at the least: the check of `run` and `launch`, without torch
"""
