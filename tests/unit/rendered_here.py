"""Chat templates that are rendered in the process of the tests."""

from __future__ import annotations

import pytest

from components.processes import rendering


def render_here(patch: pytest.MonkeyPatch) -> None:
    """Without the process with limits that imports transformers for each template, which takes more than a second.

    For templates that keep the limits: what is found out about them is the same.
    """

    def problem(
        template: str, special: tuple[tuple[str, str], ...], tokens: tuple[str, ...], kept: str = ""
    ) -> str | None:
        return rendering.render(template, dict(special), tokens, kept) or None

    patch.setattr(rendering, "problem", problem)
