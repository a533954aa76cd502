"""The library reasoning-gym, as its tasks and its verifier use it.

- `library` — the only module that loads the library: data sets by name, and why one is refused
- `entries` — an entry as JSON that gives the same entry back: tuples stay tuples
"""
