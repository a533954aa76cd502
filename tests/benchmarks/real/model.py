"""Where the real model lies."""

from __future__ import annotations

from tests.code_graph import ROOT

MODEL = ROOT / "models" / "smollm2-135m-instruct"
VOCABULARY = 49_152


def missing() -> str:
    """Why nothing can be measured with it; "" where it is there."""
    return "" if (MODEL / "config.json").exists() else f"{MODEL.relative_to(ROOT)} is missing: make model"
