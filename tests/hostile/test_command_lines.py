"""Every command with arguments that are wrong: of the wrong kind, too long, too many, of other encodings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.hostile.cases import Case, End, chosen, sample, seeded

WORDS = {
    "empty": "",
    "space": " ",
    "dash": "-",
    "dashes": "--",
    "number": "7",
    "negative": "-1",
    "huge": "9" * 400,
    "float": "1e999",
    "nan": "nan",
    "long": "x" * 5000,
    "very-long": "x" * 100_000,
    "line-break": "a\nb",
    "tab": "a\tb",
    "not-utf8": "\udcff\udcfe",
    "letters-of-others": "ключ-鍵-🗝",
    "right-to-left": "a\u202eb",
    "markup": "[red]x[/red][/]",
    "format": "%s%n{0}{x}",
    "shell": "$(id) `id` ; id | id",
    "glob": "**/*",
    "above": "../../../../etc/passwd",
    "absolute": "/etc/passwd",
    "device": "/dev/zero",
    "kernel": "/proc/self/mem",
    "folder": "{}",
    "root": "/",
    "name-of-256": "a" * 256,
    "many-folders": "a/" * 3000,
    "home": "~no-such-user/x",
    "url": "http://127.0.0.1:1/x",
    "s3": "s3://bucket/x",
    "digest": "0" * 64,
    "digits": "0" * 6,
    "digest-upper": "A" * 64,
    "option": "--config",
    "equals": "a=b=c",
}
SERVING = ("serve",)
"""Commands that go on until they are stopped."""
WAITING = ("--quiet", "0.05", "--every", "0.05")
"""Options of `evenkeel watch`, which waits for logs that are not there yet."""
STARTING = ("run", "launch", "nightly", "audit-verifier")
"""Commands that would start a run, if what they were given was right after all."""


@cache
def commands() -> dict[str, Any]:
    """Every command by its words."""
    import typer

    from flows.cli import app

    found: dict[str, Any] = {}

    def walk(command: Any, words: str) -> None:
        for name, one in getattr(command, "commands", {}).items():
            walk(one, f"{words} {name}".strip())
        if not getattr(command, "commands", None):
            found[words] = command

    walk(typer.main.get_command(app), "")
    return found


def required(command: Any, word: str) -> list[str]:
    """What the command needs, each of it this word."""
    given: list[str] = []
    for one in command.params:
        if one.required:
            given += [*one.opts[:1], word] if one.param_type_name == "option" else [word]
    return given


def guarded(name: str, arguments: list[str]) -> list[str]:
    """Nothing is started."""
    if name in STARTING and "--dry-run" not in arguments:
        return [*arguments, "--config", "{}/nothing.yaml"] if "--config" not in arguments else arguments
    return arguments


def cases() -> Iterator[Case]:
    for name, command in commands().items():
        words, rng = name.split(), seeded(name)
        words += WAITING if name == "watch" else ()
        yield Case(f"{name}-help", (*words, "--help"))
        yield Case(f"{name}-unknown-option", (*words, "--no-such-option"))
        yield Case(f"{name}-too-many", (*words, *["x"] * 300), shown="300 words")
        if name in SERVING:
            for key in ("huge", "negative", "float", "empty"):
                yield Case(f"{name}-port-{key}", (*words, "--port", WORDS[key]), shown=WORDS[key])
            continue
        if any(one.required for one in command.params):
            yield Case(f"{name}-nothing", tuple(words))
            for key in sample(list(WORDS), 9, name):
                yield Case(f"{name}-all-{key}", (*words, *required(command, WORDS[key])), shown=WORDS[key])
        for one in command.params:
            if one.param_type_name != "option" or one.name == "help":
                continue
            option = one.opts[0]
            if one.is_flag:
                arguments = guarded(name, [*words, *required(command, "x"), option, option])
                yield Case(f"{name}-{option}-twice", tuple(arguments))
                continue
            yield Case(f"{name}-{option}-alone", (*words, *required(command, "x"), option))
            for key in rng.sample(list(WORDS), 3):
                arguments = guarded(name, [*words, *required(command, "x"), option, WORDS[key]])
                yield Case(f"{name}-{option}-{key}", tuple(arguments), shown=WORDS[key])
    for key, word in WORDS.items():
        yield Case(f"no-command-{key}", (word,), shown=word)
        yield Case(f"show-{key}", ("show", word), needs_registry=True, shown=word)
        yield Case(f"stage-{key}", (word,), program="components", shown=word)
        yield Case(f"stage-data-config-{key}", ("data", "--config", word), program="components", shown=word)
    yield Case("nothing", ())
    yield Case("many-options", ("params", *["--set", "seed=1"] * 2000), shown="2,000 times --set")


FOUND = ("reproduce-all-very-long",)


@pytest.mark.parametrize("case", chosen(cases(), 14, FOUND))
def test_a_bad_command_line_is_refused(case: Case, hostile: Callable[[Case], End]) -> None:
    hostile(case)
