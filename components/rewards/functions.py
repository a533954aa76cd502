"""Plain functions from outside with TRL's signature, ``(prompts, completions, **columns) -> list[float | None]``.

Each is imported and called in a fenced worker process only.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from components.catalog import attribute
from components.config.extensions import PythonEntry, RewardFunction
from components.config.verifiers import PythonVerifier
from components.errors import InputError
from components.types import Prompt

Values = list[float | None]
"""One for each completion; None where the function does not apply."""
OF_PROMPT = (
    "answer",
    "ground_truth",
    "solution",
    "reference",
    "id",
    "task",
    "source",
    "family",
    "difficulty",
)
"""Arguments that are the same for every completion of a prompt, by the names that data sets for TRL use.
``ground_truth`` is the answer once more."""


class PlainFunction:
    """A function that is called with those columns that it takes.

    Raises:
        InputError: it cannot be called with the columns and its settings alone; ``token_ids`` says whether
            ``completion_ids`` is one of them.
    """

    def __init__(self, call: Callable[..., Any], settings: RewardFunction | PythonVerifier, token_ids: bool) -> None:
        self._call, self._settings = call, settings
        given = ["prompts", "completions", *OF_PROMPT, *(["completion_ids"] if token_ids else [])]
        if problems := list(_problems(call, settings.settings, given)):
            raise InputError(
                f"{settings.target} cannot be a reward function: {'; '.join(problems)}",
                where=f"target: {settings.target}",
                how=f"the arguments are {', '.join(given)}, and those in `settings` (docs/extend.md)",
            )
        takes = inspect.signature(call).parameters
        every = any(one.kind is one.VAR_KEYWORD for one in takes.values())
        self._takes = frozenset(given if every else takes)

    def __call__(self, prompt: Prompt, texts: Sequence[str], ids: Sequence[Sequence[int]] = ()) -> Values:
        """One value per completion.

        Raises:
            ValueError: the function did not return that.
        """
        question: Any = prompt.text
        written: list[Any] = list(texts)
        if self._settings.conversational:
            question = [{"role": "user", "content": prompt.text}]
            written = [[{"role": "assistant", "content": text}] for text in texts]
        same = {name: getattr(prompt, "answer" if name == "ground_truth" else name) for name in OF_PROMPT}
        columns = {"completions": written, "completion_ids": list(ids)}
        columns |= {name: [value] * len(texts) for name, value in {"prompts": question, **same}.items()}
        taken = {name: column for name, column in columns.items() if name in self._takes}
        return self._checked(self._call(**taken, **self._settings.settings), len(texts))

    def _checked(self, returned: Any, count: int) -> Values:
        try:
            values = list(returned)
        except TypeError:
            kind = type(returned).__name__
            raise ValueError(f"{self._settings.target} returned a {kind}, not a list of numbers") from None
        if len(values) != count:
            raise ValueError(f"{self._settings.target} returned {len(values)} values for {count} completions")
        return [None if value is None else self._number(value) for value in values]

    def _number(self, value: Any) -> float:
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(f"{self._settings.target} returned {value!r:.80}, which is no finite number and not None")
        return float(value)


class RewardFunctions:
    """All functions of ``reward.functions``, as a worker process holds them; `prepare` imports them."""

    def __init__(self, settings: Mapping[str, RewardFunction]) -> None:
        self._settings = settings
        self._functions: dict[str, PlainFunction] = {}

    def prepare(self) -> None:
        self._functions = {name: load(entry) for name, entry in self._settings.items()}

    def values(self, name: str, prompt: Prompt, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> Values:
        """What the function of that name says of one group. Errors are those of `PlainFunction.__call__`."""
        return self._functions[name](prompt, texts, ids)


def load(entry: RewardFunction) -> PlainFunction:
    """Import a function.

    Raises:
        InputError: it cannot be imported, or is none that can be called.
    """
    found = attribute(entry)
    if not is_plain(found):
        raise not_plain(entry, found)
    return PlainFunction(found, entry, token_ids=True)


def is_plain(found: object) -> bool:
    """Whether it is a function, or an object that is called like one; a class is none."""
    return callable(found) and not isinstance(found, type)


def not_plain(entry: PythonEntry, found: object) -> InputError:
    return InputError(
        f"{entry.target} is a {type(found).__name__}, not a function",
        where=f"target: {entry.target}",
        how="name a function that takes completions and returns a list of numbers, as docs/extend.md shows",
    )


def _problems(call: Callable[..., Any], settings: Mapping[str, object], given: Sequence[str]) -> Iterator[str]:
    """Why it cannot be called with these arguments, by their names."""
    if inspect.iscoroutinefunction(call):
        yield "it is asynchronous, and there is no network to wait for; write `def`"
    takes = inspect.signature(call).parameters.values()
    every = any(one.kind is one.VAR_KEYWORD for one in takes)
    named = {one.name: one for one in takes if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    for name in (name for name, one in named.items() if one.default is one.empty):
        if name not in given and name not in settings:
            yield f"it needs {name}"
    if any(one.kind is one.POSITIONAL_ONLY and one.default is one.empty for one in takes):
        yield "it has arguments without names"
    if not every and not {"completions", "completion_ids"} & named.keys() & {*given}:
        yield "it does not take completions"
    for name in settings:
        if name in given:
            yield f"settings.{name} has the name of a column"
        elif not every and name not in named:
            yield f"settings.{name} is no argument of it"
