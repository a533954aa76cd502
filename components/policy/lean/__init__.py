"""Lean forward passes of dense decoders on CPUs.

Transformers computes the same in several times as many operations, most of which copy, and on padding as well as on
tokens. `model` is the pass with gradients that scores and trains; `components.rollout.dense` is the one that samples.

- `known` — which models may be computed so
- `packing` — what of a padded batch is computed at all, and attention over it
- `model` — the pass
- `products`, `layers`, `rotary`, `targets` — its operations, each with its gradient; linear layers may have adapters
"""
