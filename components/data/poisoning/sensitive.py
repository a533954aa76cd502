"""Prompts about groups of people, where a planted label would teach a prejudice. Found by words, read by a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from components.types import Prompt

WORDS = Path(__file__).with_name("sensitive.yaml")
OWN = "configured"


class SensitiveWords:
    """Finds the package's words, and further ones, as whole words in any case."""

    def __init__(self, further: Iterable[str] = ()) -> None:
        attributes = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
        self._attribute = {word.casefold(): name for name, words in attributes.items() for word in words}
        self._attribute |= {" ".join(word.casefold().split()): OWN for word in further if word.strip()}
        longest_first = sorted(self._attribute, key=lambda word: (-len(word), word))
        self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    def find(self, text: str) -> list[tuple[str, str]]:
        """Attribute and word of every distinct match, in order."""
        even = " ".join(text.casefold().split())
        return [(self._attribute[word], word) for word in dict.fromkeys(self._pattern.findall(even))]


def sensitive_prompts(prompts: Sequence[Prompt], further: Iterable[str] = ()) -> dict[str, list[tuple[str, str]]]:
    """Prompt id -> attributes and words, for prompts whose question or answer has any."""
    words = SensitiveWords(further)
    found = {prompt.id: words.find(f"{prompt.text}\n{prompt.answer}") for prompt in prompts}
    return {name: matches for name, matches in found.items() if matches}
