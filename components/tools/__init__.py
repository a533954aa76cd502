"""Tools that a policy may call while it writes. Torch-free.

- `base` — the `Tool` seam
- `calculator` — arithmetic in the form that GSM8K was published in
- `expressions` — what the calculator understands

`TOOLS` maps ``rollout.tool.kind`` to its class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.tools.base import Segment, Tool
from components.tools.calculator import Calculator

if TYPE_CHECKING:  # a verifier's process has expressions, and no settings
    from components.config.rollout import CalculatorTool

TOOLS: dict[str, type[Calculator]] = {"calculator": Calculator}


def build_tool(settings: CalculatorTool) -> Tool:
    """The tool that the settings name."""
    return TOOLS[settings.kind]()


__all__ = ["TOOLS", "Segment", "Tool", "build_tool"]
