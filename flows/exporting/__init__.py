"""Checkpoints on their way out of the registry, as what other programs load, each with a model card.

- `form` — safetensors, adapter, GGUF: what is written of a verified checkpoint
- `card` — the model card, made of the candidate's evidence by `card.jinja`
- `export` — verified, written whole or not at all
"""
