"""What begins with a name: letters with an index, functions, roots, matrices."""

from __future__ import annotations

from components.rewards.grammar.expressions import FRACTIONS, GREEK, Expressions, product
from components.rewards.grammar.nodes import Node, NotRead, number, scalar
from components.rewards.grammar.tokens import FUNCTIONS, NAMED_BY_LETTERS

_NUMBER_SETS = ("R", "Z", "N", "Q", "C")
_ONE_ARGUMENT = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_MATRICES = frozenset(("matrix", "pmatrix", "bmatrix", "vmatrix", "Bmatrix", "smallmatrix", "array"))


class Commands(Expressions):
    """Expressions with the commands of LaTeX and the names of functions."""

    def _symbol(self, letter: str) -> Node:
        if self.skip("sign", "_"):
            if self.skip("sign", "{"):
                index = ""
                while not self.next("sign", "}"):
                    if self.here.kind == "end":
                        raise NotRead("an index without an end")
                    index += self.take().text
                self.expect("sign", "}")
            else:
                index = self.take().text
            return Node("symbol", (f"{letter}_{index}",))
        while self.skip("sign", "'"):
            letter += "'"
        return Node("constant", (letter,)) if letter in ("e", "i") else Node("symbol", (letter,))

    def _named(self, name: str) -> Node:
        if name in ("pi", "infinity"):
            return Node("constant", (name,))
        if name in FRACTIONS:
            return self._fraction()
        if name == "sqrt":
            return self._root()
        if name in ("binom", "dbinom", "tbinom"):
            above = scalar(self.argument())
            return Node("call", ("binomial", (above, scalar(self.argument()))))
        if name in FUNCTIONS:
            return self._function(name)
        if name in _ONE_ARGUMENT:
            closing, function = _ONE_ARGUMENT[name]
            inside = scalar(self.sum())
            self.expect("name", closing)
            return Node("call", (function, (inside,)))
        if name == "overline" and self.next("sign", "{"):
            return self._overlined()
        if name in GREEK:
            return self._symbol(f"\\{name}")
        if name in NAMED_BY_LETTERS:
            return self._named_by_letters(name)
        if name == "begin":
            return self._matrix()
        if name == "langle":
            return self._bracketed(name)
        if name == "mathbb":
            return Node("symbol", (f"mathbb {self.argument().args[0]}",))
        if name in _NUMBER_SETS:
            return Node("symbol", (f"mathbb {name}",))
        if name in ("emptyset", "varnothing"):
            return Node("set", ())
        raise NotRead(f"\\{name} is not read")

    def _root(self) -> Node:
        degree = number(2)
        if self.skip("sign", "["):
            degree = scalar(self.sum())
            self.expect("sign", "]")
        digits = self.next("number") and len(self.here.text) > 1
        before = self._tokens[self._at - 1]  # of the command of LaTeX, which takes one digit
        if digits and not self.here.spaced and (before.kind, before.text) == ("name", "sqrt"):
            raise NotRead("the root of one digit, or of all of them")
        inside = scalar(self.argument(whole=True))
        return Node("call", ("root", (inside, degree)))

    def _function(self, name: str) -> Node:
        base: tuple[Node, ...] = ()
        power: Node | None = None
        for _ in range(2):
            if name == "log" and self.skip("sign", "_"):
                base = (scalar(self.argument(whole=True)),)
            elif self.skip("sign", "^"):
                minus = self.skip("sign", "-")
                power = scalar(self.argument(whole=True))
                power = Node("neg", (power,)) if minus else power
        if self.next("sign", "(", "{", "["):
            inside = self._primary()
            items = tuple(inside.args[2]) if inside.kind == "tuple" else (scalar(inside),)
        else:
            items = (scalar(self._factors()),)
        if power is not None and one_inverse(power):
            return Node("call", (f"arc{name}", items))
        call = Node("call", (name, (*map(scalar, items), *base)))
        return call if power is None else Node("pow", (call, power))

    def _factors(self) -> Node:
        """The argument of a function without brackets: 2x of sin 2x, up to the next function."""
        found = [self._power()]
        while self._juxtaposed(found[-1]) and not self.next("name", *FUNCTIONS) and not self.next("sign", "("):
            found.append(self._power())
        return product(found)

    def _overlined(self) -> Node:
        self.expect("sign", "{")
        found = self._named_by_letters("overline")
        self.expect("sign", "}")
        return found

    def _named_by_letters(self, kind: str) -> Node:
        """A line, an angle or a triangle, by its points."""
        name = kind
        while self.next("letter"):
            name += f" {self.take().text}"
        if name == kind:
            raise NotRead(f"a {kind} without a name")
        return Node("symbol", (name,))

    def _matrix(self) -> Node:
        name = self._environment()
        if name not in _MATRICES:
            raise NotRead(f"the environment {name} is not read")
        if name == "array" and self.skip("sign", "{"):
            while not self.skip("sign", "}"):
                if self.take().kind == "end":
                    raise NotRead("an array without an end")
        rows: list[tuple[Node, ...]] = []
        row: list[Node] = []
        while True:
            row.append(scalar(self.sum()))
            if self.skip("sign", "&"):
                continue
            rows.append(tuple(row))
            row = []
            more = self.skip("sign", r"\\")
            if self.next("name", "end"):
                break
            if not more:
                raise NotRead("a matrix without an end")
        self.take()
        if self._environment() != name:
            raise NotRead("an environment ends as another")
        return Node("matrix", (name == "vmatrix", tuple(rows)))

    def _environment(self) -> str:
        self.expect("sign", "{")
        name = ""
        while not self.skip("sign", "}"):
            token = self.take()
            if token.kind == "end":
                raise NotRead("an environment without a name")
            name += token.text
        return name


def one_inverse(power: Node) -> bool:
    """The exponent is -1: of a function, its inverse."""
    return power.kind == "neg" and power.args[0] == number(1)
