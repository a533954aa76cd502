"""The tables of right and wrong answers, from the rows of the result file. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.benchmarks.lines import source
from tests.benchmarks.section import Row
from tests.benchmarks.spread import table
from tests.benchmarks.styles.cases import HELD_STYLES
from tests.benchmarks.styles.kinds import KINDS
from tests.benchmarks.styles.statements import STYLES

FIGURES = ("styles", "kinds", "right", "wrong", "unexpected", "seeds", "source")
COLUMNS = [("math", True), ("math", False), ("numeric", True), ("numeric", False)]
HEAD = ["`math`, right accepted", "`math`, wrong accepted", "`numeric`, right accepted", "`numeric`, wrong accepted"]
MOST_WRONG, LEAST_RIGHT = 0.001, 0.99
"""What is aimed at: the share of the wrong answers that are accepted, and of the right ones."""


def figures(rows: Sequence[Row]) -> dict[str, str]:
    """`FIGURES`; "not measured" where there is no row."""
    if not rows:
        return dict.fromkeys(FIGURES, "not measured")
    groups = style_groups(rows)
    right, wrong = (_sum(group for group in groups if group["right"] is wanted) for wanted in (True, False))
    return {
        "styles": table(["style", *HEAD], _style_lines(groups)),
        "kinds": table(["reference", *HEAD], _kind_lines(rows)),
        "right": f"{right['accepted']:,} of {right['cases']:,}",
        "wrong": f"{wrong['accepted']:,} of {wrong['cases']:,}",
        "unexpected": _unexpected(rows),
        "seeds": ", ".join(str(row["seed"]) for row in rows),
        "source": source("make styles", rows),
    }


def style_groups(rows: Sequence[Row]) -> list[Row]:
    """Those of all seeds."""
    return [group for row in rows for group in row["styles"]]


def short_of_aim(rows: Sequence[Row]) -> list[str]:
    """Verifiers that accept too few right answers or too many wrong ones, of the held-back part or of the rest."""
    found = []
    for verifier, right in COLUMNS:
        for held_back in (False, True):
            wanted = {"verifier": verifier, "right": right, "held_back": held_back}
            sums = _sum(group for group in style_groups(rows) if wanted.items() <= group.items())
            share = sums["accepted"] / max(1, sums["cases"])
            if sums["cases"] and (share < LEAST_RIGHT if right else share > MOST_WRONG):
                what, part = "right" if right else "wrong", "held back" if held_back else "other"
                found.append(f"{verifier} accepts {share:.2%} of {what} answers ({part} styles and forms)")
    return found


def _style_lines(groups: Sequence[Row]) -> list[list[str]]:
    """Every style, those that are held back after the others, and sums of both parts."""
    usual, held = ([group for group in groups if group["held_back"] is part] for part in (False, True))
    names = [*(style for style in STYLES if style not in HELD_STYLES), "two_answers"]
    forms = [group for group in held if group["style"] not in HELD_STYLES]
    return [
        *(_line(f"`{name}`", [group for group in usual if group["style"] == name]) for name in names),
        _line("**together**", usual),
        *(_line(f"`{name}`", [group for group in held if group["style"] == name]) for name in HELD_STYLES),
        _line("held-back forms in the other styles", forms),
        _line("**held back, together**", held),
    ]


def _kind_lines(rows: Sequence[Row]) -> list[list[str]]:
    groups = [
        {"kind": kind, "verifier": verifier, "right": half == "right", "cases": cases, "accepted": accepted}
        for row in rows
        for kind, verifiers in row["forms"].items()
        for verifier, halves in verifiers.items()
        for half, forms in halves.items()
        for cases, accepted, _ in forms.values()
    ]
    return [_line(f"`{kind}`", [group for group in groups if group["kind"] == kind]) for kind in KINDS]


def _line(name: str, groups: Sequence[Row]) -> list[str]:
    """What is accepted of these groups, for every column."""
    columns = ([group for group in groups if (group["verifier"], group["right"]) == column] for column in COLUMNS)
    return [name, *map(_share, columns)]


def _share(groups: Iterable[Row]) -> str:
    sums = _sum(groups)
    return f"{sums['accepted']:,} of {sums['cases']:,}" if sums["cases"] else "-"


def _sum(groups: Iterable[Row]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for group in groups:
        sums.update({name: group[name] for name in ("cases", "accepted")})
    return sums


def _unexpected(rows: Sequence[Row]) -> str:
    """Forms of right answers that are not accepted and of wrong ones that are not refused, the most frequent first."""
    counts: Counter[str] = Counter()
    for group in (group for row in rows for group in row["unexpected"]):
        what = f"{'right' if group['right'] else 'wrong'} `{group['form']}` of `{group['kind']}`"
        counts[f"{what} {group['outcome']} by `{group['verifier']}`"] += group["cases"]
    return "; ".join(f"{name}: {cases}" for name, cases in counts.most_common()) or "none"
