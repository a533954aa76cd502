"""Admission against poisoning: a single repeated or mislabelled item is enough to turn a policy (2606.10931).
Stage `admission` looks at prompts that `components.data` has admitted; `components.data.concentration` at all rows.

- `planned` — too few distinct prompts a step, or one prompt with too many of the planned draws
- `audited` — which prompts the label audit samples first, and which share what it finds
- `labels` — labels that the base policy never gives although it always gives another one
- `sensitive` — words for groups of people (`sensitive.yaml`)
"""
