"""A verifier from outside the project, a class or a plain function: its code is imported in the fenced worker process
only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from components.catalog import Catalog, attribute
from components.config.verifiers import PythonVerifier
from components.errors import EvenkeelError
from components.rewards.base import Judgement, JudgingVerifier, Refused, Verifier, VerifierEntry
from components.rewards.functions import PlainFunction, is_plain
from components.types import Prompt

OUTSIDE: Catalog[VerifierEntry] = Catalog(VerifierEntry, {})


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
