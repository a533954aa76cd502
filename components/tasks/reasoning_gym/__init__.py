"""Problems of the library reasoning-gym, each with the entry that the library's own scorer needs.

- `library` — the only module that loads the library: data sets by name, and why one is refused
- `entries` — an entry as JSON that gives the same entry back: tuples stay tuples
- `process` — makes entries in a process of its own, where neither hash order nor earlier draws count
- `generator` — entries to prompts, and the check of a source before a run
"""

from components.tasks.reasoning_gym.generator import check_sources, generate

__all__ = ["check_sources", "generate"]
