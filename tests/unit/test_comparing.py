"""A candidate is held against whoever is champion when it is decided upon, not when it was trained."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.config.promotion import load_policy
from components.errors import InputError
from components.evaluation import against
from components.registry import Candidate, DirectoryStore
from flows.governance.comparison import comparison_with
from flows.governance.registry import RegistryContext
from tests.code_graph import ROOT
from tests.fake_line.against import compare_with_champion
from tests.proposals import propose_in


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "configs", folder / "configs")
    return folder


@pytest.fixture(scope="module")
def pair(project: Path) -> tuple[Candidate, Candidate]:
    """A champion, and a candidate that was never compared with it."""
    return propose_in(project, 0.1), propose_in(project, 0.2)


def compared(project: Path, candidate: Candidate, champion: Candidate, *, now: bool = True) -> dict[str, Any] | None:
    context = RegistryContext(project, DirectoryStore(project / "registry"), load_policy(project))
    return comparison_with(context.project, context.store, candidate, champion.digest, now=now)


def test_a_comparison_is_made_once_and_kept(
    monkeypatch: pytest.MonkeyPatch, project: Path, pair: tuple[Candidate, Candidate]
) -> None:
    made: list[Path] = []

    def once(settings: Any, evidence: Any, candidate: Path, champion: Path, cache: Path) -> dict[str, Any]:
        made.append(candidate)
        return compare_with_champion(settings, evidence, candidate, champion, cache)

    monkeypatch.setattr(against, "compare_with_champion", once)
    champion, candidate = pair
    first, second = compared(project, candidate, champion), compared(project, candidate, champion)
    assert first is not None
    assert first == second
    assert len(made) == 1
    assert (first["candidate"], first["champion"], first["mean"]) == (candidate.digest, champion.digest, 0.02)

    (kept,) = project.glob("registry/objects/comparisons/*.json")
    assert kept.stem == f"{candidate.digest}-{champion.digest}"
    kept.write_text(kept.read_text().replace(str(candidate.evidence), "0" * 64))
    assert compared(project, candidate, champion) == first
    assert len(made) == 2, "one on other evidence is not taken"
    kept.unlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept.clear(),
        lambda kept: [kept.pop(name) for name in list(kept) if name != "evidence"],
        lambda kept: kept.pop("gain"),
        lambda kept: kept["gain"].pop("low"),
        lambda kept: kept["gain"].update(low="-0.01"),
        lambda kept: kept["gain"].update(mean=float("nan")),
        lambda kept: kept.update(gain=[]),
        lambda kept: kept.update(figures=7),
        lambda kept: kept["figures"].pop("champion"),
        lambda kept: kept["figures"].update(champion={"unscorable_share": -0.5}),
        lambda kept: kept.update(champion="d" * 64),
    ],
)
def test_a_comparison_that_is_incomplete_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
    project: Path,
    pair: tuple[Candidate, Candidate],
    change: Callable[[dict[str, Any]], object],
) -> None:
    monkeypatch.setattr(against, "compare_with_champion", compare_with_champion)
    champion, candidate = pair
    whole = compared(project, candidate, champion)
    (file,) = project.glob("registry/objects/comparisons/*.json")
    kept = json.loads(file.read_text())
    change(damaged := json.loads(file.read_text()))
    file.write_text(json.dumps(damaged))
    pending = compared(project, candidate, champion, now=False)
    assert pending is not None and pending["pending"]
    assert compared(project, candidate, champion) == whole
    assert json.loads(file.read_text()) == kept
    file.unlink()


def test_a_comparison_of_no_prompt_that_both_could_be_scored_on_is_one(
    monkeypatch: pytest.MonkeyPatch, project: Path, pair: tuple[Candidate, Candidate]
) -> None:
    def unscored(*given: Any) -> dict[str, Any]:
        return {**compare_with_champion(*given), "gain": None}

    monkeypatch.setattr(against, "compare_with_champion", unscored)
    champion, candidate = pair
    first = compared(project, candidate, champion)
    monkeypatch.setattr(against, "compare_with_champion", None)
    assert first is not None and "problem" not in first
    assert compared(project, candidate, champion) == first
    next(project.glob("registry/objects/comparisons/*.json")).unlink()


def test_a_comparison_with_a_verdict_that_failed_for_a_moments_trouble_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, project: Path, pair: tuple[Candidate, Candidate]
) -> None:
    def hurried(*arguments: Any) -> dict[str, Any]:
        return {**compare_with_champion(*arguments), "settled": False}

    monkeypatch.setattr(against, "compare_with_champion", hurried)
    champion, candidate = pair
    found = compared(project, candidate, champion)
    assert found is not None
    assert found["mean"] == 0.02
    assert list(project.glob("registry/objects/comparisons/*.json")) == []


def test_what_the_run_itself_compared_is_not_compared_again(
    monkeypatch: pytest.MonkeyPatch, project: Path, pair: tuple[Candidate, Candidate]
) -> None:
    monkeypatch.setattr(against, "compare_with_champion", None)
    candidate = propose_in(project, 0.3, champion=pair[0].digest)
    found = compared(project, candidate, pair[0])
    assert found is not None
    assert (found["candidate"], found["champion"]) == (candidate.digest, pair[0].digest)


def test_a_comparison_that_could_not_be_made_or_kept_is_no_verdict_on_the_candidate(
    monkeypatch: pytest.MonkeyPatch, project: Path, pair: tuple[Candidate, Candidate]
) -> None:
    def broken(*_: Any) -> dict[str, Any]:
        raise InputError("No space left on device")

    champion, candidate = pair
    monkeypatch.setattr(against, "compare_with_champion", broken)
    with pytest.raises(InputError, match="No space left"):
        compared(project, candidate, champion)
    monkeypatch.setattr(against, "compare_with_champion", compare_with_champion)
    monkeypatch.setattr(DirectoryStore, "compare_and_swap", broken)
    with pytest.raises(InputError, match="No space left"):
        compared(project, candidate, champion)


def test_what_is_wrong_with_the_candidate_is_for_the_gate_to_say(
    monkeypatch: pytest.MonkeyPatch, project: Path, pair: tuple[Candidate, Candidate]
) -> None:
    monkeypatch.setattr(against, "compare_with_champion", None)
    unsigned = propose_in(project, 0.4)
    for signature in project.glob(f"registry/objects/signatures/{unsigned.digest}/*"):
        signature.unlink()
    found = compared(project, unsigned, pair[0])
    assert found is not None
    assert "sign" in found["problem"]


def test_a_champion_whose_signature_does_not_hold_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch, project: Path, pair: tuple[Candidate, Candidate]
) -> None:
    monkeypatch.setattr(against, "compare_with_champion", None)
    for signature in project.glob(f"registry/objects/signatures/{pair[0].digest}/*"):
        signature.unlink()
    with pytest.raises(InputError, match="sign"):
        compared(project, pair[1], pair[0])


def test_the_champion_is_not_compared_with_itself(project: Path, pair: tuple[Candidate, Candidate]) -> None:
    assert compared(project, pair[0], pair[0]) is None
