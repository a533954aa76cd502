"""The loss, as a composition: advantage x ratio x aggregation x KL x sampler correction.

- `advantages` — rewards of groups -> advantages (`ADVANTAGES`)
- `gae` — values of a critic -> advantages, for PPO
- `ratios` — trust region per token (`RATIOS`)
- `aggregation` — weight of every token (`AGGREGATIONS`)
- `kl` — distance to the reference as a loss term (`KLS`)
- `corrections` — sampler against trainer (`CORRECTIONS`)
- `exploration` — tokens that are singled out (`SELECTIONS`)
- `controllers` — coefficients that follow a measurement
- `objective` — puts one of each together
- `tokens` — what all of them work on
- `dpo` — next to the composition: the loss of a pair of completions

Everything is a pure function of tensors. Losses are minimised; log-probabilities, entropy and KL are in nats.
"""
