"""What a checkpoint folder may hold. No torch, and nothing of the registry: stages that only load a checkpoint use it.

- `checks` — whether a folder may be loaded, proposed or promoted
- `names`, `contents` — the names of its files and what they may hold
- `tensors`, `figures` — the headers of its weights, and the numbers of its configuration
"""
