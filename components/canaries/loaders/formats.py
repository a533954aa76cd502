"""Formats of a few fields: questions with answers, answers whose form counts, multiple choice, sentences, refusals."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Any

from components.canaries.items import Probe
from components.canaries.loaders.rows import Row
from components.config.canaries import CanarySettings
from components.patterns import compile_pattern

WORDS = {"true": True, "1": True, "yes": True, "unsafe": True, "false": False, "0": False, "no": False, "safe": False}


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
