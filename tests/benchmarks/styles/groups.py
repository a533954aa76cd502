"""Several values: points, sets, lists, matrices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from tests.benchmarks.styles.reference import Reference, elements, entry
from tests.benchmarks.styles.writing import decimal, rational, terminates

Values = Sequence[Fraction]
SHAPES = [(2, 2), (2, 2), (2, 1), (3, 1), (2, 3)]


def joined(values: Values, separator: str = ",") -> str:
    """The values with something between them."""
    return separator.join(map(rational, values))


def point(rng: random.Random, number: int) -> Reference:
    """Two coordinates, in one of four three; they differ."""
    size, values = rng.choice([2, 2, 2, 3]), list[Fraction]()
    while len(set(values)) < size or not any(values):
        values = [entry(rng) for _ in range(size)]
    tight, spaces = f"({joined(values)})", f"({joined(values, ', ')})"
    forms = {
        "same": rng.choice([tight, rf"\left({joined(values)}\right)", spaces]),
        "tight": tight,
        "spaces": spaces,
        "leftright": rf"\left( {joined(values, ', ')} \right)",
        "dfrac": spaces.replace(r"\frac", r"\dfrac"),
        "thin": spaces.replace(", ", r",\ "),
    }
    if all(map(terminates, values)) and any(value.denominator > 1 for value in values):
        forms["decimal"] = f"({', '.join(map(decimal, values))})"
    first, *rest = values
    negated = [-first, *rest] if first else [first, -rest[0], *rest[1:]]
    return Reference(
        answer=forms["same"],
        forms=forms,
        wrong={
            "order": f"({joined([*rest, first])})",
            "nearby": f"({joined([first + 1, *rest])})",
            "sign": f"({joined(negated)})",
            "missing": f"({joined(values[:-1])})" if size == 3 else rational(first),
            "additional": f"({joined([*values, Fraction(0)])})",
            "set_instead": rf"\{{{joined(values)}\}}",
        },
        question="Find the intersection of the two lines.",
        other=f"({joined([first + 2, *rest])})",
        variable="(x,y)" if size == 2 else "(x,y,z)",
    )


def _changed(values: Values) -> dict[str, list[Fraction]]:
    """Other values than those of a set or a list."""
    largest, negated = max(values), [-value for value in values]
    return {
        "missing": [*values[1:]],
        "additional": [*values, largest + 1],
        "nearby": [largest + 1, *(value for value in values if value != largest)],
        "sign": negated if set(negated) != set(values) else [*values[1:]],
        "single": [values[0]],
        "other": [*values[1:], largest + 2],
    }


def finite_set(rng: random.Random, number: int) -> Reference:
    """Two to four values in braces."""
    values = elements(rng)
    mixed = [*values]
    rng.shuffle(mixed)

    def braces(members: Values, separator: str = ",") -> str:
        return rf"\{{{joined(members, separator)}\}}"

    wrong = {name: braces(members) for name, members in _changed(values).items()}
    other = wrong.pop("other")
    return Reference(
        answer=braces(values),
        forms={
            "same": braces(values),
            "spaces": braces(values, ", "),
            "reordered": braces(mixed),
            "leftright": rf"\left\{{{joined(values, ', ')}\right\}}",
            "lbrace": rf"\lbrace {joined(values, ', ')} \rbrace",
        },
        wrong=wrong
        | {
            "single": rational(values[0]),
            "interval_instead": f"[{joined(values[:2])}]",
            "order_tuple": f"({joined(values)})",
        },
        question="Find the solution set.",
        other=other,
        variable="S",
    )


def value_list(rng: random.Random, number: int) -> Reference:
    """Two to four values with commas between them."""
    values = elements(rng)
    mixed = [*values]
    rng.shuffle(mixed)
    wrong = {name: joined(members) for name, members in _changed(values).items()}
    other = wrong.pop("other")
    answer = rng.choice([joined(values), joined(values, ", ")])
    return Reference(
        answer=answer,
        forms={
            "same": answer,
            "spaces": joined(values, ", "),
            "tight": joined(values),
            "reordered": joined(mixed, ", "),
            "and": rf"{joined(values[:-1], ', ')} \text{{ and }} {rational(values[-1])}",
        },
        wrong=wrong | {"juxtaposed": joined(values, " ")},
        question="Find all roots. Enter them separated by commas.",
        other=other,
        variable="x",
    )


def written_matrix(
    rows: Sequence[Values], environment: str = "pmatrix", between: str = " & ", end: str = r" \\ "
) -> str:
    """The rows in a LaTeX environment."""
    pad = " " if between == " & " else ""
    body = end.join(joined(row, between) for row in rows)
    return rf"\begin{{{environment}}}{pad}{body}{pad}\end{{{environment}}}"


def matrix(rng: random.Random, number: int) -> Reference:
    """Two or three rows, which differ."""
    height, width = rng.choice(SHAPES)
    rows: list[list[Fraction]] = []
    while len({tuple(row) for row in rows}) < height:
        rows = [[entry(rng) for _ in range(width)] for _ in range(height)]
    answer = written_matrix(rows)
    columns = [list(column) for column in zip(*rows, strict=True)]
    others = written_matrix([[value + 3 for value in row] for row in rows])
    flat = [value for row in rows for value in row]
    wrong = {
        "nearby": written_matrix([[rows[0][0] + 1, *rows[0][1:]], *rows[1:]]),
        "rows_swapped": written_matrix(rows[::-1]),
        "missing": written_matrix(rows[1:]),
        "additional": written_matrix([*rows, rows[0]]),
        "determinant": written_matrix(rows, "vmatrix") if height == width else others,
        "flat": f"({joined(flat)})" if width > 1 else others,
    }
    if any(flat):
        wrong["sign"] = written_matrix([[-value for value in row] for row in rows])
    if width == 1 or (height == width and rows != columns):
        wrong["transposed"] = written_matrix(columns)
    return Reference(
        answer=answer,
        forms={
            "same": answer,
            "bmatrix": written_matrix(rows, "bmatrix"),
            "tight": written_matrix(rows, between="&", end=r"\\"),
            "newline": written_matrix(rows, end=" \\\\\n"),
            "dfrac": answer.replace(r"\frac", r"\dfrac"),
        },
        wrong=wrong,
        question="Compute the matrix product.",
        other=others,
        variable=r"\mathbf{A}",
    )
