"""A small language of code skeletons: classes, and in them calls with parameters. It is read and never run.

    skeleton  = class { class }
    class     = "class" NAME "{" { class | clause } "}"
    clause    = [ "if" calls ] [ "require" | "forbid" ] calls [ ";" ]
    calls     = call { "and" call }
    call      = NAME "(" [ parameter { "," parameter } ] ")"
    parameter = NAME [ "=" ( NAME | NUMBER ) ]

White space and ``#`` comments separate and mean nothing else, nor does the order of classes, clauses, calls joined by
``and``, and parameters: trees are kept in sorted order. ``1.20`` is ``1.2``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

_TOKEN = re.compile(
    r"(?P<skip>\s+|#[^\n]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>-?\d+(?:\.\d+)?)|(?P<sign>[{}(),;=])", re.ASCII
)
WORDS = frozenset({"class", "if", "require", "forbid", "and"})

T = TypeVar("T")


class SkeletonError(ValueError):
    """The text is not a skeleton."""


class TooLarge(SkeletonError):
    """The text is longer, or nested deeper, or has more nodes than is read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read: characters, nodes of the tree, and classes inside each other."""

    chars: int
    nodes: int
    depth: int


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A labelled tree; ``children`` are sorted."""

    label: str
    children: tuple[Node, ...] = ()

    @property
    def size(self) -> int:
        """Number of nodes."""
        return 1 + sum(child.size for child in self.children)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What was read: the tree, and the names in it. Parameters are ``function.name`` or ``function.name=value``."""

    tree: Node
    classes: frozenset[str]
    functions: frozenset[str]
    parameters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Token:
    """A name, a number, a sign, or the end (an empty text), and where it starts."""

    kind: str
    text: str
    at: int


def parse(text: str, limits: Limits) -> Skeleton:
    """Read a whole skeleton.

    Raises:
        TooLarge: a limit is exceeded.
        SkeletonError: it does not follow the grammar.
    """
    if len(text) > limits.chars:
        raise TooLarge(f"longer than {limits.chars} characters")
    return _Parser(text, limits).skeleton()


def without_values(parameters: frozenset[str]) -> frozenset[str]:
    """``function.name`` of each parameter, whatever its value."""
    return frozenset(parameter.partition("=")[0] for parameter in parameters)


class _Parser:
    """Recursive descent with one token of look-ahead. Only classes recurse, and their depth is limited."""

    def __init__(self, text: str, limits: Limits) -> None:
        self._tokens, self._limits = tokens(text), limits
        self._next = next(self._tokens)
        self._nodes = 0
        self._classes: set[str] = set()
        self._functions: set[str] = set()
        self._parameters: set[str] = set()

    def skeleton(self) -> Skeleton:
        classes = [self._class(1)]
        while self._next.text:
            classes.append(self._class(1))
        tree = self._node("skeleton", classes)
        return Skeleton(tree, frozenset(self._classes), frozenset(self._functions), frozenset(self._parameters))

    def _class(self, depth: int) -> Node:
        if depth > self._limits.depth:
            raise TooLarge(f"classes are nested deeper than {self._limits.depth}")
        self._expect("class")
        name = self._name()
        self._classes.add(name)
        self._expect("{")
        members = []
        while self._next.text != "}":
            members.append(self._class(depth + 1) if self._next.text == "class" else self._clause())
        self._expect("}")
        return self._node(f"class {name}", members)

    def _clause(self) -> Node:
        condition = [self._node("if", self._separated("and", self._call))] if self._accept("if") else []
        verb = next((word for word in ("require", "forbid") if self._accept(word)), "define")
        calls = self._separated("and", self._call)
        self._accept(";")
        return self._node(verb, [*condition, *calls])

    def _call(self) -> Node:
        name = self._name()
        self._functions.add(name)
        self._expect("(")
        labels = [] if self._next.text == ")" else self._separated(",", self._parameter)
        self._expect(")")
        self._parameters.update(f"{name}.{label}" for label in labels)
        return self._node(f"{name}()", [self._node(label, []) for label in labels])

    def _parameter(self) -> str:
        name = self._name()
        return f"{name}={self._value()}" if self._accept("=") else name

    def _value(self) -> str:
        return _plain(self._take().text) if self._next.kind == "number" else self._name()

    def _separated(self, separator: str, read: Callable[[], T]) -> list[T]:
        found = [read()]
        while self._accept(separator):
            found.append(read())
        return found

    def _name(self) -> str:
        if self._next.kind != "name" or self._next.text in WORDS:
            raise self._unexpected("a name")
        return self._take().text

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(repr(text))

    def _accept(self, text: str) -> bool:
        if self._next.text != text:
            return False
        self._take()
        return True

    def _take(self) -> Token:
        taken, self._next = self._next, next(self._tokens)
        return taken

    def _node(self, label: str, children: list[Node]) -> Node:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            raise TooLarge(f"more than {self._limits.nodes} nodes")
        return Node(label, tuple(sorted(children)))

    def _unexpected(self, wanted: str) -> SkeletonError:
        found = repr(self._next.text) if self._next.text else "the end"
        return SkeletonError(f"expected {wanted} at character {self._next.at + 1}, found {found}")


def tokens(text: str) -> Iterator[Token]:
    """The tokens in order, and the end; a character that belongs to none is an error when it is reached."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SkeletonError(f"unexpected {text[at]!r} at character {at + 1}")
        if match.lastgroup != "skip":
            yield Token(str(match.lastgroup), match[0], at)
        at = match.end()
    yield Token("end", "", at)


def _plain(number: str) -> str:
    """The number without superfluous zeros: equal numbers, equal text."""
    whole, _, fraction = number.removeprefix("-").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    plain = f"{whole}.{fraction}" if fraction else whole
    return f"-{plain}" if number.startswith("-") and plain != "0" else plain
