"""The gap between sampler and learner on the real model: `make gap`, hours, resumed by the same command.

- `arms` — precisions of the sampler, corrections, and the order in which they are run
- `distance` — how far the log-probabilities of sampler and learner are apart, and what a correction makes of it
- `start` — the same before any update, on more tokens
- `training` — one run: accuracy, distances, and the health rules that fired
- `figures` — tables over all runs that are there
"""
