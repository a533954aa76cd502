"""The instructions of an image definition, by stage."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Stage:
    """One ``FROM`` and what follows it: pairs of an instruction and its text."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [text for name, text in self.instructions if name == instruction]

    @property
    def command(self) -> list[str]:
        """What a container of it runs; both have to be in the form that needs no shell."""
        return [part for name in ("ENTRYPOINT", "CMD") for text in self.all(name)[-1:] for part in json.loads(text)]

    @property
    def environment(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for text in self.all("ENV") for pair in shlex.split(text))


@dataclass(frozen=True)
class Dockerfile:
    arguments: list[str]
    """``ARG`` before the first ``FROM``."""
    stages: list[Stage]

    @property
    def instructions(self) -> Iterator[tuple[str, str]]:
        yield from (("ARG", text) for text in self.arguments)
        for stage in self.stages:
            yield from stage.instructions

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    def lineage(self, stage: Stage) -> list[Stage]:
        """A stage and those that it is built on, the outermost last."""
        parents = [parent for parent in self.stages if parent.name == stage.base]
        return [stage, *(older for parent in parents for older in self.lineage(parent))]

    def outermost(self) -> set[str]:
        """The images from elsewhere."""
        return {stage.base for stage in self.stages} - {stage.name for stage in self.stages}


def parse(text: str) -> Dockerfile:
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    found = Dockerfile([], [])
    for line in filter(None, map(str.strip, joined.splitlines())):
        instruction, rest = line.split(maxsplit=1)
        if instruction == "FROM":
            base, *alias = re.split(r"\s+AS\s+", rest)
            found.stages.append(Stage(base, alias[0] if alias else ""))
        elif found.stages:
            found.stages[-1].instructions.append((instruction, rest))
        else:
            assert instruction == "ARG", line
            found.arguments.append(rest)
    return found


def read(path: Path) -> Dockerfile:
    return parse(path.read_text(encoding="utf-8"))
