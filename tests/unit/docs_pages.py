"""The pages of the project as a reader finds them: links, headings, code, and the settings that they name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import typer
from pydantic import BaseModel

from flows.cli import app
from tests.code_graph import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name / "README.md" for name in ("k8s", "configs/recipes", "configs/health")),
    )
)
FENCE = re.compile(r"^ *```(?P<kind>[\w-]*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)|<img[^>]* src=\"(?P<image>[^\"]+)\"")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
CALL = re.compile(r"(?<![\w/.-])(?<!-n )(?:\.venv/bin/)?evenkeel( [^|;>]*|$)")
"""A namespace of that name is no call."""
COMMANDS: Any = typer.main.get_command(app)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str, kind: str) -> list[str]:
    return [block["body"] for block in FENCE.finditer(text) if block["kind"] == kind]


def spans(text: str) -> list[str]:
    """What stands between single backticks, outside of blocks."""
    return SPAN.findall(FENCE.sub("", text))


def lines(text: str) -> list[str]:
    """Whatever may be a command: the lines of blocks without a language, continued ones joined, and spans."""
    written = "".join(blocks(text, "")).replace("\\\n", " ")
    return [*written.splitlines(), *spans(text)]


def links(text: str) -> list[str]:
    """Targets within the project."""
    found = [match["target"] or match["image"] for match in LINK.finditer(FENCE.sub("", text))]
    return [target for target in found if not target.startswith(("http://", "https://", "mailto:"))]


def anchors(text: str) -> set[str]:
    """The names that GitHub gives the headings, and those that the page gives places itself."""
    titles = [re.sub(r"[`*]", "", title).strip().lower() for title in HEADING.findall(FENCE.sub("", text))]
    given = set(re.findall(r'<a id="([\w-]+)"></a>', text))
    return given | {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def calls(text: str) -> Iterator[list[str]]:
    """Every call of `evenkeel` in the page, as words without the first."""
    for line in lines(text):
        for call in CALL.findall(re.split(r"\s#\s", line)[0]):
            yield shlex.split(call.replace("'", '"') if call.count("'") % 2 else call)


def problem(words: list[str]) -> str:
    """What the command line would not understand, or ""."""
    command = COMMANDS
    while hasattr(command, "commands"):
        if not words or words[0].startswith(("-", ".")):
            return ""
        if words[0] not in command.commands:
            return f"no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    known = options(command)
    unknown = [word for word in words if word.startswith("-") and word != "-" and word.partition("=")[0] not in known]
    return f"{command.name} has no {', '.join(unknown)}" if unknown else ""


def options(command: Any) -> set[str]:
    """All that a command, or any command below it, takes."""
    own: set[str] = {name for parameter in command.params for name in parameter.opts if name.startswith("-")}
    return own.union({"--help"}, *map(options, getattr(command, "commands", {}).values()))


def is_setting(dotted: str, root: type[BaseModel]) -> bool:
    """Whether some configuration could have this setting."""
    places: list[Any] = [root]
    for name in dotted.split("."):
        models = [place for place in places if isinstance(place, type) and issubclass(place, BaseModel)]
        found = [model.model_fields[name].annotation for model in models if name in model.model_fields]
        found += [get_args(place)[1] for place in places if get_origin(place) is dict]  # any key
        if not found:
            return False
        places = [part for annotation in found for part in _parts(annotation)]
    return True


def _parts(annotation: Any) -> Iterator[Any]:
    """The types of which an annotation is made, itself among them; not those of a mapping's values."""
    yield annotation
    if get_origin(annotation) is not dict:
        for part in get_args(annotation):
            yield from _parts(part)
