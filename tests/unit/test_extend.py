"""Entries from outside: what is accepted, what is refused and why, and what is never imported.

The examples are those of docs/extend.md, written into a folder from which the commands of these tests run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from test_docs_examples import NEW_FILE

from components import catalog
from components.catalog import Catalog
from components.command import main
from components.config import Settings, dump, load, pin_inputs
from components.config.advantages import Advantage
from components.config.extensions import python_entries
from components.config.ratios import Ratio
from components.config.sandbox import SandboxSettings
from components.config.scheduling import PoolsSchedule, PythonSchedule
from components.config.sources import PythonSource
from components.config.verifiers import PythonVerifier
from components.data.provenance import Passes
from components.data.sources import SOURCES
from components.errors import EvenkeelError, InputError
from components.evaluation.suites import suites
from components.extensions import check_extensions, problems
from components.objectives.advantages import ADVANTAGES
from components.objectives.ratios import RATIOS
from components.rewards import Scorer, build_verifier
from components.rewards.sandbox import Sandbox
from components.scheduling import OUTSIDE, DifficultyPools, Uniform
from components.scheduling.entry import contract
from components.types import Completion, Prompt
from tests.code_graph import ROOT

PAGE = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
EXAMPLES = {found["path"]: found["body"] for found in NEW_FILE.finditer(PAGE)}
RATIO = {"kind": "python", "target": "extensions.hinge:RATIO"}
ALL = (
    "reward.verifier={kind: python, target: 'extensions.dates:VERIFIER'}",
    "objective.ratio={kind: python, target: 'extensions.hinge:RATIO'}",
    "objective.advantage={kind: python, target: 'extensions.pairwise:ADVANTAGE'}",
    "schedule={kind: python, target: 'extensions.newest:SCHEDULE'}",
    "data.source={kind: python, target: 'extensions.sums:SOURCE'}",
)

FUNCTIONS = (
    "reward.functions={brevity: {target: 'extensions.manners:brevity', weight: 0.2, settings: {limit: 400}}, "
    "politeness: {target: 'extensions.manners:polite', weight: 0.1, conversational: true}}"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, with the examples of the page."""
    for path, body in EXAMPLES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(body, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    catalog._load.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("extensions", "broken")]:
        del sys.modules[name]


def settings(*overrides: str) -> Settings:
    return load(ROOT / "configs/demo.yaml", overrides)


def changed(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / f"extensions/{name}.py"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def chosen(entries: Catalog[Any], union: Any, section: dict[str, Any]) -> Any:
    return entries.choose(TypeAdapter(union).validate_python(section))


# The contracts


@pytest.mark.parametrize("kind", RATIOS)
def test_every_built_in_ratio_meets_the_contract(kind: str) -> None:
    assert RATIOS[kind].problems(TypeAdapter(Ratio).validate_python({"kind": kind})) == []


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_every_built_in_advantage_meets_the_contract(kind: str) -> None:
    assert ADVANTAGES[kind].problems(TypeAdapter(Advantage).validate_python({"kind": kind})) == []


@pytest.mark.parametrize(
    "build",
    [Uniform, lambda prompts, seed: DifficultyPools(prompts, PoolsSchedule(kind="difficulty_pools"), seed)],
    ids=["uniform", "difficulty_pools"],
)
def test_the_built_in_schedules_over_prompts_meet_the_contract(build: Any) -> None:
    assert list(contract(build)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("hinge", "-torch.minimum(", "torch.minimum(", "on policy the gradient is"),
        ("hinge", "(hinge, Settings)", "(hinge, Settings, without_advantage=True)", "if, and only if"),
        ("hinge", "log_ratio(logp, inputs.old_logp).exp()", "(logp - inputs.old_logp).double().mul(2).exp()", "finite"),
        ("hinge", "return TokenLoss(-torch", "return (-torch", "must return a TokenLoss"),
        ("pairwise", "(wins.sum(2) / others)", "(-wins.sum(2) / others)", "do not follow the rewards"),
        ("pairwise", "torch.where(both & (", "torch.where((", "without a score must have the advantage 0"),
        ("pairwise", ".float()\n\n\nADV", "\n\n\nADV", "must return fp32"),
        ("newest", "[:count]", "[: count - 1]", "must return 8 prompts"),
        ("newest", 'self._counts = np.array(state["counts"], np.int64)', "pass", "state_dict lacks something"),
        ("newest", 'self.stream("tie", int(self._counts.sum()))', "None", "must draw the same prompts"),
    ],
)  # fmt: skip
def test_an_entry_that_breaks_its_contract_is_refused_with_what_it_breaks(
    folder: Path, name: str, old: str, new: str, problem: str
) -> None:
    changed(folder, name, old, new)
    override = {"hinge": ALL[1], "pairwise": ALL[2], "newest": ALL[3]}[name]
    found = problems(settings(override))
    assert len(found) == 1 and problem in found[0], found


def test_a_ratio_against_the_sampler_is_refused_next_to_a_correction(folder: Path) -> None:
    changed(folder, "hinge", "(hinge, Settings)", "(hinge, Settings, corrects_sampler=True)")
    (found,) = problems(settings(ALL[1], "objective.correction={kind: tis_token}"))
    assert "would count the mismatch twice" in found
    assert problems(settings(ALL[1], "objective.correction=null")) == []


# The examples


def test_every_example_of_the_page_is_accepted(folder: Path) -> None:
    assert problems(settings(*ALL, FUNCTIONS)) == []


def test_the_reward_functions_of_the_page_say_what_the_page_says(folder: Path) -> None:
    prompt, other = Prompt("p", "6*7=", "42", "#42", task="arithmetic"), Prompt("q", "Thanks?", "42", "#42")
    texts = [Completion((), (), "stop", text) for text in ("#42", "#41, thank you")]
    with Scorer(settings(FUNCTIONS, "reward.soft_overlong=null").reward) as scorer:
        first, second = scorer.score_groups([(prompt, texts), (other, texts)])
    assert [score.parts["politeness"] for score in (*first, *second)] == [0, 0, 0, 0.1]
    assert first[0].parts["brevity"] == pytest.approx(0.2 * (1 - 3 / 400))
    section = PythonVerifier(kind="python", target="extensions.manners:correct")
    with Sandbox(section, SandboxSettings(workers=1)) as sandbox:
        assert [score.accuracy for score in sandbox.judge([(prompt, text.text) for text in texts])] == [1, 0]


def test_a_function_that_cannot_be_called_is_a_problem_before_anything_runs(folder: Path) -> None:
    changed(folder, "manners", "answer: list[str])", "trainer_state: Any)")
    (found,) = problems(settings("reward.functions={right: {target: 'extensions.manners:correct'}}"))
    assert "reward.functions: " in found and "it needs trainer_state" in found


@pytest.mark.parametrize("check", [["check"], ["format", "--check"]], ids=["lint", "format"])
def test_the_linter_accepts_every_example(folder: Path, check: list[str]) -> None:
    own = [*check, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    own += ["--config", "lint.isort.known-first-party=['components']"]
    done = subprocess.run([sys.executable, "-m", "ruff", *own, "extensions"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_verifier_judges_behind_the_fence_and_is_imported_nowhere_else(folder: Path) -> None:
    section = PythonVerifier(kind="python", target="extensions.dates:VERIFIER")
    prompt, odd = Prompt("p", "When?", "2026-08-05", ""), Prompt("q", "When?", "next week", "")
    with Sandbox(section, SandboxSettings(workers=1)) as sandbox:
        texts = ["#2026-08-05", "so # August 5, 2026", "#2026-05-08", "soon"]
        scores = sandbox.judge([*((prompt, text) for text in texts), (odd, "#2026-08-05")])
    assert [score.accuracy for score in scores] == [1, 1, 0, 0, None]
    assert build_verifier(section).wrap("2026-08-05") == "#2026-08-05"
    assert "extensions.dates" not in sys.modules


def test_parts_that_the_settings_do_not_name_are_unscorable(folder: Path) -> None:
    section = PythonVerifier(kind="python", target="extensions.dates:VERIFIER", rewards=("style",))
    with Sandbox(section, SandboxSettings(workers=1)) as sandbox:
        (score,) = sandbox.judge([(Prompt("p", "When?", "2026-08-05", ""), "#2026-08-05")])
    assert score.accuracy is None and "`rewards` names ('style',)" in str(score.unscorable)


def test_a_verifier_that_cannot_be_built_is_an_error_that_says_why(folder: Path) -> None:
    section = PythonVerifier(kind="python", target="extensions.dates:VERIFIER", settings={"forms": []})
    with Sandbox(section, SandboxSettings(workers=1)) as sandbox, pytest.raises(EvenkeelError, match="forms"):
        sandbox.judge([(Prompt("p", "When?", "2026-08-05", ""), "#2026-08-05")])


def test_the_source_gives_rows_that_are_read_like_those_of_a_file(folder: Path) -> None:
    source = PythonSource(kind="python", target="extensions.sums:SOURCE", settings={"rows": 3}, name="sums")
    first, *_ = rows = list(SOURCES["python"](source, 7))
    assert [row.prompt.id for row in rows] == [row.prompt.id for row in SOURCES["python"](source, 7)]
    assert (len(rows), first.prompt.source, first.fault) == (3, "sums", None)
    assert first.prompt.solution == f"#{first.prompt.answer}"


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("'a row'", "not_object"),
        ("{'question': 'a'}", "missing_column"),
        ("{'question': 'a', 'answer': 'b', 'origin': None}", "empty_origin"),
    ],
    ids=["text", "no answer", "no origin"],
)
def test_a_bad_row_of_a_source_is_its_own_fault(folder: Path, row: str, code: str) -> None:
    changed(folder, "sums", "        yield {", f"        yield {row}\n        yield {{")
    found = next(SOURCES["python"](PythonSource(kind="python", target="extensions.sums:SOURCE"), 7))
    assert found.fault is not None and found.fault.code == code


def suite() -> Settings:
    """Settings with one suite, from the example's source."""
    section = {"kind": "python", "target": "extensions.sums:SOURCE", "prompts": 2, "settings": {"rows": 3}}
    tree = load(ROOT / "configs/demo.yaml").model_dump(mode="json")
    return Settings.model_validate({**tree, "evaluation": {**tree["evaluation"], "suites": {"sums": section}}})


def test_a_suite_takes_its_problems_from_a_source(folder: Path) -> None:
    (found,) = suites(suite())
    assert (found.name, len(found.prompts), found.generated) == ("sums", 2, False)
    assert found.prompts[0].answer == str(sum_of(found.prompts[0].text))
    assert problems(suite()) == []


def sum_of(text: str) -> int:
    one, other = text.removesuffix("=").split("+")
    return int(one) + int(other)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"question": ""}, "its question or answer is empty"),
        ({"id": None}, "its id is empty"),
        ({"difficulty": "hard"}, "its difficulty is not a finite number"),
    ],
)
def test_a_row_that_is_no_problem_ends_an_evaluation_with_its_number(folder: Path, row: Any, why: str) -> None:
    odd = {"question": "?", "answer": "1", **row}
    changed(folder, "sums", "        yield {", f"        yield {odd}\n        yield {{")
    with pytest.raises(InputError, match=f"row 1 is not a problem: {why}"):
        suites(suite())


def test_problems_of_a_source_that_share_an_id_are_kept_apart(folder: Path) -> None:
    changed(folder, "sums", '"difficulty"', '"id": "sum", "difficulty"')
    (found,) = suites(suite())
    assert len({prompt.id for prompt in found.prompts}) == 2


def test_the_labels_of_a_source_are_trusted_by_the_digest_of_its_code(folder: Path) -> None:
    data = pin_inputs(settings(ALL[4])).data
    digest = getattr(data.source, "sha256", None)
    assert digest is not None and Passes(data, 0).provenance.trust == "none"
    assert Passes(data.model_copy(update={"trusted": (digest,)}), 0).provenance.trust == "allow-listed"


# What is recorded, and what is refused


def test_the_digest_of_the_code_is_part_of_the_resolved_settings_and_holds_its_module_only(folder: Path) -> None:
    pinned = pin_inputs(settings(*ALL, FUNCTIONS))
    digests = {path[-1]: entry.sha256 for path, entry in python_entries(pinned)}
    named = {"source", "schedule", "verifier", "advantage", "ratio", "brevity", "politeness"}
    assert set(digests) == named and None not in digests.values()
    changed(folder, "hinge", "A hinge:", "The hinge:")
    changed(folder, "manners", "Two parts", "The two parts")
    again = {path[-1]: entry.sha256 for path, entry in python_entries(pin_inputs(settings(*ALL, FUNCTIONS)))}
    assert {name for name in again if again[name] != digests[name]} == {"ratio", "brevity", "politeness"}


def test_a_package_counts_as_a_whole(folder: Path) -> None:
    (folder / "extensions/__init__.py").touch()
    before = pin_inputs(settings(ALL[1])).objective.ratio
    changed(folder, "dates", "Right when", "It is right when")
    assert pin_inputs(settings(ALL[1])).objective.ratio != before


def test_other_code_than_the_settings_have_is_refused(folder: Path) -> None:
    pinned = pin_inputs(settings(ALL[1]))
    changed(folder, "hinge", "A hinge:", "The hinge:")
    with pytest.raises(InputError, match=r"the code of extensions\.hinge:RATIO has changed"):
        RATIOS.choose(pinned.objective.ratio)


def test_no_stage_starts_with_other_code_even_one_that_does_not_use_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "params.yaml").write_text(dump(pin_inputs(settings(ALL[1]))), encoding="utf-8")
    changed(folder, "hinge", "A hinge:", "The hinge:")
    assert main(["report", "--config", "params.yaml"]) == 2
    assert "the code of extensions.hinge:RATIO has changed" in capsys.readouterr().err


def test_reading_a_configuration_imports_nothing(folder: Path) -> None:
    (folder / "broken.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    pinned = pin_inputs(settings("objective.ratio={kind: python, target: 'broken:RATIO'}"))
    assert "broken" not in sys.modules
    with pytest.raises(InputError, match=r"objective\.ratio"):
        check_extensions(pinned)
    assert "broken" not in sys.modules


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"target": "absent:RATIO"}, "there is no module or package named 'absent'"),
        ({"target": "extensions.absent:RATIO"}, "there is no module or package named 'absent'"),
        ({"target": "extensions.hinge:ABSENT"}, "cannot import extensions.hinge:ABSENT: AttributeError"),
        ({"target": "extensions.hinge:hinge"}, "is a function, not a RatioEntry"),
        ({"target": "extensions.pairwise:ADVANTAGE"}, "is a AdvantageEntry, not a RatioEntry"),
        ({"target": "yaml:RATIO"}, "'yaml' is a module of the working directory and one that is installed"),
        ({"target": "components.objectives:RATIOS"}, "is code of Evenkeel itself"),
        ({"target": "no-such-entry-point"}, "no installed package has an entry point 'no-such-entry-point'"),
        ({"settings": {"slope": 2}}, "settings.slope: Input should be less than 1"),
        ({"settings": {"slop": 0.2}}, "settings.slop: unknown setting"),
    ],
)
def test_what_cannot_be_used_is_named_with_a_way_out(folder: Path, section: dict[str, Any], message: str) -> None:
    (folder / "yaml.py").touch()
    with pytest.raises(InputError) as caught:
        chosen(RATIOS, Ratio, {**RATIO, **section})
    assert message in caught.value.what and caught.value.how


def test_a_target_that_names_nothing_importable_is_refused_with_the_settings() -> None:
    with pytest.raises(InputError, match="target"):
        settings("objective.ratio={kind: python, target: 'a b:c'}")


def test_an_entry_point_of_an_installed_package_is_found_by_its_name(folder: Path) -> None:
    installed = folder / "mine-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text(
        "[evenkeel.schedules]\nleast-drawn = extensions.newest:SCHEDULE\n", encoding="utf-8"
    )
    sys.path.append(str(folder))
    schedule = OUTSIDE.choose(PythonSchedule(kind="python", target="least-drawn"))
    prompts = [Prompt(f"p{number}", "?", "1", "1") for number in range(4)]
    assert sorted(prompt.id for prompt in schedule(prompts, 0).next(4)) == ["p0", "p1", "p2", "p3"]
