"""Where a completion states its answer, and whether that answer is what it looks like."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from components.rewards.base import final_answer

_HIDDEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Characters that show nothing, turn the direction of writing, or are none at all."""
_BOX = re.compile(
    r"\\(?:boxed|fbox)\s*(?:(?P<brace>\{)"
    r"|(?P<bare>-?[0-9]+(?:\.[0-9]+)?|[A-Za-z])(?=[ \t]*(?:[.,;][ \t]*)?(?:\$|\\[)\]]|\n|\Z)))"
)
"""Without braces, as some solutions of MATH have it: a number or a letter with which the formula or the line ends."""
_FRAME = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")
_JOINED = re.compile(r"[ \t$)\\]*(?:,|;|,?\s?(?:\\text\{\s?)?(?:and|or)(?:\s?\})?)[ \t$(\\]*")
"""What stands between two boxes that are one answer."""
_THOUGHT = "</think>"
_FENCE = re.compile(r"`{3}\w*")

READ, LINES = 20_000, 40
"""Characters and lines after the marker among which the answer is looked for."""


def stated(text: str, marker: str | None) -> str | None:
    """What follows the last ``marker``; without a marker what the last ``\\boxed{}`` holds. None: no answer.

    A box after the marker counts for what is in it.
    """
    if not marker:
        return last_box(text)
    answer = final_answer(thought_out(text), marker)
    if answer is None:
        return None
    box = last_box(answer)
    return answer if box is None else box


def answer_line(text: str, marker: str) -> str | None:
    """The line that states the answer after the last ``marker``, or None where there is none.

    It is the first that is not empty, with the lines that end what it begins: braces, an environment, a formula in
    lines of its own. A line with a colon at the end announces the next. Boxes are taken off where they stand, and so
    is the end of bold type that begins before the marker.
    """
    before, found, answer = thought_out(text).rpartition(marker)
    if not found:
        return None
    if before.rpartition("\n")[2].count("**") % 2:
        answer = answer.replace("**", "", 1)
    lines = (line for line in answer.strip()[:READ].split("\n", LINES)[:LINES] if not _FENCE.fullmatch(line.strip()))
    line = next(lines, "")
    for more in lines:
        if not (_open(line) or line.rstrip().endswith(":")):
            break
        line = f"{line}\n{more}"
    return unboxed(line)


def _open(line: str) -> bool:
    braces = line.count("{") - line.count("\\{") - line.count("}") + line.count("\\}")
    formula = line.count("$$") % 2 or line.count(r"\[") > line.count(r"\]")
    return bool(braces > 0 or formula or line.count(r"\begin{") > line.count(r"\end{") or not line.strip())


def thought_out(text: str) -> str:
    """What follows the thinking; the whole text where nothing does."""
    return after if (after := text.rpartition(_THOUGHT)[2]).strip() else text


def unboxed(line: str) -> str:
    """The line with what its box holds in place of the box; with several boxes it is left as it is."""
    boxes = _boxes(line)
    if len(boxes) != 1 or boxes[0].held is None:
        return line
    return f"{line[: boxes[0].begin]} {boxes[0].held} {line[boxes[0].end :]}"


def last_box(text: str) -> str | None:
    """What stands in the last ``\\boxed{}``, or None where there is none or it does not end. ``$\\boxed 2$`` is 2.

    A box in another one is part of what that one holds. ``\\boxed{1} and \\boxed{2}`` is one answer, "1, 2". After
    ``</think>``, what stands before is no answer.
    """
    text = thought_out(text)
    boxes = _boxes(text)
    if not boxes or boxes[-1].held is None:
        return None
    held = [boxes[-1].held]
    for one, two in zip(reversed(boxes[:-1]), reversed(boxes), strict=False):
        if one.held is None or not _JOINED.fullmatch(text, one.end, two.begin):
            break
        held.insert(0, one.held)
    return ", ".join(dict.fromkeys(held))


class _Box(NamedTuple):
    begin: int
    end: int
    held: str | None


def _boxes(text: str) -> list[_Box]:
    """Those that stand in no other one."""
    starts, open_braces, closing = list(_BOX.finditer(text)), list[int](), dict[int, int]()
    for brace in re.finditer(r"(?<!\\)[{}]", text) if starts else ():
        if brace[0] == "{":
            open_braces.append(brace.end())
        elif open_braces:
            closing[open_braces.pop()] = brace.start()
    found: list[_Box] = []
    for start in starts:
        if found and start.start() < found[-1].end:
            continue
        if start["bare"]:
            found.append(_Box(start.start(), start.end(), start["bare"]))
        elif (end := closing.get(start.end())) is None:
            found.append(_Box(start.start(), start.end(), None))
        else:
            found.append(_Box(start.start(), end + 1, _FRAME.sub("", text[start.end() : end])))
    return found


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
