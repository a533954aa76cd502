"""Answers that are kept, the comparison with the champion, and what training must not read."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import packages_distributions, version
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import torch
import yaml
from factories import Judge, parity, policy, settings, workspace

from components.config import Settings
from components.errors import InputError
from components.evaluation import answering, cache
from components.evaluation.against import compare_with_champion
from components.evaluation.suites import held_out
from components.files import dump_json, manifest, read_json, read_text, sha256_tree, write_json, write_jsonl
from components.layout import EVALUATIONS_VARIABLE, Layout
from components.policy import Policy
from components.rewards.scorer import MISSING
from components.stages import evaluate
from components.stages import train as train_stage
from components.training import assembly
from components.types import Score
from tests.code_graph import ROOT, imports, modules
from tests.stage_code import effective


@pytest.fixture(autouse=True)
def _judged_by_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (answering, assembly):
        monkeypatch.setattr(module, "Scorer", lambda *_: Judge(parity))


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every checkpoint that is loaded to be asked."""
    loaded: list[Path] = []
    load = answering.load_policy

    def noted(path: Path, chosen: object) -> Policy:
        loaded.append(path)
        return load(path, chosen)  # type: ignore[arg-type]

    monkeypatch.setattr(answering, "load_policy", noted)
    return loaded


def another(seed: int) -> Policy:
    """A policy that answers otherwise."""
    changed = policy()
    with torch.no_grad():
        for parameter in changed.model.parameters():
            parameter.mul_(-1.0 - seed / 10)
    return changed


def finished(root: Path) -> Layout:
    layout = workspace(root)
    another(1).save(layout.train_checkpoint)
    return layout


# Kept answers


def test_what_was_answered_is_not_asked_again_and_the_bytes_are_the_same(tmp_path: Path, sampled: list[Path]) -> None:
    layout = finished(tmp_path)
    evaluate.run(settings(), layout)
    first = manifest(layout.out)
    assert sampled == [layout.sft_checkpoint, layout.train_checkpoint]
    evaluate.run(settings(), layout)
    assert (len(sampled), manifest(layout.out)) == (2, first)
    evaluate.run(settings(evaluation={"reuse": False}), layout)
    assert (len(sampled), manifest(layout.out)) == (4, first)


def test_the_runs_of_a_project_share_what_was_answered(
    tmp_path: Path, sampled: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EVALUATIONS_VARIABLE, str(tmp_path / "shared"))
    one, two = finished(tmp_path / "one"), finished(tmp_path / "two")
    evaluate.run(settings(), one)
    evaluate.run(settings(), two)
    assert len(sampled) == 2
    assert one.evaluation.read_bytes() == two.evaluation.read_bytes()
    assert not one.evaluations.exists()


def test_a_champion_that_was_judged_before_is_not_judged_again(tmp_path: Path, sampled: list[Path]) -> None:
    layout = finished(tmp_path)
    another(2).save(tmp_path / "champion")
    champion = settings(evaluation={"champion": {"path": str(tmp_path / "champion")}})
    evaluate.run(champion, layout)
    shutil.rmtree(layout.train_checkpoint)
    another(3).save(layout.train_checkpoint)
    sampled.clear()
    evaluate.run(champion, layout)
    assert sampled == [layout.train_checkpoint]


@pytest.mark.parametrize(("reason", "kept"), [
    ("timeout: no verdict within 20 s", False), ("crash: the process ended with signal 9", False),
    ("memory: the verifier needs more than its limit", False), ("cpu: no verdict", True), ("error: ValueError", True),
    ("refused: the reference is no number", True),
])  # fmt: skip
def test_a_verdict_that_failed_for_a_moments_trouble_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, kept: bool
) -> None:
    layout = finished(tmp_path)
    reasons = [reason]

    class Busy(Judge):
        def score_groups(self, items: Any) -> list[tuple[Score, ...]]:
            if not reasons:
                return super().score_groups(items)
            return [tuple(Score(None, unscorable=reason) for _ in completions) for _, completions in items]

    monkeypatch.setattr(answering, "Scorer", lambda *_: Busy(parity))
    evaluate.run(settings(), layout)
    assert read_json(layout.evaluation)["trained"]["unscorable_share"] == 1
    other = layout.train_checkpoint, layout.sft_checkpoint, tmp_path / "other"
    assert compare_with_champion(settings(), layout, *other)["settled"] is kept
    reasons.clear()
    assert compare_with_champion(settings(), layout, *other)["settled"]
    evaluate.run(settings(), layout)
    assert (read_json(layout.evaluation)["trained"]["unscorable_share"] == 1) is kept


def test_a_consistency_that_could_not_be_judged_is_not_kept(
    tmp_path: Path, sampled: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = finished(tmp_path)
    missing = Score(1.0, {"consistency": 0.0}, metrics={MISSING: 1.0})

    class Busy(Judge):
        def score_groups(self, items: Any) -> list[tuple[Score, ...]]:
            return [(missing,) * len(completions) for _, completions in items]

    monkeypatch.setattr(answering, "Scorer", lambda *_: Busy(parity))
    evaluate.run(settings(), layout)
    evaluate.run(settings(), layout)
    assert len(sampled) == 4


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_what_servers_answer_is_not_kept(
    tmp_path: Path, sampled: list[Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Neither their version nor what else they answer at the time is known when an answer is looked for."""
    layout, build = finished(tmp_path), answering.build_engine
    monkeypatch.setattr(answering, "build_engine", lambda chosen, _, logs: build(chosen, settings().rollout, logs))
    served = settings(rollout={"engine": {"kind": kind, "urls": ["http://rollout-0:8000"]}})
    evaluate.run(served, layout)
    evaluate.run(served, layout)
    assert len(sampled) == 4
    assert not layout.evaluations.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 5},
        {"evaluation": {"samples": 3}},
        {"evaluation": {"prompts": 3}},
        {"rollout": {"temperature": 0.7}},
        {"rollout": {"max_new_tokens": 3}},
        {"policy": {"instruction": "Think. "}},
        {"reward": {"verifier": {"kind": "exact", "marker": "!"}}},
    ],
    ids=str,
)
def test_whatever_an_answer_depends_on_changes_the_key(tmp_path: Path, change: dict[str, object]) -> None:
    layout = finished(tmp_path)

    def key(chosen: Settings) -> dict[str, str]:
        return cache.key_of(sha256_tree(layout.train_checkpoint), held_out(chosen, layout), layout.consistency)

    assert key(settings()) == key(settings(train={"steps": 9}, gate={"min_gain": 0.5}, evaluation={"bootstrap": 200}))
    assert key(settings()) != key(settings(**change))


def test_another_checkpoint_and_other_code_change_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = finished(tmp_path)
    asked = held_out(settings(), layout)
    keys = [
        cache.key_of(sha256_tree(path), asked, layout.consistency)
        for path in (layout.sft_checkpoint, layout.train_checkpoint)
    ]
    monkeypatch.setattr(cache, "CODE", ("seeds.py",))
    keys.append(cache.key_of(sha256_tree(layout.train_checkpoint), asked, layout.consistency))
    assert len({dump_json(key) for key in keys}) == 3


def edited(change: Callable[[dict[str, Any]], object], *, digested: bool = False) -> Callable[[Path], None]:
    """Changes an entry, and its digest with it where ``digested``."""

    def damage(path: Path) -> None:
        entry = read_json(path)
        change(entry)
        write_json(path, entry | ({"sha256": cache.sha256_json(entry["answers"])} if digested else {}))

    return damage


def test_an_entry_larger_than_other_files_may_be_is_read(
    tmp_path: Path, sampled: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cache, "read_text", partial(read_text, most=100))
    layout = finished(tmp_path)
    for _ in range(2):
        evaluate.run(settings(), layout)
    assert len(sampled) == 2 and "damaged" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_text("[1]"),
        lambda path: path.write_text(""),
        edited(lambda entry: entry["answers"][0]["result"].update(greedy=0.125)),
        edited(lambda entry: entry["key"].update(checkpoint="0" * 64)),
        edited(lambda entry: entry["answers"].pop(), digested=True),
        edited(lambda entry: entry.update(answers=[{"result": {"id": "p"}, "text": 1}] * 4), digested=True),
    ],
)
def test_a_damaged_entry_is_found_reported_and_generated_again(
    tmp_path: Path, sampled: list[Path], capsys: pytest.CaptureFixture[str], damage
) -> None:
    layout = finished(tmp_path)
    evaluate.run(settings(), layout)
    first, kept = manifest(layout.out), manifest(layout.evaluations)
    entry = layout.evaluations / next(iter(kept))
    damage(entry)
    capsys.readouterr()
    evaluate.run(settings(), layout)
    said = capsys.readouterr().err
    assert f"{entry}: a damaged entry" in said
    assert "generated again" in said
    assert len(sampled) == 3
    assert (manifest(layout.out), manifest(layout.evaluations)) == (first, kept)


def test_the_code_that_answers_and_scores_is_part_of_the_key() -> None:
    files, names = modules("components"), effective("components.evaluation.answering")
    loaded = {files[name].relative_to(ROOT / "components").as_posix() for name in names}
    covered = {path for path in loaded for part in cache.CODE if path == part or path.startswith(f"{part}/")}
    without_effect = (
        *("checkpoints/", "code_digest.py", "data/prompts.py", "directories.py", "files.py", "tasks/"),
        *("data/candidates.py", "data/outside.py", "evaluation/cache.py", "evaluation/formats.py"),
        *("data/__init__.py", "evaluation/__init__.py", "evaluation/statistics.py"),
        "environments/",  # their answers are not kept
    )
    assert {path for path in loaded - covered if not path.startswith(without_effect)} == set()
    assert all((ROOT / "components" / part).exists() for part in cache.CODE)


def test_the_packages_that_answer_and_score_are_part_of_the_key() -> None:
    files = [path for part in cache.CODE for path in sorted((ROOT / "components").glob(f"{part}/**/*.py"))]
    files += [ROOT / "components" / part for part in cache.CODE if part.endswith(".py")]
    names = {name.partition(".")[0] for path in files if "servers" not in path.parts for name in imports(path)}
    found = packages_distributions()
    used = {dist for name in names - sys.stdlib_module_names - {"components"} for dist in map(str.lower, found[name])}
    without_effect = {"accelerate", "huggingface_hub", "peft", "pydantic", "pyyaml", "referencing", "scikit-learn"}
    assert used - without_effect - set(cache.PACKAGES) == set()


def test_other_packages_change_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.packages()
    cache.packages.cache_clear()
    monkeypatch.setattr(cache, "version", lambda name: "0" if name == "sympy" else version(name))
    try:
        assert cache.packages() != before
    finally:
        cache.packages.cache_clear()


# Several suites in one stage


def test_suites_have_figures_of_their_own_and_leave_the_others_alone(tmp_path: Path) -> None:
    layout = finished(tmp_path)
    evaluate.run(settings(), layout)
    alone = read_json(layout.evaluation)
    source = {"task": "arithmetic", "rows": 40, "levels": 1}
    more = {"kind": "generated", "source": source, "prompts": 3, "samples": 2}
    greedy = more | {"samples": 0, "seed": 2}
    evaluate.run(settings(evaluation={"suites": {"more": more, "greedy": greedy}}), layout)
    found = read_json(layout.evaluation)
    same = set(alone) - {"suites", "contamination", "words"}
    assert {key: found[key] for key in same} == {key: alone[key] for key in same}
    assert (found["suites"]["more"]["prompts"], found["suites"]["more"]["samples"]) == (3, 2)
    assert found["suites"]["greedy"]["trained"]["pass_at_1"] is None
    assert found["suites"]["greedy"]["trained"]["greedy"] is not None
    assert set(found["contamination"]["suites"]) == {"test", "more", "greedy"}


def test_a_test_prompt_that_was_trained_on_is_reported_and_left_out_for_comparison(tmp_path: Path) -> None:
    layout = finished(tmp_path)
    seen = held_out(settings(), layout).prompts[1].to_dict() | {"id": "seen"}
    layout.split("sft").write_text(f"{json.dumps(seen)}\n")
    layout.split("train").write_text("")
    evaluate.run(settings(), layout)
    found = read_json(layout.evaluation)["contamination"]
    test = found["suites"]["test"]
    assert (found["worst"], found["worst_share"], test["exact"], test["without"]["prompts"]) == ("test", 0.25, 1, 3)
    assert test["examples"][0]["training_id"] == "seen"
    assert test["without"]["gain"]["n"] == 3


def test_a_prompt_that_is_too_long_for_the_model_is_named_with_its_suite(tmp_path: Path) -> None:
    layout = finished(tmp_path)
    rows = [{"question": "1+1=", "answer": "2"}, {"question": "1+" * 99, "answer": "2", "id": "long"}]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    suite = {"kind": "file", "path": str(tmp_path / "rows.jsonl"), "format": "question_answer"}
    with pytest.raises(InputError, match="exceed the 64 positions") as caught:
        evaluate.run(settings(evaluation={"suites": {"sums": suite}}), layout)
    assert caught.value.where == "evaluation.suites.sums, prompt long"
    assert caught.value.how is not None
    assert caught.value.how.startswith("lower evaluation.suites.sums.max_new_tokens")
    assert not layout.evaluation.exists()


# The comparison for promotion


def test_a_candidate_is_compared_with_the_champion_on_its_own_test_prompts(tmp_path: Path, sampled: list[Path]) -> None:
    layout = finished(tmp_path)
    another(2).save(tmp_path / "champion")
    champion = {"path": str(tmp_path / "champion")}
    evaluate.run(settings(evaluation={"champion": champion}), layout)
    stage = read_json(layout.evaluation)
    sampled.clear()
    arguments = settings(), layout, layout.train_checkpoint, tmp_path / "champion", layout.evaluations
    found = compare_with_champion(*arguments)
    assert sampled == []  # the stage has asked both
    assert (found["candidate"], found["champion"]) == (sha256_tree(arguments[2]), sha256_tree(arguments[3]))
    assert found["prompts_sha256"] == stage["prompts_sha256"]
    assert (found["gain"], found["greedy_gain"]) == (stage["gain_over_champion"], stage["greedy_gain_over_champion"])
    assert found["figures"]["champion"] == stage["champion"]
    assert found["figures"]["candidate"]["calibration"] == stage["trained"]["calibration"]
    assert "over the champion" in found["words"][0]
    again = compare_with_champion(*arguments[:4], tmp_path / "empty")
    assert dump_json(again) == dump_json(found)


def test_evidence_alone_is_enough_for_a_comparison(tmp_path: Path) -> None:
    layout = finished(tmp_path / "run")
    evidence = Layout(tmp_path / "evidence")
    evidence.data.mkdir(parents=True)
    shutil.copy(layout.split("test"), evidence.split("test"))
    candidate = layout.train_checkpoint
    found = compare_with_champion(settings(), evidence, candidate, candidate, tmp_path / "kept")
    assert found["words"][0] == "The candidate is the champion: both are the same checkpoint."
    assert (found["gain"]["mean"], found["greedy_gain"]["mcnemar_p"]) == (0, 1)


def test_a_comparison_without_prompts_or_with_an_unsafe_champion_is_refused(tmp_path: Path) -> None:
    layout = finished(tmp_path / "run")
    with pytest.raises(InputError, match="file not found"):
        compare_with_champion(
            settings(), Layout(tmp_path), layout.train_checkpoint, layout.sft_checkpoint, tmp_path / "kept"
        )
    another(2).save(tmp_path / "champion")
    (tmp_path / "champion" / "modeling.py").write_text("print('hello')")
    with pytest.raises(InputError, match="must not bring code"):
        compare_with_champion(settings(), layout, layout.train_checkpoint, tmp_path / "champion", tmp_path / "kept")


# The test split chooses nothing

PIPELINE = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
JUDGES = {"audit", "evaluate", "dpo"}
"""Stages that read the test split: the verifier on reference answers, and what comes after training."""


def depends_on(stage: str) -> set[str]:
    return {PurePosixPath(dep).as_posix() for dep in PIPELINE[stage]["deps"] if dep.startswith("out/")}


def test_no_stage_that_makes_or_chooses_a_checkpoint_depends_on_the_test_split() -> None:
    readers = {stage for stage in PIPELINE if {"out/data", "out/data/test.jsonl"} & depends_on(stage)}
    assert readers == JUDGES
    assert {"out/data/train.jsonl", "out/data/dev.jsonl"} <= depends_on("train")
    assert not {"out/evaluation.json", "out/samples.jsonl", "out/dpo"} & depends_on("train")


OPENED: list[str] = []
WATCHING = [False]


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if WATCHING[0] and event == "open":
        OPENED.append(str(arguments[0]))


sys.addaudithook(_note)


@contextmanager
def opened() -> Iterator[list[str]]:
    """Every file that this process opens meanwhile."""
    OPENED.clear()
    WATCHING[0] = True
    try:
        yield OPENED
    finally:
        WATCHING[0] = False


def test_training_reads_the_dev_split_and_never_the_test_split(tmp_path: Path) -> None:
    with_test, without = workspace(tmp_path / "with"), workspace(tmp_path / "without")
    without.split("test").unlink()
    with opened() as files:
        for layout in (with_test, without):
            train_stage.run(settings(), layout)
    assert str(with_test.split("dev")) in files
    assert [file for file in files if Path(file).name == "test.jsonl"] == []
    assert manifest(with_test.train) == manifest(without.train)
