"""Right when exactly one letter is chosen, and it is the reference's."""

from __future__ import annotations

import re

from components.rewards.answers import deceptive, stated, thought_out
from components.rewards.base import Refused, Verifier
from components.types import Prompt

_DRESS = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}|[*$`\"']")
_LEAD = re.compile(r"\A(?:so\s+|therefore,?\s+)?(?:the\s+)?(?:correct\s+|final\s+|right\s+)*(?:answer|option|choice)s?"
                   r"(?:\s+is)?\s*:?\s*(?:option\s+|choice\s+)?", re.IGNORECASE)  # fmt: skip
_SAID = re.compile(
    r"(?:(?<![A-Za-z-])([A-Za-z-]+)\s+)?(?<![A-Za-z-])(?:answer|option|choice)(?:\s+is\s*:?|\s*:)[^\w\n]*(?:option\s+|choice\s+)?(.*)",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"wrong|incorrect|false|weak|weakest|worst|bad|poor|other|another|common|tempting|popular|naive|initial|previous"
    r"|first|second|third|next|last|this|that|these|each|every|either|neither|no|which|any|rejected",
    re.IGNORECASE,
)
"""Words before "answer is" with which it is said of another: "the weakest choice is" states none."""
_A_LETTER = re.compile(r"[\s(\[*$\"']*(?:[A-Z](?![A-Za-z'])|[a-z]\s*(?:[).\]]|$))")
_CHOSEN = re.compile(
    r"[(\[]?\s*([A-Za-z])\s*(?:[)\]](?![(\[]|[A-Za-z][)\]])|[.:,](?![A-Za-z][.:,])|$|(?=\s*\n)|\s+(?=[-\u2013\u2014])"
    r"|\s+(?=(?:because|since)\b|is\s+(?:(?:the|my|clearly|final)\s+)*(?:correct|right|answer|best)\b))"
)
_CAPITAL = re.compile(r"(?<![A-Za-z0-9'])([A-Z])(?![A-Za-z0-9'])")
_BRACKETS = re.compile(r"[(\[]\s*([A-Za-z])\s*[)\]]")
_JOINED = re.compile(r"(?:\bor\b|\band\b|[,/&|;\n])\s*([a-z])(?![A-Za-z0-9'])")
_IN_A_ROW = re.compile(r"(?<![A-Za-z0-9'])([a-z])[\s,]+(?=([a-z])(?![A-Za-z0-9']))")
_A_WORD = re.compile(r"\s+(?!(?:or|and|is|but|not|too|also)\b)[A-Za-z]{2}")
"""What follows an "A" or "I" that is a word and no option."""
_LISTED = re.compile(r"^[ \t]*[(\[]?([A-Z])[)\].:][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
"""A line of the question that lists an option."""
READ = 400
"""Characters of the answer that are read; a longer one is wrong."""


class MultipleChoiceVerifier(Verifier):
    """Reads ``B``, ``(B)``, ``B.``, ``B) its text``, ``The answer is B``, ``\\boxed{B}``.

    The answer follows the last ``marker``; without one it stands in the last box, or in the last line that says "the
    answer is" or "answer:" and goes on with a letter. It must begin with the letter, apart from such words. An answer
    that names another option as well, but for the text that the question gives to its own, or a letter that is no
    option, is wrong: listing all of them is no choice.
    """

    def __init__(self, marker: str | None, options: str) -> None:
        self.marker, self._options = marker, options

    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raises Refused when the reference is no option: nothing could be right then."""
        wanted = self.choice(prompt.answer)
        if wanted is None:
            raise Refused(f"the reference answer {prompt.answer[:80]!r} is none of the options {self._options}")
        answer = stated(text, self.marker)
        if answer is None and not self.marker:
            answer = self._said(text)
        return float(answer is not None and self.choice(_without_text(answer, prompt)) == wanted)

    def wrap(self, answer: str) -> str:
        return f"{self.marker} {answer}" if self.marker else f"\\boxed{{{answer}}}"

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        letter = self.choice(prompt.answer)
        if letter is None:
            return {}
        forms = {"brackets": f"({letter})", "full stop": f"{letter}.", "bracket": f"{letter})", "bold": f"**{letter}**"}
        return {name: self.wrap(form) for name, form in forms.items()}

    def choice(self, answer: str) -> str | None:
        """The one option that ``answer`` names."""
        if len(answer) > READ or deceptive(answer):
            return None
        plain = _LEAD.sub("", _DRESS.sub(lambda found: found[1] or "", answer).strip(), count=1)
        first = _CHOSEN.match(plain)
        if first is None:
            return None
        letter = first[1].upper()
        if letter not in self._options or self._others(plain, first) & (set(self._options) - {letter}):
            return None
        return letter

    @staticmethod
    def _others(plain: str, first: re.Match[str]) -> set[str]:
        """Letters besides the chosen one that are options, and not words or the text of an option.

        Those in capitals or in brackets, and small ones in a row or behind "or", "and" or a comma.
        """
        rest, at = plain[first.end() :], first.end(1)
        found = {m[1] for m in _CAPITAL.finditer(rest) if m[1] not in "AI" or not _A_WORD.match(rest, m.end())}
        found |= {m[1] for m in _BRACKETS.finditer(rest)}
        found |= {m[1] for m in _JOINED.finditer(plain, at) if m[1] != "a" or not _A_WORD.match(plain, m.end())}
        found |= {letter for m in _IN_A_ROW.finditer(rest) for letter in m.groups()}
        if re.match(r"\s*[)\].:]?\s*(?:or|and|[/&|])\s*[(\[]?a(?![A-Za-z0-9'])", plain[at:]):
            found.add("A")
        return {letter.upper() for letter in found}

    @staticmethod
    def _said(text: str) -> str | None:
        """What follows the last "the answer is" that goes on with a letter."""
        found = [rest for before, rest in _SAID.findall(thought_out(text)) if not _OTHER.fullmatch(before)]
        return next((rest for rest in reversed(found) if _A_LETTER.match(rest)), None)


def _without_text(answer: str, prompt: Prompt) -> str:
    """An answer without the text of the option that it names, as the question lists it: that may name others."""
    for letter, text in _LISTED.findall(prompt.text):
        named = re.match(rf"([\s(\[*]*{letter}[\s)\].:*]*){re.escape(text)}", answer, re.IGNORECASE)
        if named:
            return f"{named[1]}{answer[named.end() :]}"
    return answer
