"""What the base model's own folder says about questions: their length in tokens, and its chat template. Torch-free."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from components.config.policy import PolicySettings
from components.errors import InputError
from components.files import read_json, read_text

MARKERS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<|eot_id|>",
    "<|start_header_id|>", "<|end_header_id|>", "<|begin_of_text|>", "<start_of_turn>", "<end_of_turn>", "[INST]",
    "[/INST]", "<<SYS>>",
)  # fmt: skip
"""Roles and turns in the field's chat formats; a question that holds one could speak in another role."""
PROBE = "What is 6 x 7? (Evenkeel's probe.)"


class Reader:
    """Counts tokens and knows the tokens that no question may hold.

    ``tokens`` is False where the policy is no folder with a `tokenizer.json`; lengths are then in characters only.
    """

    def __init__(self, policy: PolicySettings) -> None:
        model, chat = policy.model, policy.chat
        folder = model.path if model.kind == "checkpoint" else None
        path = folder / "tokenizer.json" if folder else None
        self._tokenizer = _tokenizer(path) if path and path.is_file() else None
        special = _special_tokens(path) if path and path.is_file() else set()
        self.forbidden = tuple(sorted(special | set(MARKERS)))
        if folder and chat:
            check_template(folder)

    @property
    def tokens(self) -> bool:
        return self._tokenizer is not None

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of every text, without special ones."""
        if self._tokenizer is None:
            raise ValueError("there is no tokenizer")
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch(texts, add_special_tokens=False)]

    def forbidden_in(self, text: str) -> str | None:
        """The first token of roles and turns that a text holds."""
        if "<" not in text and "[" not in text and all(token[:1] in "<[" for token in self.forbidden):
            return None
        return next((token for token in self.forbidden if token in text), None)


def _tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more precise
        how = "save the checkpoint's tokenizer again"
        raise InputError(f"not a tokenizer: {error}", where=path, how=how) from error


def _special_tokens(path: Path) -> set[str]:
    added = read_json(path, how="save the checkpoint's tokenizer again").get("added_tokens", [])
    return {entry["content"] for entry in added if entry.get("special") and entry.get("content", "").strip()}


def check_template(folder: Path) -> None:
    """Render a question as the policy will, and see that it is still there.

    Raises:
        InputError: the template cannot be rendered, or drops or changes the question.
    """
    template, tokens = chat_template(folder)
    if template is None:
        return  # the sft stage, which loads the checkpoint, says so
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: "2026-01-01"}
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
    how = "mend the chat template of the checkpoint, or set policy.chat to false for plain text"
    try:
        text = environment.from_string(template).render(
            messages=[{"role": "user", "content": PROBE}], add_generation_prompt=True, **tokens
        )
    except jinja2.TemplateError as error:
        raise InputError(f"the chat template cannot be rendered: {error}", where=folder, how=how) from error
    if PROBE not in text:
        raise InputError("the chat template loses the question", where=folder, how=how)


def chat_template(folder: Path) -> tuple[str | None, dict[str, Any]]:
    """The template of a checkpoint folder, and the special tokens that it may name."""
    path = folder / "tokenizer_config.json"
    config = read_json(path) if path.is_file() else {}
    tokens = {
        name: value["content"] if isinstance(value, dict) else value
        for name, value in config.items()
        if name.endswith("_token") and isinstance(value, str | dict)
    }
    if (folder / "chat_template.jinja").is_file():
        return read_text(folder / "chat_template.jinja"), tokens
    template = config.get("chat_template")
    if isinstance(template, list):  # several by name
        template = next((entry["template"] for entry in template if entry.get("name") == "default"), None)
    return template, tokens


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)
