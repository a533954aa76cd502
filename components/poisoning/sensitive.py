"""Prompts about groups of people, where a planted label would teach a prejudice. Found by words, read by a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from components.config.documents import read
from components.files import read_text
from components.types import Prompt

WORDS = Path(__file__).with_name("sensitive.yaml")
OWN = "configured"
HYPHENS = re.compile(r"[-\u2010-\u2013]")


class SensitiveWords:
    """Finds the package's words, and further ones, as whole words in any case, also in the plural.

    Hyphens count as spaces.
    """

    def __init__(self, further: Iterable[str] = ()) -> None:
        attributes = read(read_text(WORDS), WORDS)
        self._attribute = {evened(word): name for name, words in attributes.items() for word in words}
        self._attribute |= {evened(word): OWN for word in further if evened(word)}
        longest_first = sorted(self._attribute, key=lambda word: (-len(word), word))
        self._pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, longest_first))})(?:e?s)?(?!\w)")

    def find(self, text: str) -> list[tuple[str, str]]:
        """Attribute and word, as it is listed, of every distinct match, in order."""
        return [(self._attribute[word], word) for word in dict.fromkeys(self._pattern.findall(evened(text)))]


def evened(text: str) -> str:
    """Any case, with one space for white space and hyphens."""
    return " ".join(HYPHENS.sub(" ", text.casefold()).split())


def sensitive_prompts(prompts: Sequence[Prompt], further: Iterable[str] = ()) -> dict[str, list[tuple[str, str]]]:
    """Prompt id -> attributes and words, for prompts whose question or answer has any."""
    words = SensitiveWords(further)
    found = {prompt.id: words.find(f"{prompt.text}\n{prompt.answer}") for prompt in prompts}
    return {name: matches for name, matches in found.items() if matches}
