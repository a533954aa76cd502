"""One GRPO run.

- `loop` — the loop
- `pipeline`, `staleness` — what is sampled for it, perhaps while it learns, and how old that is
- `assembly` — everything a run is made of, built from settings
- `run` — its stateful parts, saved and restored together
- `checkpoints`, `keeping`, `pending` — how that is written beside the loop, which of it stays, and rollouts in it
- `background` — the threads of both
- `conduct` — carries out what the monitor's verdicts ask for
- `soundness`, `golden` — facts for `components.health.invariants`, and completions that are judged again
- `credit`, `bank`, `redistribute` — advantages, and what RREDCoT asks the policy for them
- `weights` — from learner to sampler
- `heldout`, `canaries`, `reference`, `second_opinion` — what it is measured against
"""
