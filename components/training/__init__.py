"""One GRPO run.

- `loop` — the loop
- `assembly` — everything a run is made of, built from settings
- `run` — its stateful parts, saved and restored together
- `conduct` — carries out what the monitor's verdicts ask for
- `credit`, `bank`, `redistribute` — advantages, and what RREDCoT asks the policy for them
- `weights` — from learner to sampler
- `heldout`, `canaries`, `reference`, `second_opinion` — what it is measured against
"""
