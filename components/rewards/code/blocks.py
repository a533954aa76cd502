"""Which part of a completion is the code: fenced blocks, read line by line (https://spec.commonmark.org, 4.5)."""

from __future__ import annotations

import re
from typing import NamedTuple

PYTHON = {"python", "python3", "py", "py3"}
_LINE_END = re.compile(r"\r\n|\n|\r")
_OPENING = re.compile(r"([ \t]*)(`{3,}|~{3,})([^`]*)")
_OPENING_AFTER_WORDS = re.compile(r"().*?(?<!`)(`{3,}+)[ \t]*((?:python|py)3?\b[^`]*)", re.IGNORECASE)
_WORD = re.compile(r"[\s{.]*([\w+-]*)")


class Block(NamedTuple):
    """``language`` is the first word after the opening fence, in small letters; empty where none is."""

    language: str
    code: str


def blocks(text: str) -> list[Block]:
    """Fenced blocks in order. A fence is closed by one of its kind that is as long or longer and has nothing after it;
    one that is never closed reaches to the end. Code that is indented like its fence is moved to the left.
    """
    found: list[Block] = []
    lines = iter(_LINE_END.split(text))
    for line in lines:
        opening = _OPENING.fullmatch(line) or _OPENING_AFTER_WORDS.fullmatch(line)
        if opening is None:
            continue
        indentation, fence, info = opening.groups()
        body = []
        for inner in lines:
            if _closes(inner.strip(" \t"), fence):
                break
            body.append(inner)
        else:
            body = _without_trailing(fence, body)
        word = _WORD.match(info)
        found.append(Block(word[1].lower() if word else "", "\n".join(_moved_left(len(indentation), body))))
    return found


def _closes(line: str, fence: str) -> bool:
    return len(line) >= len(fence) and not line.strip(fence[0])


def _moved_left(columns: int, body: list[str]) -> list[str]:
    """Without the opening's indentation, where all of the lines have it: the words before it may be cut off."""
    common = min((len(line) - len(line.lstrip(" \t")) for line in body if line.strip()), default=0)
    return [line[min(columns, common) :] for line in body]


def _without_trailing(fence: str, body: list[str]) -> list[str]:
    """A fence behind the last line of code, at the very end of the text, closes the block too."""
    text = "\n".join(body).rstrip()
    return text.removesuffix(fence).split("\n") if text.endswith(fence) else body


def code_block(text: str) -> str | None:
    """The last block that says it is Python, or else the last that does not say what it is."""
    found = blocks(text)
    python = [block.code for block in found if block.language in PYTHON]
    unnamed = [block.code for block in found if not block.language]
    return python[-1] if python else unnamed[-1] if unnamed else None
