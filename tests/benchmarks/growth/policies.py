"""A fresh policy of the demo's size."""

from __future__ import annotations

from collections.abc import Sequence

from components.config import Settings
from components.config.policy import TinyModel
from components.policy import Policy
from components.policy.tiny import build_model, build_tokenizer
from components.types import Prompt


def demo_policy(settings: Settings, prompts: Sequence[Prompt]) -> Policy:
    model = settings.policy.model
    if not isinstance(model, TinyModel):
        raise TypeError("the demo's model is made here")
    texts = [text for prompt in prompts[:2000] for text in (prompt.text, prompt.solution)]
    tokenizer = build_tokenizer(texts, model.vocab_size, model.max_positions)
    return Policy(build_model(model, tokenizer, 0), tokenizer)
