"""PPO and GRPO on a game of several turns: `make horizon`, an hour or more; existing results are not repeated.

- `doors` — the game, an environment of the library verifiers
- `measuring` — one run from the SFT checkpoint of its seed
- `figures` — the table
"""
