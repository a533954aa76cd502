"""Whether two answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from string import ascii_letters

from components.rewards.grammar.arithmetic import Value, close, divided, is_real, rounded
from components.rewards.grammar.nodes import SCALARS, Answer, Node, NotRead
from components.rewards.grammar.values import evaluate, pairs, symbols

_TURNED = {">": "<", ">=": "<=", "=": "=", "!=": "!=", "≈": "≈", "<": ">", "<=": ">="}
APPROXIMATE = Fraction(1, 100)
"""How far, relatively, the two sides of a sign of approximation may be apart."""


def same_answer(wanted: Answer, found: Answer, decimals: int) -> bool:
    """Whether ``found`` says what ``wanted`` says. A name that one of them gives to its value does not count.

    Raises:
        NotRead: one of them has no value.
    """
    wanted, found = settled(wanted), settled(found)
    if wanted.suffix != found.suffix:
        return False
    if wanted.label and found.label and wanted.label != found.label:
        return _same_relation(_equation(wanted), _equation(found))
    if same(wanted.node, found.node, decimals):
        return True
    if wanted.label and found.node.kind == "relation":
        return _same_relation(_equation(wanted), found.node)
    return bool(found.label) and wanted.node.kind == "relation" and _same_relation(wanted.node, _equation(found))


def settled(answer: Answer) -> Answer:
    """Of a chain of equations that holds, its last side; of an approximation, what is approximated."""
    if answer.node.kind != "relation":
        return answer
    signs, sides = answer.node.args
    if all(sign == "=" for sign in signs) and all(_equal(sides[0], side) for side in sides[1:]):
        return answer._replace(node=sides[-1])
    exact = len(signs) == 1 and signs[0] == "≈" and not symbols(answer.node)
    if exact and all(side.kind in SCALARS for side in sides):
        one, two = (rounded(evaluate(side, 0), 12) for side in sides)
        if one is not None and two is not None and abs(one - two) <= APPROXIMATE * abs(one):
            return answer._replace(node=sides[0])
    if answer.label:
        raise NotRead("a chain of equations that does not hold")
    return answer


def _equal(one: Node, two: Node) -> bool:
    return one.kind in SCALARS and two.kind in SCALARS and _same_scalar(one, two, None)


def _equation(answer: Answer) -> Node:
    assert answer.label is not None
    return Node("relation", (("=",), (answer.label, answer.node)))


def same(one: Node, two: Node, decimals: int | None) -> bool:
    """Whether two nodes are the same; ``decimals``: places to which a decimal agrees with what it stands for."""
    one, two = _plain(one), _plain(two)
    if one.kind in SCALARS and two.kind in SCALARS:
        return _same_scalar(one, two, decimals)
    kinds = {one.kind, two.kind}
    if "relation" in kinds:
        if kinds == {"relation"}:
            return _same_relation(one, two)
        one, two = (_interval(node) or node for node in (one, two))
        return one.kind == two.kind == "tuple" and same(one, two, decimals)
    if kinds <= {"list", "set"} or (kinds & {"set"} and kinds & SCALARS):
        left, right = _items(one), _items(two)
        if any(item.kind == "relation" for item in left) != any(item.kind == "relation" for item in right):
            left, right = _values(one, _indexed), _values(two, _indexed)
        return _unordered(left, right, decimals)
    if kinds == {"list", "tuple"}:
        points = all(node.args[:2] == ("(", ")") for node in (one, two) if node.kind == "tuple")
        return points and _ordered(_values(one, _neighbours), _values(two, _neighbours), decimals)
    if len(kinds) > 1:
        return False
    match one.kind:
        case "tuple":
            brackets = [
                tuple(sign.replace("langle", "(").replace("rangle", ")") for sign in n.args[:2]) for n in (one, two)
            ]
            return brackets[0] == brackets[1] and _ordered(one.args[2], two.args[2], decimals)
        case "union":
            return _unordered(one.args, two.args, decimals)
        case "matrix":
            return (
                one.args[0] == two.args[0]
                and len(one.args[1]) == len(two.args[1])
                and all(_ordered(row, other, decimals) for row, other in zip(one.args[1], two.args[1], strict=True))
            )
        case "clock":
            return _ordered(one.args, two.args, 0)
    return one == two


def _plain(node: Node) -> Node:
    """Without brackets around everything; what a plus-minus sign makes is a list of both."""
    while node.kind == "bracket":
        node = node.args[0]
    if node.kind == "either":
        middle, away = node.args
        return Node("list", (Node("add", (middle, away)), Node("add", (middle, Node("neg", (away,))))))
    return node


def _items(node: Node) -> Sequence[Node]:
    if node.kind in SCALARS:
        return (node,)
    items: Sequence[Node] = node.args[2] if node.kind == "tuple" else node.args
    return [part for item in items for part in (_items(_plain(item)) if item.kind == "either" else [item])]


def _values(node: Node, of_one: Callable[[list[str]], bool]) -> Sequence[Node]:
    """The items, without their names where those are ``of_one`` sort: of ``y = 4, x = 3`` they are 3, 4."""
    items = _items(node)
    if not all(item.kind == "relation" and item.args[0] == ("=",) for item in items):
        return items
    named = {item.args[1][0].args[0]: item.args[1][1] for item in items if item.args[1][0].kind == "symbol"}
    return [named[name] for name in sorted(named)] if len(named) == len(items) and of_one(sorted(named)) else items


def _neighbours(names: list[str]) -> bool:
    """``x``, ``y``: coordinates of a point, in the order of the alphabet."""
    return all(len(name) == 1 for name in names) and "".join(names) in ascii_letters


def _indexed(names: list[str]) -> bool:
    """``x_1``, ``x_2``: several values of one."""
    return all("_" in name for name in names) and len({name.partition("_")[0] for name in names}) == 1


def _ordered(one: Sequence[Node], two: Sequence[Node], decimals: int | None) -> bool:
    return len(one) == len(two) and all(same(*pair, decimals) for pair in zip(one, two, strict=True))


def _unordered(one: Sequence[Node], two: Sequence[Node], decimals: int | None) -> bool:
    left = [*two]
    for item in one:
        at = next((i for i, other in enumerate(left) if same(item, other, decimals)), None)
        if at is None:
            return False
        del left[at]
    return not left


def _same_scalar(one: Node, two: Node, decimals: int | None) -> bool:
    if not symbols(one) | symbols(two):
        return _same_value(one, two, decimals)
    return all(close(*pair) for pair in pairs(one, two))


def _same_value(one: Node, two: Node, decimals: int | None) -> bool:
    left, right = evaluate(one, 0), evaluate(two, 0)
    if close(left, right):
        return True
    if decimals is None or not (_is_decimal(one) or _is_decimal(two)):
        return False
    places = rounded(left, decimals), rounded(right, decimals)
    return places[0] is not None and places[0] == places[1] and _near(left, right, decimals)


def _near(wanted: Value, found: Value, decimals: int) -> bool:
    """Small numbers agree in their first digits, too: 0.0000001 and 0.0000002 are not the same."""
    return bool(abs(wanted - found) <= abs(wanted) * 10 ** (1 - decimals)) if wanted else not found


def _is_decimal(node: Node) -> bool:
    """It is one number with a decimal point, which may stand for what it was rounded from."""
    while node.kind in ("neg", "bracket"):
        node = node.args[0]
    return node.kind == "number" and node.args[1] and node.args[0].denominator != 1


def _same_relation(one: Node, two: Node) -> bool:
    (signs, sides), (others, against) = _risen(one), _risen(two)
    if signs != others:
        return False
    if all(same(*pair, None) for pair in zip(sides, against, strict=True)):
        return True
    if len(signs) != 1 or any(side.kind not in SCALARS for side in (*sides, *against)):
        return False
    return _proportional(_difference(sides), _difference(against), rising=signs[0] not in ("=", "!="))


def _proportional(one: Node, two: Node, rising: bool) -> bool:
    """Each is the other times one constant, and a positive one where it has to be ``rising``."""
    first = None
    for above, below in pairs(one, two):
        if above is None or below is None or above == 0 or below == 0:
            return False
        ratio = divided(above, below)
        first = ratio if first is None else first
        if not close(ratio, first) or (rising and not (is_real(ratio) and ratio > 0)):
            return False
    return first is not None


def _risen(relation: Node) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    """The same with signs of less, where it has signs of greater."""
    signs, sides = relation.args
    if any(sign.startswith(">") for sign in signs) and not any(sign.startswith("<") for sign in signs):
        return tuple(_TURNED[sign] for sign in reversed(signs)), tuple(reversed(sides))
    return signs, sides


def _difference(sides: Sequence[Node]) -> Node:
    return Node("add", (sides[0], Node("neg", (sides[1],))))


def _interval(node: Node) -> Node | None:
    """The interval of ``a < x <= b`` or ``x > a``, or None for any other relation."""
    if node.kind != "relation":
        return None
    signs, sides = _risen(node)
    middle = [i for i, side in enumerate(sides) if symbols(side)]
    if len(middle) != 1 or sides[middle[0]].kind != "symbol" or not all(sign in ("<", "<=") for sign in signs):
        return None
    infinity = Node("constant", ("infinity",))
    low, high = sides[: middle[0]], sides[middle[0] + 1 :]
    if len(low) > 1 or len(high) > 1:
        return None
    opening = "[" if low and signs[0] == "<=" else "("
    closing = "]" if high and signs[-1] == "<=" else ")"
    return Node(
        "tuple", (opening, closing, (low[0] if low else Node("neg", (infinity,)), high[0] if high else infinity))
    )
