"""What is learned. Torch-free.

- `identity` — normalised text and content ids, shared by every source of prompts
- `arithmetic` — generated problems with written-out steps, and a teacher that forgets

`TASKS` maps ``data.source.task`` to the generator of its prompts.
"""

from collections.abc import Callable

from components.config.data import GeneratedSource
from components.tasks import arithmetic
from components.types import Prompt

TASKS: dict[str, Callable[[GeneratedSource, int], list[Prompt]]] = {"arithmetic": arithmetic.generate}

__all__ = ["TASKS"]
