"""From outside the project: plain functions with TRL's signature, ``(prompts, completions, **columns) -> list[float |
None]``, and a verifier, which is a class or such a function.

Each is imported and called in a fenced worker process only.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from components.catalog import Catalog, attribute
from components.config.extensions import PythonEntry, RewardFunction
from components.config.verifiers import PythonVerifier
from components.errors import EvenkeelError, InputError
from components.rewards.base import Judgement, JudgingVerifier, Refused, Verifier, VerifierEntry
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
OUTSIDE: Catalog[VerifierEntry] = Catalog(VerifierEntry, {})


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


class OutsideVerifier(JudgingVerifier):
    """Stands for the verifier that ``target`` names, which `prepare` imports and builds.

    The parent knows its marker alone, so the audit has no equivalents and no hacks of its own making.
    """

    def __init__(self, settings: PythonVerifier) -> None:
        self._settings, self.marker = settings, settings.marker
        self._verifier: Verifier | None = None

    def prepare(self) -> None:
        found = attribute(self._settings)
        if is_plain(found) and not isinstance(found, VerifierEntry):
            self._verifier = FunctionVerifier(self._settings, found)
            return
        chosen = OUTSIDE.choose(self._settings)
        built = chosen.entry.call(**{"marker": self.marker, **chosen.settings.model_dump()})
        if not isinstance(built, Verifier):
            raise EvenkeelError(
                f"{self._settings.target} builds a {type(built).__name__}, not a Verifier",
                where="reward.verifier.target",
                how="declare a class that derives from components.rewards.Verifier",
            )
        built.prepare()
        self._verifier = built

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        """The verdict, if it has the parts that the settings name and no others."""
        if self._verifier is None:
            raise RuntimeError("a verifier from outside judges in its worker process only")
        found = self._verifier.judge(prompt, text)
        if found.parts.keys() != set(self._settings.parts):
            raise ValueError(f"it gives the parts {sorted(found.parts)}, and `rewards` names {self._settings.parts}")
        return found


class FunctionVerifier(Verifier):
    """The accuracy is what a plain function says of one completion by itself."""

    def __init__(self, settings: PythonVerifier, function: Callable[..., Any]) -> None:
        self._target = settings.target
        self._function = PlainFunction(function, settings, token_ids=False)

    def accuracy(self, prompt: Prompt, text: str) -> float:
        (value,) = self._function(prompt, [text])
        if value is None:
            raise Refused(f"{self._target} returned None")
        if not 0 <= value <= 1:
            raise ValueError(
                f"{self._target} returned {value:g}, and an accuracy is in [0, 1]: scale it, or make it a part of the "
                "reward in reward.functions"
            )
        return value
