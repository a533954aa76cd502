"""Questions by the base model's own folder: their length in tokens, and its chat template. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from components.config.policy import PolicySettings
from components.errors import InputError
from components.files import read_json, read_text
from components.processes import rendering

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
            check_template(folder, special)

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


def check_template(folder: Path, special: set[str]) -> None:
    """Render a question as the policy will, in a process with limits, and see that it is still there.

    Raises:
        InputError: the template cannot be rendered, drops or changes the question, or ends an answer with one of the
            ``special`` tokens that is not the end token.
    """
    template, tokens = chat_template(folder)
    if template is not None:  # else the sft stage, which loads the checkpoint, says so
        rendering.check_template(template, tokens, special, folder, kept=PROBE)


def chat_template(folder: Path) -> tuple[str | None, dict[str, str]]:
    """The template of a checkpoint folder, and the special tokens that it may name.

    Raises:
        InputError: the tokenizer's configuration is no object, or its template no text.
    """
    path, how = folder / "tokenizer_config.json", "save the checkpoint's tokenizer again"
    config = read_json(path, how=how) if path.is_file() else {}
    if not isinstance(config, dict):
        raise InputError("expected a JSON object", where=path, how=how)
    # A special token stands alone or among its properties.
    named = {name: value for name, value in config.items() if name.endswith("_token")}
    contents = {name: value.get("content") if isinstance(value, dict) else value for name, value in named.items()}
    tokens = {name: text for name, text in contents.items() if isinstance(text, str)}
    if (folder / "chat_template.jinja").is_file():
        return read_text(folder / "chat_template.jinja"), tokens
    template = config.get("chat_template")
    if isinstance(template, list):  # several by name
        chosen = [entry for entry in template if isinstance(entry, dict) and entry.get("name") == "default"]
        template = chosen[0].get("template") if chosen else None
    if template is not None and not isinstance(template, str):
        raise InputError("the chat template is not plain text", where=path, how="write it as one string")
    return template, tokens
