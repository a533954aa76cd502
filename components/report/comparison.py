"""What is known against the champion: the comparison that was kept, and no figures of another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from components.report.gains import SLICES
from components.report.run import Part, Run, dig

OF_CHAMPION = ("champion", "gain_over_champion", "greedy_gain_over_champion")
"""Keys of `out/evaluation.json` and of its suites; the slices of the trained policy have the second, too."""


def against_champion(run: Run) -> Run:
    """The run without what it measured of another champion than the one that the page compares with.

    The page of a run alone compares with the champion that its settings name.
    """
    named, alone = run.settings.evaluation.champion, run.champion is None and run.judgement is None
    digest = None if named is None else named.sha256
    same = digest is not None and digest == dig(run.champion, "digest")
    if alone or same or (named is None and dig(run.evaluation, "champion") is None):
        return run
    return replace(
        run,
        another=digest or "unknown",
        evaluation=None if run.evaluation is None else _evaluation(run.evaluation),
        canaries=None if run.canaries is None else _canaries(run.canaries),
    )


def _evaluation(evaluation: Part) -> Part:
    suites = {name: _figures(suite) for name, suite in (dig(evaluation, "suites") or {}).items()}
    words = [sentence for sentence in _words(evaluation.get("words")) if "over the champion" not in sentence]
    return {**_figures(evaluation), "suites": suites, "words": words}


def _figures(figures: Part) -> Part:
    trained = dict(dig(figures, "trained") or {})
    for kind in SLICES:
        trained[kind] = {name: _without(one, OF_CHAMPION) for name, one in (trained.get(kind) or {}).items()}
    return {**_without(figures, OF_CHAMPION), "trained": trained}


def _canaries(canaries: Part) -> Part:
    sets = {name: {**one, "by": _ways(one)} for name, one in (dig(canaries, "sets") or {}).items()}
    return {**canaries, "sets": sets}


def _ways(one: Part) -> Part:
    return {by: _without(way, OF_CHAMPION) for by, way in (dig(one, "by") or {}).items()}


def _without(part: Part, keys: Sequence[str]) -> Part:
    return {key: value for key, value in part.items() if key not in keys}


def as_evaluated(comparison: Part) -> Part:
    """The keys of `out/evaluation.json` that a comparison of `components.evaluation.against` has; its candidate stands
    under ``against_champion``."""
    return {
        "champion": dig(comparison, "figures", "champion"),
        "against_champion": {"prompts": comparison.get("prompts"), "trained": dig(comparison, "figures", "candidate")},
        "gain_over_champion": comparison.get("gain"),
        "greedy_gain_over_champion": comparison.get("greedy_gain"),
        "champion_words": _words(comparison.get("words")),
    }


def _words(words: Any) -> list[str]:
    return [str(sentence) for sentence in words] if isinstance(words, list) else []
