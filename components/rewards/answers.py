"""Where a completion states its answer, and whether that answer is what it looks like."""

from __future__ import annotations

import re
import unicodedata

from components.rewards.base import final_answer

HIDDEN = r"\x00-\x08\x0e-\x1f\x7f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
"""Characters of a regular expression's class that show nothing, turn the direction of writing, or are none at all."""
_HIDDEN = re.compile(f"[{HIDDEN}]")
_BOX = re.compile(
    r"\\(?:boxed|fbox)\s*(?:(?P<brace>\{)"
    r"|(?P<bare>-?[0-9]+(?:\.[0-9]+)?|[A-Za-z])(?=[ \t]*(?:[.,;][ \t]*)?(?:\$|\\[)\]]|\n|\Z)))"
)
"""Without braces, as some solutions of MATH have it: a number or a letter with which the formula or the line ends."""


READ, LINES = 20_000, 40
"""Characters and lines after the marker among which the answer is looked for."""


def stated(text: str, marker: str | None) -> str | None:
    """What follows the last ``marker``; without a marker what the last ``\\boxed{}`` holds. None: no answer.

    A box after the marker counts for what is in it.
    """
    if not marker:
        return last_box(text)
    answer = final_answer(text, marker)
    if answer is None:
        return None
    box = last_box(answer)
    return answer if box is None else box


def answer_line(text: str, marker: str) -> str | None:
    """The line that states the answer after the last ``marker``, or None where there is none.

    It is the first that is not empty, with the lines that end what it begins: braces, an environment, a formula in
    lines of its own. A line with a colon at the end announces the next. Boxes are taken off where they stand.
    """
    answer = final_answer(text, marker)
    if answer is None:
        return None
    lines = iter(answer.strip()[:READ].split("\n", LINES)[:LINES])
    line = next(lines)
    for more in lines:
        if not (_open(line) or line.rstrip().endswith(":")):
            break
        line = f"{line}\n{more}"
    return unboxed(line)


def _open(line: str) -> bool:
    braces = line.count("{") - line.count("\\{") - line.count("}") + line.count("\\}")
    formula = line.count("$$") % 2 or line.count(r"\[") > line.count(r"\]")
    return bool(braces > 0 or formula or line.count(r"\begin{") > line.count(r"\end{") or not line.strip())


def unboxed(line: str) -> str:
    """The line with what its box holds in place of the box; with several boxes it is left as it is."""
    boxes = [*_BOX.finditer(line)]
    if len(boxes) != 1:
        return line
    held = last_box(line)
    if held is None:
        return line
    begin, end = boxes[0].start(), line.index(held, boxes[0].start()) + len(held)
    return f"{line[:begin]} {held} {line[end + (boxes[0]['brace'] is not None) :]}"


def last_box(text: str) -> str | None:
    """What stands in the last ``\\boxed{}``, or None where there is none or it does not end. ``$\\boxed 2$`` is 2."""
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    if bare := boxes[-1]["bare"]:
        return bare
    begin, depth = boxes[-1].end(), 1
    for at in range(begin, len(text)):
        if text[at] in "{}" and text[at - 1] != "\\":
            depth += 1 if text[at] == "{" else -1
            if not depth:
                return text[begin:at]
    return None


def deceptive(answer: str) -> bool:
    """It contains invisible characters, or digits that only look like 0 to 9."""
    return _HIDDEN.search(answer) is not None or (
        not answer.isascii() and any(unicodedata.category(c) == "Nd" and not c.isascii() for c in answer)
    )


def depth(answer: str) -> int:
    """How deep its brackets are nested, of whatever kind. One that closes nothing does not make room for another."""
    now = deepest = 0
    for character in answer:
        now = max(0, now + (character in "([{") - (character in ")]}"))
        deepest = max(deepest, now)
    return deepest
