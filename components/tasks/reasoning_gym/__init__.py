"""Problems of the library reasoning-gym (`components.reasoning_gym`), each with the entry that its own scorer needs.

- `process` — makes entries in a process of its own, where neither hash order nor earlier draws count
- `generator` — entries to prompts, and the check of a source before a run
"""

from components.tasks.reasoning_gym.generator import check_sources, generate

__all__ = ["check_sources", "generate"]
