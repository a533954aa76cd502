"""Answers that are kept, by the digest of all that they depend on: whoever was judged last night is not judged again.

An entry is a file ``<digest of its key>.json`` with the key, the answers and their digest. It is the same to the byte
as what would be generated again, so no output shows where its figures come from. The digest finds damage, not malice:
whoever may write into the folder may write results. What would not be the same if generated again is not cached:
answers of servers, and verdicts that failed for a moment's trouble.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from components.code_digest import code_digest
from components.config.answers import ClassifierVerifier
from components.config.consistency import EmbeddedConsistency, NliConsistency
from components.config.pins import check_digest
from components.device import own_device
from components.errors import InputError
from components.evaluation.results import Answered, PromptResult
from components.evaluation.suites import PromptSuite
from components.files import read_text, sha256_file, sha256_json, write_json
from components.layout import EVALUATIONS_VARIABLE, Layout
from components.types import Prompt

CODE = (
    "catalog.py",
    "content_id.py",
    "data/likeness.py",
    "device.py",
    "evaluation/answers.py",
    "evaluation/answering.py",
    "evaluation/results.py",
    "evaluation/suites.py",
    "patterns.py",
    "policy",
    "reasoning_gym",
    "rewards",
    "rollout",
    "seeds.py",
    "tasks/reasoning_gym",
    "tools",
    "types.py",
)
"""What makes an answer and its score, below `components`; a test holds it to what `asking` imports."""
PACKAGES = (
    "google-re2",
    "jinja2",
    "jsonschema",
    "mpmath",
    "numpy",
    "rapidfuzz",
    "reasoning_gym",
    "safetensors",
    "sympy",
    "tokenizers",
    "torch",
    "transformers",
)
"""What renders a question, answers it and judges the answer."""

Key = dict[str, str]


class Cache:
    """Kept answers in a folder; without one nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: Key, prompts: Sequence[Prompt]) -> list[Answered] | None:
        """The answers under a key; None where there are none. A damaged entry is none, and that is said."""
        path = self._path(key)
        if path is None or not path.exists():
            return None
        try:
            entry = json.loads(_text(path))
            if entry["key"] != key or entry["sha256"] != sha256_json(entry["answers"]):
                raise ValueError("its content does not have its digest")
            rows = zip(prompts, entry["answers"], strict=True)
            return [Answered.from_dict(prompt, row) for prompt, row in rows]
        except (InputError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            print(f"{path}: a damaged entry ({error}); these answers are generated again", file=sys.stderr)
            return None

    def results(self, checkpoint: str, prompts: str) -> Iterator[list[PromptResult]]:
        """What a checkpoint came to on prompts with this digest, for each code and each settings that it answered
        them with. Damaged entries are left out."""
        for path in sorted(self._folder.glob("*.json")) if self._folder is not None else ():
            with suppress(InputError, OSError, ValueError, TypeError, KeyError, RecursionError):
                text = _text(path)
                if checkpoint not in text or prompts not in text:
                    continue  # most are of other checkpoints: parsing takes longer than searching
                entry = json.loads(text)
                named = entry["key"]["checkpoint"], entry["key"]["prompts"], entry["sha256"]
                if named == (checkpoint, prompts, sha256_json(entry["answers"])):
                    yield [PromptResult.from_dict(row["result"]) for row in entry["answers"]]

    def put(self, key: Key, answers: Sequence[Answered]) -> None:
        """Keep the answers, in place of what is there."""
        path = self._path(key)
        if path is not None:
            rows = [answered.to_dict() for answered in answers]
            write_json(path, {"key": key, "sha256": sha256_json(rows), "answers": rows})

    def _path(self, key: Key) -> Path | None:
        return None if self._folder is None else self._folder / f"{sha256_json(key)}.json"


def _text(path: Path) -> str:
    """All of an entry, however many answers it holds."""
    return read_text(path, most=path.stat().st_size)


def shared(layout: Layout, reuse: bool) -> Cache:
    """The cache of the project, or of the workspace where no flow named one; none without ``reuse``."""
    named = os.environ.get(EVALUATIONS_VARIABLE)
    return Cache((Path(named) if named else layout.evaluations) if reuse else None)


def key_of(checkpoint: str, suite: PromptSuite, consistency: Path) -> Key:
    """What an answer depends on, as digests; ``checkpoint`` is that of the folder.

    Raises:
        InputError: a judge that the settings name is missing, or another one than is pinned.
    """
    key = {
        "checkpoint": checkpoint,
        "prompts": suite.prompts_sha256,
        "settings": suite.settings_sha256,
        "code": code_digest(parts=CODE),
        "packages": packages(),
        "device": own_device().type,
    }
    if isinstance(suite.settings.reward.consistency, EmbeddedConsistency):
        key["consistency"] = sha256_file(consistency)
    judges = (suite.settings.reward.verifier, suite.settings.reward.consistency)
    learned = [judge for judge in judges if isinstance(judge, ClassifierVerifier | NliConsistency)]
    return key | {f"judge {judge.kind}": check_digest(judge.path, judge.sha256) for judge in learned}


@cache
def packages() -> str:
    """Digest of the versions that rounding and verdicts depend on, and of the kind of machine."""
    versions = {name: _version(name) for name in PACKAGES}
    return sha256_json([versions, platform.python_version(), platform.machine()])


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
