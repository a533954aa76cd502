"""One expression, by recursive descent. What stands side by side is multiplied, and a number never follows anything."""

from __future__ import annotations

from abc import ABC, abstractmethod

from components.rewards.grammar.nodes import MAX_DEPTH, SCALARS, Node, NotRead, number, scalar
from components.rewards.grammar.prose import words
from components.rewards.grammar.tokens import FUNCTIONS, NAMED_BY_LETTERS, Cursor, Token, base_numeral, written

GREEK = words(
    """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau
    upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega ell hbar"""
)
FRACTIONS = frozenset(("frac", "dfrac", "tfrac", "cfrac"))
MAX_SIGNS_BEHIND = 4
CURRENCIES = ("$", "€", "£", "¥", "₹")
CLOSING = {"(": ")]", "[": ")]", r"\{": (r"\}",), "langle": ("rangle",)}
_PRIMARY_NAMES = FRACTIONS | {"pi", "infinity", "binom", "lfloor", "lceil", "overline", *NAMED_BY_LETTERS}


class Expressions(Cursor, ABC):
    """Sums of products of powers, and what brackets hold."""

    @abstractmethod
    def _symbol(self, letter: str) -> Node:
        """A letter that has been read, with its index."""

    @abstractmethod
    def _named(self, name: str) -> Node:
        """What begins with a name that has been read."""

    def sum(self) -> Node:
        """Terms with signs between them; a plus-minus sign makes two values of it."""
        terms = [self._signed()]
        while self.next("sign", "+", "-", "±"):
            sign = self.take().text
            term = scalar(self._term())
            if sign == "±":
                terms = [Node("either", (_added(terms), term))]
                if self.next("sign", "±"):
                    raise NotRead("two signs of plus-minus")
                break
            terms.append(Node("neg", (term,)) if sign == "-" else term)
        return terms[0] if len(terms) == 1 else _added(terms)

    def _signed(self) -> Node:
        sign = self.take().text if self.next("sign", "+", "-", "±") else ""
        term = self._term()
        if sign == "±":
            return Node("either", (number(0), scalar(term)))
        return Node("neg", (scalar(term),)) if sign == "-" else term

    def _term(self) -> Node:
        factors = [self._power()]
        divisions = 0
        while True:
            if self.next("sign", "*", "/") and not (
                self.here.text == "/" and self._tokens[self._at + 1].kind == "word"
            ):
                sign = self.take().text
                minus = self.skip("sign", "-")
                right = scalar(self._power())
                right = Node("neg", (right,)) if minus else right
                divisions += sign == "/"
                factors = [Node("div", (product(factors), right))] if sign == "/" else [*factors, right]
            elif self._juxtaposed(factors[-1]):
                factors.append(self._power())
            else:
                break
        if divisions > MAX_DEPTH:
            raise NotRead("more divisions than anybody writes")
        return factors[0] if len(factors) == 1 else _applied(*factors) or product(factors)

    def _juxtaposed(self, left: Node) -> bool:
        """A factor follows without a sign: a letter, a name, an opening bracket; a number in ``3!7!`` only."""
        here = self.here
        if left.kind not in ("number", "mixed") and here.kind == "number":
            return left.kind == "call" and left.args[0] == "factorial" and self._tokens[self._at + 1].text == "!"
        if here.kind == "letter":
            return self._algebra or here.spaced or here.text not in "kK"  # 5k is 5000
        if here.kind == "name":
            return here.text in FUNCTIONS or here.text in GREEK or here.text in _PRIMARY_NAMES
        opens = here.kind == "sign" and here.text in ("(", "{") and left.kind in SCALARS
        return opens and self._tokens[self._at + 1].kind != "word"

    def _power(self) -> Node:
        base = self._after(self._primary())
        if not self.skip("sign", "^"):
            return base
        self._deeper()
        sign = self.take().text if self.next("sign", "+", "-") else ""
        exponent = scalar(self.argument(whole=True) if self.next("sign", "{") else self._power())
        self._depth -= 1
        exponent = Node("neg", (exponent,)) if sign == "-" else exponent
        return self._after(Node("pow", (scalar(base), exponent)))

    def _after(self, found: Node) -> Node:
        signs = 0
        while self.next("sign", "!", "°", "%"):
            sign = self.take().text
            signs += 1
            if signs > MAX_SIGNS_BEHIND:
                raise NotRead("more signs behind a number than anybody writes")
            if sign == "!":
                found = Node("call", ("factorial", (scalar(found),)))
            else:
                found = Node("degree" if sign == "°" else "percent", (scalar(found),))
        return found

    def _primary(self) -> Node:
        self._deeper()
        found = self._begun(self.take())
        self._depth -= 1
        return found

    def _begun(self, here: Token) -> Node:
        if here.kind == "base":
            return base_numeral(here.text)
        if here.kind == "number":
            return self._mixed(here)
        if here.kind == "letter":
            return self._symbol(here.text)
        if here.kind == "name":
            return self._named(here.text)
        if here.kind == "sign":
            return self._bracketed(here.text)
        raise NotRead(f"{here.text[:20]!r} begins no expression")

    def _mixed(self, token: Token) -> Node:
        """A number; a whole one before a proper fraction of whole ones is a mixed fraction."""
        value = written(token.text)
        if self.next("name", *FRACTIONS) and self._tokens[self._at + 1].kind in ("number", "sign"):
            self.take()
            return self._with_fraction(value, self._fraction())
        rest = self._tokens[self._at : self._at + 3]
        plain = len(rest) == 3 and rest[0].kind == rest[2].kind == "number" and rest[1].text == "/" and rest[0].spaced
        if plain:
            self._at += 3
            return self._with_fraction(value, Node("div", (written(rest[0].text), written(rest[2].text))))
        if self.next("number"):
            raise NotRead("two numbers stand side by side")
        return self._clock(value)

    def _clock(self, first: Node) -> Node:
        """A number, or several with colons between them: a time, a ratio."""
        parts = [first]
        while self.next("sign", ":") and self._tokens[self._at + 1].kind == "number":
            self.take()
            parts.append(written(self.take().text))
        return first if len(parts) == 1 else Node("clock", tuple(parts))

    def _with_fraction(self, whole: Node, fraction: Node) -> Node:
        above, below = fraction.args
        numbers = whole.kind == above.kind == below.kind == "number"
        if not numbers:
            if above.kind == below.kind == "number":
                raise NotRead("a number before a fraction")
            return Node("mul", (whole, fraction))  # 2\frac{x}{3}
        one, two, three = (node.args[0] for node in (whole, above, below))
        if any(value.denominator != 1 for value in (one, two, three)) or not 0 < two < three:
            raise NotRead("neither a mixed fraction nor a product")
        return Node("mixed", (one, two / three))

    def _fraction(self) -> Node:
        above = scalar(self.argument())
        return Node("div", (above, scalar(self.argument())))

    def argument(self, whole: bool = False) -> Node:
        """What braces hold, or one sign: of a number its first digit, unless ``whole``."""
        if self.skip("sign", "{"):
            found = self.sum()
            self.expect("sign", "}")
            return found
        if self.next("number"):
            token = self.take()
            if whole:
                return written(token.text)
            digit, rest = int(token.text[0]) if token.text[0] != "." else 0, token.text[1:]
            if rest:
                if rest[0] in "eE":
                    raise NotRead("a digit with an exponent where a single digit stands")
                self._at -= 1
                self._tokens[self._at] = token._replace(text=rest, spaced=False)
            return number(digit)
        return self._after(self._primary()) if self.next("sign", "(") else self._primary()

    def _bracketed(self, opening: str) -> Node:
        if opening == "{":
            found = self.sum()
            self.expect("sign", "}")
            return found if found.kind == "symbol" else Node("bracket", (scalar(found),))
        if opening == "|":
            inside = scalar(self.sum())
            self.expect("sign", "|")
            return Node("call", ("abs", (inside,)))
        if opening in CURRENCIES:
            return self._money(opening)
        if opening not in CLOSING:
            raise NotRead(f"{opening[:20]!r} begins no expression")
        return self.group(opening)

    def _money(self, sign: str) -> Node:
        self.money = sign
        minus = self.skip("sign", "-")
        if not self.next("number"):
            raise NotRead("a currency without an amount")
        amount = self._primary()
        return Node("neg", (amount,)) if minus else amount

    def group(self, opening: str) -> Node:
        """Items in brackets: one in round or square ones is a scalar, others are a set, a point or an interval."""
        items: list[Node] = []
        while not self.next("sign", *CLOSING[opening]) and not self.next("name", *CLOSING[opening]):
            items.append(self.item())
            if not self.skip("sign", ",", ";", "and", "or"):
                break
            self.skip("sign", "and", "or")
        closing = self.take().text
        if closing not in CLOSING[opening]:
            raise NotRead("brackets without an end")
        if opening == r"\{":
            return Node("set", tuple(items))
        if not items:
            raise NotRead("empty brackets")
        if len(items) == 1 and (opening, closing) in (("(", ")"), ("[", "]")):
            return items[0] if items[0].kind not in SCALARS else Node("bracket", (items[0],))
        return Node("tuple", (opening, closing, tuple(items)))

    def item(self) -> Node:
        """One item between brackets."""
        return self.sum()


def _applied(name: Node, *rest: Node) -> Node | None:
    """``f(x, y)``: a function of several arguments, which is a name and has no value."""
    if name.kind != "symbol" or len(rest) != 1 or rest[0].kind != "tuple" or rest[0].args[:2] != ("(", ")"):
        return None
    return Node("call", (name.args[0], tuple(map(scalar, rest[0].args[2]))))


def _added(terms: list[Node]) -> Node:
    if len(terms) == 1:
        return scalar(terms[0])
    return Node("add", tuple(map(scalar, terms)))


def product(factors: list[Node]) -> Node:
    """The product of scalars, or the only one of them."""
    if len(factors) == 1:
        return scalar(factors[0])
    return Node("mul", tuple(map(scalar, factors)))
