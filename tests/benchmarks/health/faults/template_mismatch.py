"""Another template.

In the field: the chat template of another model, or an instruction that SFT never saw. Training prompts and those that
the policy is for are not the same language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from components.types import Prompt
from tests.benchmarks.health.faults.base import Fault

TEMPLATE = "### Instruction:\n{text}\n### Response:\n"


class TemplateMismatch(Fault):
    """The text of every training prompt stands inside a template of instruction and response; dev is as in SFT."""

    def prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return [replace(prompt, text=TEMPLATE.format(text=prompt.text)) for prompt in prompts]
