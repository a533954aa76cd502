"""Settings of a run that decide its figures: each is the policy's to bound, or cannot turn a fail into a pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from components.config import Settings, load
from components.config.governed import GOVERNED, Bound, loosened, value_at
from components.config.promotion import read_policy
from components.errors import InputError
from components.gate.checks.stored import BY_POLICY
from components.gate.evidence import Evidence

JUDGING = ("admission", "audit", "evaluation", "triage")
"""Sections of the stages whose figures or verdicts the gate reads."""
SHOWN = "the gate is inconclusive by it, and shows it to the approver"
INTERVAL = "fewer make the interval wider that the gate goes by, and `gate.min_prompts` bounds it"
LIVE = "the verifier while training: not what the gate reads"
STAGE = "the stage's own limit; the gate holds the figures against its own"
FREE: Mapping[str, str] = {
    "admission.prompts": "how many labels are compared: what the gate reads of it passes",
    "admission.sensitive": "passes in every case: withheld prompts are left out, and listed for a person",
    "admission.sensitive_words": "more words than the package's own",
    "audit.agreement": LIVE,
    "audit.live_share": LIVE,
    "audit.max_false_negative": STAGE,
    "audit.max_false_positive": STAGE,
    "audit.override": SHOWN,
    "audit.prompts": "fewer make the upper bound higher that the gate goes by",
    "audit.second": LIVE,
    "audit.second_judges": LIVE,
    "evaluation.champion": "the comparison with the present champion is the promoter's own",
    "evaluation.contamination.near_duplicates.shingles": "of the same similarity",
    "evaluation.contamination.near_duplicates.size": "of the same similarity",
    "evaluation.ks": "which figures are shown",
    "evaluation.prompts": INTERVAL,
    "evaluation.reuse": "the same answers, to the byte",
    "evaluation.samples": INTERVAL,
    "evaluation.small": "what is called small where it is shown",
    "evaluation.suites": "further prompts: the limits hold for the worst of all",
    "triage.override": SHOWN,
    "triage.prompts": "what the verdict is estimated from",
    "triage.samples": "what the verdict is estimated from",
}
"""Why no bound is needed."""


def leaves(section: BaseModel, path: str) -> Iterator[str]:
    for name in type(section).model_fields:
        value, here = getattr(section, name), f"{path}.{name}"
        if isinstance(value, BaseModel):
            yield from leaves(value, here)
        else:
            yield here


def test_every_setting_of_a_judging_stage_is_bounded_or_free_for_a_reason() -> None:
    found = {path for name in JUDGING for path in leaves(getattr(Settings(), name), name)}
    assert found == set(GOVERNED) | set(FREE)
    assert not set(GOVERNED) & set(FREE)


def test_the_defaults_keep_to_every_bound() -> None:
    assert not list(loosened(Settings(), GOVERNED))


@pytest.mark.parametrize("path", sorted(Path("configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_configurations_keep_to_every_bound(path: Path) -> None:
    assert not list(loosened(load(path), GOVERNED))


def looser(bound: Bound) -> Any:
    if bound.one_of:
        return "off"
    return bound.at_most * 1.1 if bound.at_most is not None else (bound.at_least or 0) * 0.9


@pytest.mark.parametrize("path", sorted(GOVERNED))
def test_no_setting_of_a_run_loosens_a_bound(path: str) -> None:
    settings = Settings()
    *parents, last = path.split(".")
    section = value_at(settings, ".".join(parents))
    changed = section.model_copy(update={last: looser(GOVERNED[path])})
    for name in reversed(parents):
        above = value_at(settings, ".".join(parents[: parents.index(name)])) if name != parents[0] else settings
        changed = above.model_copy(update={name: changed})
    result, text = BY_POLICY.judge(Evidence({"policy_bounds": GOVERNED}), changed)
    assert result == "fail"
    assert path in text and str(GOVERNED[path]) in text


def test_a_policy_may_bound_other_settings_and_allow_more() -> None:
    policy = read_policy({"runs": {"triage.min_entropy": {"at_least": 0}, "evaluation.samples": {"at_least": 8}}}, "p")
    assert list(loosened(Settings(), policy.bounds)) == ["evaluation.samples is 4, and must be at least 8"]


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({"triage.entropy": {"at_least": 0}}, "there is no setting triage.entropy"),
        ({"triage.min_entropy": {}}, "give at_least, at_most or one_of"),
        ({"triage": {"at_least": 0}}, "triage is a section"),
    ],
)
def test_a_policy_that_bounds_nothing_is_refused(runs: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_policy({"runs": runs}, "p")
    assert said in caught.value.what
