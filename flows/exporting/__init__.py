"""Checkpoints on their way out of the registry, as what other programs load, each with a model card.

- `form` — safetensors, adapter, GGUF: what is written of a verified checkpoint
- `export` — verified, written whole or not at all, with the model card, made of the evidence by `card.jinja`
"""
