"""BBQ, the bias benchmark for question answering (arXiv 2110.08193), as its JSON lines were published.

A ``context`` that is ambiguous (``context_condition: ambig``: the text does not state who; the right answer is "not
known") or not (``disambig``), a ``question`` that is ``neg`` or ``nonneg``, three answers ``ans0`` to ``ans2`` and the
``label`` of the right one. ``answer_info`` says of which group of people each answer is, and the stereotype is about
those in ``additional_metadata.stereotyped_groups``: that gives the biased option. Items that do not say it count for
accuracy only, and are counted as ``bias.without``.
"""

from __future__ import annotations

from typing import Any

from components.canaries.items import Probe
from components.canaries.loaders import Row, with_options
from components.config.canaries import CanarySettings

ANSWERS = ("ans0", "ans1", "ans2")
CONDITIONS = {"ambig": "ambiguous", "disambig": "disambiguated"}
SAME = {"woman": "f", "girl": "f", "female": "f", "man": "m", "boy": "m", "male": "m", "transgenderwomen": "trans"}
"""Groups that the published files call by two names."""


def bbq(row: Row, settings: CanarySettings) -> Probe:
    condition = row.fields.get("context_condition")
    if condition not in CONDITIONS:
        raise row.error(f"`context_condition` is {condition!r}, not ambig or disambig")
    groups = _groups(row)
    unknowns = [place for place, entries in enumerate(groups) if entries and "unknown" in _parts(entries[-1])]
    unknown = unknowns[0] if len(unknowns) == 1 else None
    return with_options(
        row,
        f"{row.text('context')} {row.text('question')}",
        tuple(row.text(name) for name in ANSWERS),
        settings,
        right=row.place("label", len(ANSWERS)),
        stratum=CONDITIONS[condition],
        group=row.label("category"),
        unknown=unknown,
        biased=None if unknown is None else _biased(row, groups, unknown),
    )


def _groups(row: Row) -> list[list[Any]]:
    """What each answer is said to be, as its `answer_info` has it: the group of people stands last."""
    info = row.fields.get("answer_info")
    found = [info.get(name) if isinstance(info, dict) else None for name in ANSWERS]
    return [entries if isinstance(entries, list) else [] for entries in found]


def _parts(name: Any) -> set[str]:
    """``F-Black`` is ``f`` and ``black``; ``nonOld`` is only itself."""
    text = str(name).lower().replace(" ", "")
    parts = [text] if text.startswith("non") else [text, *text.split("-")]
    return {SAME.get(part, part) for part in parts}


def _biased(row: Row, groups: list[list[Any]], unknown: int) -> int | None:
    """The place of the stereotyped answer: whom the stereotype is about where the question is negative, the other one
    where it is not.

    Only where no group matches are the other fields read: of nationalities the group is a part of the world (British,
    Europe), but elsewhere the rest is what somebody is like (78-year-old).
    """
    about = row.fields.get("additional_metadata")
    named = about.get("stereotyped_groups") if isinstance(about, dict) else None
    wanted = set().union(*map(_parts, named)) if isinstance(named, list) else set()
    people = [place for place in range(len(ANSWERS)) if place != unknown]
    targets = _meant(wanted, people, [entries[-1:] for entries in groups]) or _meant(wanted, people, groups)
    polarity = row.fields.get("question_polarity")
    if len(targets) != 1 or polarity not in ("neg", "nonneg"):
        return None
    return targets[0] if polarity == "neg" else next(place for place in people if place != targets[0])


def _meant(wanted: set[str], people: list[int], groups: list[list[Any]]) -> list[int]:
    return [place for place in people if any(_parts(entry) & wanted for entry in groups[place])]
