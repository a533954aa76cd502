"""Code and pages are written in plain technical English: words to avoid do not come back."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code_graph import ROOT

WORDS = ("told", "tells", "anew", "nobody", "beside", "mend", "mends", "mended", "mending", "reign", "crowned", "deed")
PHRASES = ("in words", "became of", "becomes of", "own accord", "at ease", "by and by", "is away", "asked to stop")
AVOIDED = re.compile(rf"(?<![a-z])(?:{'|'.join((*WORDS, *PHRASES))})(?![a-z])", re.IGNORECASE)
NAMES = re.compile(rf"(?:^|_)(?:{'|'.join(WORDS)})(?:_|$)", re.IGNORECASE)
CLEAN = ("components", "flows", "docs", "configs", "k8s", "tests", "README.md", "dvc.yaml", "prefect.yaml")
EXEMPT = (
    "tests/benchmarks/health/generated/",  # faults as they were generated
    "tests/corpus/",  # what earlier versions wrote
    "tests/unit/test_health_held_back.py",
    "tests/unit/test_plain_words.py",
)
ALLOWED = {
    # Keys of step records that checkpoints and logs of earlier versions hold.
    "components/health/falls.py": 1,
    "components/health/monitor.py": 1,
    "components/training/conduct.py": 1,
    # Texts of the gate, whose digest approvals name: with other texts a pending approval would not count.
    "components/gate/checks/beginning.py": 2,
    "components/gate/checks/evaluation.py": 1,
    "components/gate/checks/health.py": 2,
    "components/gate/checks/stored.py": 1,
    # The policy's digest covers these texts: with other texts every registry would have to adopt the policy again.
    "configs/health/default.yaml": 2,
    "tests/unit/test_stage_gate.py": 1,
}
"""File -> uses that stay, which may only become fewer."""


def avoided(path: Path) -> Iterator[str]:
    """Every use in a file: in Python in comments, in texts and in names; in other files anywhere."""
    source = path.read_text(encoding="utf-8")
    if not AVOIDED.search(" ".join(source.split())):
        return  # most files; reading their tokens takes long
    if path.suffix != ".py":
        yield from (found.group() for found in AVOIDED.finditer(source))
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield from (found.group() for found in AVOIDED.finditer(" ".join(token.string.split())))
        elif token.type == tokenize.NAME and NAMES.search(token.string):
            yield token.string


def clean() -> Iterator[Path]:
    """The files that must be clean."""
    for place in CLEAN:
        files = [ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*"))
        for path in files:
            exempt = path.relative_to(ROOT).as_posix().startswith(EXEMPT)
            if path.suffix in (".py", ".jinja", ".md", ".yaml") and not exempt:
                yield path


def test_no_word_to_avoid_comes_back() -> None:
    found = {path.relative_to(ROOT).as_posix(): list(avoided(path)) for path in clean()}
    wrong = {name: words for name, words in found.items() if len(words) > ALLOWED.get(name, 0)}
    assert wrong == {}, "write it literally; docs/glossary.md has the terms"


def test_what_is_allowed_is_used() -> None:
    assert {name: len(list(avoided(ROOT / name))) for name in ALLOWED} == ALLOWED, "lower the count"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("told = 1\n", ["told"]),
        ("measured_anew = 1\n", ["measured_anew"]),
        ("x = 'nobody asked'  # put it\n# beside the other\n", ["nobody", "beside"]),
        ('"""A sentence in\n    words."""\n', ["in words"]),
        ("for word in words:\n    holder, amended, besides = toldest\n", []),
    ],
)
def test_uses_are_found_in_names_comments_and_texts(tmp_path: Path, text: str, found: list[str]) -> None:
    path = tmp_path / "one.py"
    path.write_text(text, encoding="utf-8")
    assert list(avoided(path)) == found


def test_pages_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("`told` in a table | Nobody\n", encoding="utf-8")
    assert list(avoided(path)) == ["told", "Nobody"]
