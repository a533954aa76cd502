"""Pairs to learn from: those of a run, or texts from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from components.dpo.pairs import Answer, Pair
from components.errors import InputError
from components.files import read_numbered_jsonl
from components.policy import Policy
from components.seeds import derive
from components.sft.trainer import encode
from components.tools import Tool
from components.types import Prompt

TEXTS = ("prompt", "chosen", "rejected")


def read_pairs(path: Path) -> list[Pair]:
    """The pairs that a training run stored, token ids as they were sampled.

    Raises:
        InputError: the file is missing, or a line is not a pair (the line number is named).
    """
    how = "run the train stage again; pairs from elsewhere are named under dpo.pairs"
    pairs = []
    for number, row in read_numbered_jsonl(path, how=how):
        try:
            pairs.append(Pair.from_row(row))
        except (KeyError, TypeError) as error:
            raise InputError(f"not a stored pair: {error}", where=f"{path}:{number}", how=how) from error
    return pairs


def import_pairs(path: Path, policy: Policy, tool: Tool | None = None) -> list[Pair]:
    """Pairs from a file of texts, tokenised as demonstrations are: what a ``tool`` would write is not to be learned.

    Raises:
        InputError: the file is missing, or a line lacks one of the three texts, says nothing, or holds tokens of the
            chat template (its number is named).
    """
    pairs, special = [], policy.special_tokens
    for number, row in read_numbered_jsonl(path):
        prompt, *texts = _texts(row, f"{path}:{number}", special)
        chosen, rejected = (_answer(policy, text, tool) for text in texts)
        pairs.append(Pair(f"line {number}", -1, prompt, policy.encode_prompt(prompt), chosen, rejected))
    return pairs


def _answer(policy: Policy, text: str, tool: Tool | None) -> Answer:
    if tool is None:
        return Answer(text, policy.encode_answer(text))
    row = encode(policy, Prompt(id="", text="", answer="", solution="", demonstration=text), tool)
    return Answer(text, row.answer, row.learned)


def _texts(row: Mapping[str, Any], where: str, special: Sequence[str]) -> list[str]:
    """Prompt, chosen and rejected of one line, without ``special`` tokens."""
    for name in TEXTS:
        if name not in row:
            found = ", ".join(map(repr, row)) or "none"
            raise InputError(f"missing column {name!r}", where=where, how=f"a pair has {_AND}; found: {found}")
        if not isinstance(row[name], str):
            how = "write plain texts: of a conversation, the question and the one answer that is compared"
            raise InputError(f"{name!r} is not a text but {type(row[name]).__name__}", where=where, how=how)
        if not row[name].strip():
            raise InputError(f"{name!r} is empty", where=where, how="fix or remove that line")
        if token := next((token for token in special if token in row[name]), None):
            how = "give the text alone: the chat template and the end token are added here"
            raise InputError(f"{name!r} holds the special token {token}", where=where, how=how)
    if row["chosen"] == row["rejected"]:
        raise InputError("chosen and rejected are the same text", where=where, how="fix or remove that line")
    return [row[name] for name in TEXTS]


_AND = ", ".join(map(repr, TEXTS))


def check_lengths(pairs: Sequence[Pair], limit: int | None) -> None:
    """Refuse a pair that is longer than the model's positions."""
    for pair in pairs:
        if limit is not None and pair.length > limit:
            raise InputError(
                f"prompt and answer have {pair.length} tokens, the model has {limit} positions",
                where=f"pair of {pair.prompt_id}",
                how="remove that pair, or use a longer model",
            )


def hold_out(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Pairs to train on, and pairs to measure on. All pairs of a prompt are on one side, whatever else is there."""
    held = [derive(seed, "held-out pairs", pair.prompt) < share * 2**63 for pair in pairs]
    trained = [pair for pair, out in zip(pairs, held, strict=True) if not out]
    return trained, [pair for pair, out in zip(pairs, held, strict=True) if out]
