"""Code skeletons that differ from the reference in one place; `components.rewards.structure` has the language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.audit.grammar.base import Kinds, refused
from components.audit.hacks import Target

SKELETON: Kinds = ("skeleton",)


def reference(target: Target) -> str | None:
    """The reference, where it has the outer form of a skeleton."""
    answer = target.prompt.answer.strip()
    return answer if re.fullmatch(r"class\s+\w+\s*\{.*\}", answer, re.DOTALL) else None


def changed(target: Target) -> Iterator[str]:
    """A name, a value, a word or a clause changed, left out or added."""
    if (answer := reference(target)) is None:
        return
    for match in re.finditer(r"(?<==)\d+(?![\w.])", answer):
        yield f"{answer[: match.start()]}{int(match[0]) + 1}{answer[match.end() :]}"
        yield f"{answer[: match.start()]}other{answer[match.end() :]}"
    for match in re.finditer(r"\b(\w+)(?=\()", answer):
        yield f"{answer[: match.start()]}other_{match[0]}{answer[match.end() :]}"
    for old, new in (("require ", "forbid "), ("forbid ", "require "), ("class ", "class Other"), ("if ", "require ")):
        if old in answer:
            yield answer.replace(old, new, 1)
    yield from (f"{answer[:-1]} added() }}", f"{answer}\nclass Added {{ }}")
    yield from (f"class Outer {{ {answer} }}", f"{answer}\n{answer}")


def rearranged(target: Target) -> Iterator[str]:
    """Broken off, torn apart, or with its names in another place."""
    if (answer := reference(target)) is None:
        return
    names = list(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", answer)))
    yield from (answer[:-1], answer[: len(answer) // 2], " ".join(names), ", ".join(names))
    yield from (f"{answer} }}", f"{{ {answer} }}")
    if "(" in answer:
        yield f"class {names[1]} {{ }}"
    calls = re.findall(r"\w+\([^()]*\)", answer)
    if len(set(calls)) > 1:
        yield f"class {names[1]} {{ {calls[0]} }}"
    if len(set(calls)) > 1 and re.search(r"\b(forbid|if)\b", answer):
        yield answer.replace(calls[0], "\0").replace(calls[-1], calls[0]).replace("\0", calls[-1])
    yield from (f"I think: {answer}", f"{answer} or not", f"not {answer}")


CLASSES = (
    refused(
        SKELETON, "skeleton changed in one place", changed, "compare the trees: names, values, clauses and nesting"
    ),
    refused(SKELETON, "skeleton in pieces", rearranged, "a set of names is no structure; read the whole text"),
)
