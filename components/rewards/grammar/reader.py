"""One answer: statements with what may stand around them."""

from __future__ import annotations

from fractions import Fraction

from components.rewards.grammar.commands import Commands
from components.rewards.grammar.dress import undressed
from components.rewards.grammar.expressions import CURRENCIES
from components.rewards.grammar.nodes import SCALARS, Answer, Node, NotRead, number, one_number
from components.rewards.grammar.prose import LEAD, OPERATIVE_BEFORE, OPERATIVE_BEHIND, PERCENT, SCALES, TAIL_WORDS
from components.rewards.grammar.tokens import BASE_NAMES, Token, lex
from components.rewards.units import UNITS, Unit, unit_after

SEPARATORS = (",", ";", "and", "or", ".")
RELATIONS = ("=", "≈", "<", ">", "<=", ">=", "!=")
_OF_PROSE = ("-", ":", "'", "and", "or", ",")
_HALVES = frozenset(("am", "pm"))


def read(text: str, algebra: bool = True, reading: str = "usual") -> Answer:
    """The one answer that ``text`` states.

    Args:
        algebra: a letter behind a number is a factor (``5k``), unless it is the unit of a whole answer (``5 m``).
        reading: one of `tokens.READINGS`.

    Raises:
        NotRead: it states none, several, or something that is left out of this grammar.
    """
    plain = undressed(text)
    return _Reader(plain, lex(plain, reading, algebra), algebra).answer()


class _Reader(Commands):
    def __init__(self, text: str, tokens: list[Token], algebra: bool) -> None:
        super().__init__(tokens, algebra)
        self._text = text
        self._clear = True

    def answer(self) -> Answer:
        if (words := self._words()) is not None:
            return Answer(words)
        self._lead()
        found, signs = [self._statement()], set[str]()
        while self.next("sign", *SEPARATORS):
            sign = self.take().text
            if self.next("sign", "and", "or"):  # the comma before it
                sign = self.take().text
            if self._ends_in_prose(sign):
                break
            self._lead()
            signs.add(sign)
            found.append(self._statement())
        self.expect("end")
        return (found[0] if len(found) == 1 else _listed(found, signs == {"or"}))._replace(clear=self._clear)

    def _words(self) -> Node | None:
        """An answer without formula: ``yes``, ``no solution``."""
        tokens = self._tokens[:-1]
        prose = all(token.kind in ("word", "letter") or token.text in _OF_PROSE for token in tokens)
        if not prose or not any(token.kind == "word" for token in tokens):
            return None
        starts = [i for i, token in enumerate(tokens) if token.text in ("is", "are", ":")]
        said = [token for token in tokens[starts[-1] + 1 if starts else 0 :] if token.text not in ("-", "'", ",")]
        if len(said) == 1 and len(letter := said[0].text.strip("()")) == 1:
            return Node("symbol", (letter,))
        return Node("words", (" ".join(token.text.casefold() for token in said),)) if said else None

    def _lead(self) -> None:
        """Move past the words before a statement."""
        while self.next("word") or (self.next("sign", ":", "=", "≈", "-", ".", "'") and self._joined()):
            word = self.take().text.casefold()
            if word in OPERATIVE_BEFORE:
                raise NotRead(f"{word!r} before a number changes what it says")
            self._clear &= word in LEAD or not word[0].isalpha()
        self.skip("sign", "=", "≈", ":")

    def _joined(self) -> bool:
        """The sign belongs to the words before it. A hyphen does where a word follows; else it is a minus."""
        before, behind = self._tokens[self._at - 1], self._tokens[self._at + 1]
        follows = before.kind == "word" or before.text in (":", "=")
        return self._at > 0 and follows and (self.here.text != "-" or behind.kind == "word")

    def _ends_in_prose(self, sign: str) -> bool:
        """Nothing but words follows; NotRead where they take the answer back, as in "42 or more"."""
        rest = self._tokens[self._at : -1]
        if any(token.kind in ("number", "base", "name", "letter") for token in rest):
            return False
        if sign == "or" or any(token.text.casefold() in OPERATIVE_BEHIND for token in rest):
            raise NotRead("words behind the answer change what it says")
        self._clear &= len(rest) <= TAIL_WORDS and sign != "and"
        self._at = len(self._tokens) - 1
        return True

    def _statement(self) -> Answer:
        """One side, or several with signs of relation between them, and the unit behind."""
        self.money = ""
        sides, signs, label = [self._side()], list[str](), None
        while self.next("sign", *RELATIONS) or self.next("name", "in") or self._label_colon(sides):
            signs.append(self.take().text.replace("in", "=").replace(":", "="))
            sides.append(self._side())
        if signs == ["="] and is_label(sides[1]) and not is_label(sides[0]):
            sides.reverse()
        if len(sides) > 1 and signs[0] in "=≈" and is_label(sides[0]):
            label = sides.pop(0)
            del signs[0]
        node = sides[0] if len(sides) == 1 else Node("relation", (tuple(signs), tuple(sides)))
        return self._tail(Answer(node, label=label))

    def _label_colon(self, sides: list[Node]) -> bool:
        return self.next("sign", ":") and len(sides) == 1 and is_label(sides[0])

    def _side(self) -> Node:
        found = [self._set_or_sum()]
        while self.skip("name", "cup"):
            found.append(self._set_or_sum())
        return found[0] if len(found) == 1 else Node("union", tuple(found))

    def _set_or_sum(self) -> Node:
        if self.next("sign", "]") and self._tokens[self._at + 1].kind != "end":
            raise NotRead("an interval that opens outwards")
        return self.sum()

    def item(self) -> Node:
        found = self.sum()
        if self.next("word") and found.kind in SCALARS:  # a unit inside brackets
            return self._tail(Answer(found), inside=True).node
        return found

    def _tail(self, found: Answer, inside: bool = False) -> Answer:
        """What stands behind a statement: a scale, per cent, a base, a unit or a noun."""
        node = found.node
        if node.kind in SCALARS and one_number(node) is not None and (factor := self._scale()) != 1:
            node = number(Fraction(one_number(node) or 0) * factor)
        percent = node.kind == "percent" or self._percent()
        degrees = node.kind == "degree"
        if degrees or node.kind == "percent":
            node = node.args[0]
        if (base := self._base()) is not None and node.kind == "number":
            return found._replace(node=Node("base", (str(node.args[0]), base)))
        start = self.here
        suffix = self.take().text.casefold() if self.next("word") and self.here.text.casefold() in _HALVES else ""
        node = self._noun(node, inside)
        unit = None if percent else self._unit(start, degrees)
        return found._replace(node=node, percent=percent, unit=unit, suffix=suffix)

    def _scale(self) -> Fraction:
        if not self._algebra and self.next("letter", "k", "K") and not self.here.spaced:
            self.take()
            return Fraction(1000)
        word = self.here.text.casefold() if self.next("word") else ""
        scale = SCALES.get(word) or SCALES.get(word.removesuffix("s"))
        if scale is not None:
            self.take()
        return Fraction(scale or 1)

    def _percent(self) -> bool:
        if self.next("word", "per") and self._tokens[self._at + 1].text == "cent":
            self._at += 2
            return True
        found = self.next("word") and self.here.text.casefold() in PERCENT
        self._at += found
        return found

    def _base(self) -> int | None:
        """The base that words name: ``in base 8``, ``(base eight)``."""
        at = self._at
        bracket = self.skip("sign", "(")
        self.skip("word", "in")
        if not self.skip("word", "base"):
            self._at = at
            return None
        said = self.take().text
        if bracket:
            self.expect("sign", ")")
        if said in BASE_NAMES:
            return BASE_NAMES.index(said) + 2
        if not said.isdigit() or len(said) > 2:
            raise NotRead("a base that is no number")
        return int(said)

    def _noun(self, node: Node, inside: bool) -> Node:
        """Move past the words behind a number; brackets there may state it once more."""
        words, last = 0, ""
        while not self.next("end") and not self.next("sign", *SEPARATORS[:-1], ")", "]", r"\}"):
            here = self.take()
            if here.kind == "word":
                small = here.text.casefold()
                power_of_unit = small in ("squared", "cubed") and last.casefold() in UNITS
                if small in OPERATIVE_BEHIND and not power_of_unit:
                    raise NotRead(f"{small!r} behind a number changes what it says")
                words += 1
                last = here.text
            elif here.text == "(" and not inside:
                node = self._restated(node)
            elif not self._belongs_to_unit(here, last):
                raise NotRead(f"{here.text[:20]!r} stands behind the answer")
        self._clear &= words <= TAIL_WORDS
        return node

    def _restated(self, node: Node) -> Node:
        if self.next("word"):
            while not self.skip("sign", ")"):
                here = self.take()
                if here.kind != "word" or here.text.casefold() in OPERATIVE_BEHIND:
                    raise NotRead("more than words in brackets")
            return node
        again = self.sum()
        self.skip("word")
        self.expect("sign", ")")
        return Node("relation", (("=",), (node, again)))

    def _belongs_to_unit(self, here: Token, last: str) -> bool:
        if here.kind == "number":  # m2
            return bool(last) and not here.spaced and here.text in ("2", "3")
        if here.text == "^" and last:
            self.skip("sign", "-")
            self.argument(whole=True)
            return True
        behind = here.text in ("/", "*", "-") and self.next("word")
        return here.kind == "sign" and (behind or here.text in (*CURRENCIES, ".", "¢", "°"))

    def _unit(self, start: Token, degrees: bool) -> Unit | None:
        if degrees:
            return UNITS["degree"]
        behind = self._text[start.at :]
        return unit_after(behind) or (unit_after(f"{self.money} {behind}") if self.money else None)


def is_label(node: Node) -> bool:
    """What the other side of an equation may be said to be the value of: ``x``, ``f(x)``, ``AB``, ``f(x, y)``."""
    match node.kind:
        case "symbol":
            return True
        case "constant":
            return node.args[0] in ("e", "i")
        case "mul":
            return all(is_label(arg) or arg.kind == "bracket" for arg in node.args) and is_label(node.args[0])
        case "tuple":
            return all(map(is_label, node.args[2]))
        case "call":
            return len(node.args[0]) == 1  # no function that is known
    return False


def _listed(found: list[Answer], either: bool) -> Answer:
    """Several answers: a list, or of inequalities of which ``either`` holds the union. Where they are values of
    different names, each is an equation of its own."""
    labels = {answer.label for answer in found if answer.label}
    nodes = [
        Node("relation", (("=",), (answer.label, answer.node))) if len(labels) > 1 and answer.label else answer.node
        for answer in found
    ]
    if either and all(node.kind == "relation" and not {"=", "≈", "!="} & {*node.args[0]} for node in nodes):
        return Answer(Node("union", tuple(nodes)))
    return Answer(Node("list", tuple(nodes)), label=labels.pop() if len(labels) == 1 else None)
