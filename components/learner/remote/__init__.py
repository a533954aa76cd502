"""A learner in processes of its own.

On the run's side:

- `learner` — the `Learner` that the loop sees
- `link` — its connection to rank 0, and what is said when ranks fail
- `processes` — ranks that the run starts on this machine

On the ranks' side, below `components.learner.worker`:

- `place` — which rank it is, from its environment
- `entrance` — where rank 0 lets its run in
- `session` — what a rank does for its run

And between them:

- `protocol` — commands, and what both sides must agree about
- `wire` — messages: JSON and safetensors
- `folders` — what is loaded and saved, where they have no folder in common
"""
