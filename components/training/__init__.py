"""One GRPO run.

- `loop` — the loop
- `pipeline` — what is sampled for it, perhaps while it learns
- `assembly` — everything a run is made of, built from settings
- `run` — its stateful parts, saved and restored together
- `checkpoints`, `pending` — saving that in the background, which checkpoints are kept, rollouts in them
- `background` — the threads of both
- `update` — one update, from learner to sampler, how old its samples are, and whether it did what it was made for
- `watching` — the looks that a run takes at itself, none of which may end it
- `soundness`, `golden` — facts for `components.health.invariants`, and completions that are judged again
- `evidence` — what is remembered of earlier steps to judge later ones by
- `experiments` — what is tried before the policy is blamed
- `conduct` — carries out the responses to the monitor's verdicts
- `credit`, `redistribute` — advantages, and what RREDCoT computes with the policy for them
- `heldout`, `canaries`, `reference`, `second_opinion` — what it is measured against
"""
