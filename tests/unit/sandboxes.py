"""What the tests of the sandbox share: a verifier that does what a text says, one prompt, and its verdicts."""

from __future__ import annotations

import sys
from pathlib import Path

from components.rewards.sandbox import Sandbox
from components.types import Completion, Prompt, Score

HOSTILE = (sys.executable, str(Path(__file__).with_name("hostile_worker.py")))
PROMPT = Prompt(id="p", text="6*7=", answer="42", solution="6*7=42#42")
RIGHT, WRONG = Score(1.0), Score(0.0)


def judge(sandbox: Sandbox, *texts: str) -> list[Score]:
    return sandbox.judge([(PROMPT, text) for text in texts])


def completion(text: str, tokens: int = 3) -> Completion:
    return Completion((1,) * tokens, (0.0,) * tokens, "stop", text)
