"""From a row of a published format to a probe: rows of JSON lines and CSV, with line numbers, and formats of a few
fields: questions with answers, answers whose form counts, multiple choice, sentences, refusals.
`components.canaries.bbq` has one of many; `components.canaries.sets` maps ``health.canaries.<name>.format`` to the
reader of one row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from components.canaries.items import Probe
from components.config.canaries import CanarySettings
from components.errors import InputError
from components.files import read_numbered_jsonl, read_text
from components.patterns import compile_pattern

WORDS = {"true": True, "1": True, "yes": True, "unsafe": True, "false": False, "0": False, "no": False, "safe": False}


@dataclass(frozen=True)
class Row:
    """One row with the line it begins on, from 1."""

    path: Path
    line: int
    fields: Mapping[str, Any]

    def error(self, what: str, how: str = "fix or remove that line") -> InputError:
        return InputError(what, where=f"{self.path}:{self.line}", how=how)

    def text(self, name: str) -> str:
        """A field that is text and not empty.

        Raises:
            InputError: it is missing, empty or no text.
        """
        value = self.fields.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"a probe needs `{name}`, text that is not empty")
        return value

    def label(self, name: str) -> str:
        """A field that may be missing; "" where it is no text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str, least: int) -> tuple[str, ...]:
        """A list of at least so many different texts.

        Raises:
            InputError: it is anything else.
        """
        value = self.fields.get(name)
        good = isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value)
        if not good or len(set(value)) != len(value) or len(value) < least:  # type: ignore[arg-type]
            raise self.error(f"`{name}` is a list of {least} or more different texts")
        return tuple(value)  # type: ignore[arg-type]

    def place(self, name: str, count: int) -> int:
        """The place of one of ``count`` options: a number from 0, or a letter from A.

        Raises:
            InputError: it is none of them.
        """
        value = self.fields.get(name)
        if isinstance(value, str) and len(value.strip()) == 1 and value.strip().isalpha():
            value = ord(value.strip().upper()) - ord("A")
        elif isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
            raise self.error(f"`{name}` is none of the {count} options", "give a number from 0, or a letter from A")
        return value


def qa(row: Row, settings: CanarySettings) -> Probe:
    """Questions with one right answer, judged by the run's own verifier; the format of any task's data.

    ``{"question": ..., "answer": ...}``, and for scores by likelihood ``"solution"``, a right answer written out
    (without it: the answer), and ``"wrong"``, one or more wrong ones in the same form.
    """
    question, answer = row.fields.get("question"), row.fields.get("answer")
    if not isinstance(question, str) or not isinstance(answer, str) or not question or not answer:
        raise row.error("a probe needs `question` and `answer`, both text")
    choices: tuple[str, ...] = ()
    if "wrong" in row.fields:
        right = row.text("solution") if "solution" in row.fields else answer
        choices = (right, *row.texts("wrong", 1))
        if right in choices[1:]:
            raise row.error("an answer in `wrong` is the right one")
    return Probe(f"{row.line}", (question,), "verifier", choices, whole=True, answer=answer)


def layout(row: Row, settings: CanarySettings) -> Probe:
    """Answers whose form counts: ``{"question": ..., "pattern": ...}``; without one, the set's own ``pattern`` counts.

    For scores by likelihood a row has ``choices``, the well-formed answer first.
    """
    pattern = row.fields.get("pattern") or settings.pattern
    if not isinstance(pattern, str) or not pattern:
        raise row.error("no pattern that the answer must match", "give `pattern` in the row, or in the set's settings")
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise row.error(f"`pattern`: {error}") from error
    choices = row.texts("choices", 2) if "choices" in row.fields else ()
    return Probe(f"{row.line}", (row.text("question"),), "pattern", choices, whole=True, pattern=pattern)


def multiple_choice(row: Row, settings: CanarySettings) -> Probe:
    """Multiple choice as MMLU has it (arXiv 2009.03300): an unrelated skill that training must not cost.

    ``{"question": ..., "choices": [...], "answer": 2}``; the answer is a place from 0 or a letter, ``subject`` is
    optional.
    """
    choices, most = row.texts("choices", 2), len(ascii_uppercase)
    if len(choices) > most:
        raise row.error(f"{len(choices)} choices, there are letters for {most}")
    right, group = row.place("answer", len(choices)), row.label("subject")
    return with_options(row, row.text("question"), choices, settings, right=right, group=group)


def crows_pairs(row: Row, settings: CanarySettings) -> Probe:
    """CrowS-Pairs (arXiv 2010.00133): two sentences, of which ``sent_more`` is the more stereotyped one.

    CSV or JSON lines with ``sent_more`` and ``sent_less``; ``bias_type`` is optional. Published as a measure of masked
    models; of a policy that writes from left to right the log-probability of the whole sentence is compared. The share
    of pairs in which the stereotype is preferred is 1/2 for a policy that has no preference.
    """
    more, less = row.text("sent_more"), row.text("sent_less")
    if more == less:
        raise row.error("`sent_more` and `sent_less` are the same sentence")
    # The place of the less stereotyped one is the "right" one, so that a fall of the score is a rise of the bias.
    group = row.label("bias_type")
    return Probe(f"{row.line}", ("",), "sentences", (more, less), right=1, biased=0, group=group)


def with_options(row: Row, question: str, options: tuple[str, ...], settings: CanarySettings, **more: Any) -> Probe:
    """A question with options, listed with letters or not at all; right and biased places are among ``more``."""
    choices, text = options, question
    if settings.options != "text":
        choices = tuple(ascii_uppercase[: len(options)])
        listed = "\n".join(f"{letter}. {option}" for letter, option in zip(choices, options, strict=True))
        text = f"{question}\n{listed}\nAnswer:"
    return Probe(f"{row.line}", (text,), "choice", choices, named=options, **more)


def refusal(row: Row, settings: CanarySettings) -> Probe:
    """Prompts that must be refused, and prompts that only look like it, in the manner of XSTest (arXiv 2308.01263).

    CSV or JSON lines with ``prompt`` and one of ``should_refuse`` (true or false), ``label`` (``unsafe`` or ``safe``),
    or ``type``, which in XSTest begins with ``contrast`` where the prompt is unsafe. Both kinds of failure count, each
    by itself: answering what should be refused, and refusing what should be answered.
    """
    refuse = _should_refuse(row)
    return Probe(
        f"{row.line}",
        (row.text("prompt"),),
        "refusal",
        settings.openings,
        right=0 if refuse else 1,
        should_refuse=refuse,
        stratum="to be refused" if refuse else "to be answered",
        group=row.label("type"),
    )


def _should_refuse(row: Row) -> bool:
    for name in ("should_refuse", "label"):
        value = row.fields.get(name)
        if value is not None and str(value).strip().lower() in WORDS:
            return WORDS[str(value).strip().lower()]
        if value not in (None, ""):
            raise row.error(f"`{name}` is {value!r}, which says neither", "write true or false, unsafe or safe")
    if kind := row.label("type").strip():
        return kind.lower().startswith("contrast")
    raise row.error("nothing says whether it must be refused", "give `should_refuse`, `label` or XSTest's `type`")


def read_rows(path: Path) -> Iterator[Row]:
    """Rows of a JSON-lines file, or of a ``.csv`` file with a heading.

    Raises:
        InputError: the file is missing or malformed; names the line.
    """
    if path.suffix.lower() == ".csv":
        yield from _read_csv(path)
    else:
        yield from (Row(path, line, fields) for line, fields in read_numbered_jsonl(path))


def _read_csv(path: Path) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    line = 2
    try:
        for fields in reader:
            row, line = Row(path, line, fields), reader.line_num + 1
            if None in fields or None in fields.values():
                raise row.error(f"another number of columns than the heading's {len(reader.fieldnames or ())}")
            yield row
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", where=f"{path}:{line}", how="close the quotes of that line") from error
