"""What the pages name exists: files, headings, commands, options, targets of make, settings, papers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from docs_pages import COMMANDS, PAGES, anchors, blocks, calls, is_setting, lines, links, options, problem, read, spans

from components.config import Settings, load
from components.config.objective import ObjectiveSettings
from components.config.reading import read_rules
from components.config.shipped import PROJECT_CONFIGS, packaged
from tests.code_graph import ROOT

EXAMPLES = re.compile(r"(^|[/_])(mine|mine-cluster|test_blank)\.(py|yaml)$")
"""Files that a page has its reader write."""
FOREIGN = {"--enable-lora", "--no-enable-chunked-prefill"}
"""Options of other programs."""
PROJECT_PATH = re.compile(r"(?<![\w/.:-])(?:components|configs|docs|flows|k8s|tests)/[\w*./-]*\w/?")
PAPER = re.compile(r"\b(?:0[7-9]|[12]\d)(?:0[1-9]|1[0-2])\.\d{5}\b")
every_page = pytest.mark.parametrize("page", PAGES)


def test_the_map_of_the_pages_names_every_page() -> None:
    named = {link.partition("#")[0] for link in links(read("docs/README.md"))}
    generated = {"benchmarks.md", "performance.md"}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - named <= {"README.md"} | generated


@every_page
def test_every_link_leads_to_a_file_and_to_a_heading_of_it(page: str) -> None:
    for link in links(read(page)):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@every_page
def test_every_call_of_evenkeel_is_understood(page: str) -> None:
    assert [found for words in calls(read(page)) if (found := problem(words))] == []


@every_page
def test_every_option_that_stands_alone_is_one_of_some_command(page: str) -> None:
    alone = {span.split()[0].partition("=")[0] for span in spans(read(page)) if span.startswith("--")}
    assert alone <= options(COMMANDS) | FOREIGN


@every_page
def test_every_target_of_make_exists(page: str) -> None:
    targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for line in lines(read(page)) for name in re.findall(r"(?:^|\s)make ([a-z][\w-]*)", line)} <= {
        *targets
    }


@every_page
def test_every_file_of_the_project_that_is_named_is_there(page: str) -> None:
    named = {path for line in lines(read(page)) for path in PROJECT_PATH.findall(line)}
    assert [path for path in sorted(named) if not any(ROOT.glob(path)) and not EXAMPLES.search(path)] == []


def test_every_test_that_attacks_a_promise_is_there() -> None:
    named = [span for span in spans(read("docs/threat-model.md")) if re.fullmatch(r"test_\w+\.py", span)]
    assert named and [name for name in named if not (ROOT / "tests/unit" / name).exists()] == []


@every_page
def test_every_setting_that_is_named_can_be_set(page: str) -> None:
    for span in spans(read(page)):
        dotted = re.match(r"([a-z_]+(?:\.[a-z_]+)+)(?=$|[:=])", span)
        if dotted is None or span.endswith(".py"):
            continue
        first = dotted[1].partition(".")[0]
        if first in Settings.model_fields and not (ROOT / dotted[1]).exists():
            assert is_setting(dotted[1], Settings), dotted[1]
        elif first in ObjectiveSettings.model_fields:
            assert is_setting(dotted[1], ObjectiveSettings), dotted[1]


@pytest.mark.parametrize(
    ("page", "block"),
    [(page, block) for page in PAGES for block in blocks(read(page), "yaml")],
)
def test_every_piece_of_a_configuration_is_valid(page: str, block: str, tmp_path: Path) -> None:
    tree = yaml.safe_load(block)
    if set(tree) <= {"extends", *Settings.model_fields} and not isinstance(tree.get("extends"), str):
        files = tree.get("extends", ["demo.yaml"])
        own = {"extends": [str(packaged(name) or PROJECT_CONFIGS / name) for name in files]}
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**tree, **own}), encoding="utf-8")
        load(tmp_path / "mine.yaml")
    elif set(tree) <= {*(rules := read_rules(PROJECT_CONFIGS / "health/default.yaml"))}:
        assert all({**rules[name], **rule} == rules[name] for name, rule in tree.items())
    else:
        assert set(tree) <= {"extends", "signals", "resources", "components", "patches"}, "a block of no known kind"


def test_every_paper_that_code_or_settings_rest_on_is_in_the_table_and_no_other() -> None:
    files = [*(ROOT / "components").rglob("*.py"), *PROJECT_CONFIGS.rglob("*.yaml"), *PROJECT_CONFIGS.rglob("*.md")]
    named = {paper for file in files for paper in PAPER.findall(file.read_text(encoding="utf-8"))}
    assert set(PAPER.findall(read("docs/papers.md"))) == named


@pytest.mark.parametrize("recipe", sorted(path.stem for path in (PROJECT_CONFIGS / "recipes").glob("*.yaml")))
def test_every_recipe_is_in_the_table_of_papers(recipe: str) -> None:
    assert f"`{recipe}`" in read("docs/papers.md")


def test_what_does_not_exist_is_found() -> None:
    assert problem(["run", "--config", "a.yaml", "--fresh"]) == ""
    assert problem(["run", "--frsh"]) == "run has no --frsh"
    assert problem(["aprove", "1234"]) == "no command 'aprove'"
    assert problem(["cluster", "statsu"]) == "no command 'statsu'"
    assert list(calls("```\nevenkeel show X  # evenkeel says\nkubectl -n evenkeel get\n```\n`evenkeel params`")) == [
        ["show", "X"],
        ["params"],
    ]
    assert is_setting("rollout.engine.kind", Settings)
    assert is_setting("health.canaries.fairness.max_drop", Settings)
    assert not is_setting("rollout.engine.nope", Settings)
    assert not is_setting("train.steps.more", Settings)
    assert anchors("# The verifier's `sandbox`\n## A & b") == {"the-verifiers-sandbox", "a--b"}
