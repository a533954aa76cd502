"""Stage `data`: read or generate rows, validate them, split them. Two passes, some of the rows in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

from components.config import Settings
from components.config.consistency import EmbeddedConsistency
from components.config.reward import RewardSettings
from components.config.sources import computed
from components.data.admission import Admission, Refused
from components.data.candidates import Candidate
from components.data.concentration import Heaviest, concentration, refuse_concentrated
from components.data.consistency import train
from components.data.judging import Judge, in_form, parts
from components.data.limits import check_limits, refuse_failed, table_findings
from components.data.page import render
from components.data.prompts import read_prompts
from components.data.provenance import Passes
from components.data.rules import rules
from components.data.splits import SPLITS
from components.data.summary import Tally
from components.data.survey import Survey, shared, survey
from components.data.tokenizing import Reader
from components.data.validation import validate
from components.directories import write_directory
from components.errors import InputError
from components.files import dump_line, write_json, write_text
from components.layout import Layout
from components.progress import progress
from components.rewards.consistency import Weights, weights_file
from components.rewards.sandbox import Sandbox
from components.seeds import derive
from components.working import Work, working


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/data` and `out/validation.json`, or nothing but the quarantine of data that is refused.

    Raises:
        InputError: unreadable or changing source, data concentrated on one item, too many bad rows, an empty split, or
            solutions that the consistency classifier cannot learn from.
    """
    data = settings.data
    refused = layout.state / "quarantine.jsonl"
    with progress("data", 4) as bar:
        passes, reader = Passes(data, settings.seed), Reader(settings.policy)
        with working("reading", unit="rows") as work:
            found = survey(counted(passes(), work), data)
        if not found.rows:
            raise InputError("the source has no rows", where=getattr(data.source, "path", "data.source"))
        bar.advance(1, f"{found.rows} rows read")
        heaviest = concentration(found, data.concentration, computed=computed(data.source))
        named = name_items(passes, heaviest)
        refuse_concentrated(heaviest, named)
        bar.advance(2, "nothing is repeated too often")
        tally = Tally(rules(data.validation, reader.tokens, data.source.kind != "verifiers"), reader.tokens)
        figures: dict[str, Any] = {}

        def fill(folder: Path) -> None:
            write_rows(folder, passes, found, tally, reader, settings)
            passes.check_unchanged()
            check_limits(tally, data, folder / "quarantine.jsonl", refused)
            table = table_findings(found, tally, data)
            refuse_failed(table, folder / "quarantine.jsonl", refused)
            figures.update(
                tally.summary(),
                provenance={**passes.provenance.to_dict(), "rows": found.rows},
                concentration=[one.to_dict(named) for one in heaviest],
                table=[finding.to_dict() for finding in table],
                guessable_share=found.guessable / found.answered if found.answered else 0.0,
            )
            write_text(folder / "validation.html", render(figures, tally, data.source))
            bar.advance(3, f"{tally.admitted} rows admitted")
            weights, measured = consistency(folder / "sft.jsonl", settings)
            figures.update(measured)
            write_json(folder / layout.consistency.name, weights_file(weights))

        write_directory(layout.data, fill)
        write_json(layout.validation, figures)
        refused.unlink(missing_ok=True)
        bar.advance(4, f"{tally.quarantined} in quarantine")


def counted(rows: Iterator[Candidate], work: Work) -> Iterator[Candidate]:
    """The same rows, counted."""
    for row in rows:
        work.add()
        yield row


def name_items(passes: Passes, heaviest: Sequence[Heaviest]) -> dict[int, Candidate]:
    """The first rows of what is repeated, by position; read again, because the first pass keeps no text.

    Raises:
        InputError: the source has fewer rows than a moment ago.
    """
    wanted = {one.first for one in heaviest if one.rows > 1 or one.refused}
    last = max(wanted, default=-1) + 1
    named = {i: candidate for i, candidate in enumerate(islice(passes(), last)) if i in wanted}
    if len(named) < len(wanted):
        raise passes.changed()
    return named


def write_rows(folder: Path, passes: Passes, found: Survey, tally: Tally, reader: Reader, settings: Settings) -> None:
    """The second pass: judge, validate and write every row, to its split or to the quarantine."""
    admission = Admission()
    done = 0
    with (
        ExitStack() as opened,
        judged_by(settings.reward) as sandbox,
        working("validating", found.rows, "rows") as work,
    ):
        names = (*SPLITS, "quarantine")
        files = {name: opened.enter_context((folder / f"{name}.jsonl").open("w", encoding="utf-8")) for name in names}
        judge = Judge(found, shared(found), sandbox, reader, settings.data.validation)
        given = passes() if computed(settings.data.source) else in_form(passes(), settings.reward.verifier)
        for part in parts(given):
            rows = judge.rows(part, done)
            if rows is None:
                raise passes.changed()
            findings = validate(rows, tally.rules)
            tally.validated(findings)
            for row in admission.divide(rows, findings):
                if isinstance(row, Refused):
                    tally.refuse(row)
                    files["quarantine"].write(dump_line(row.to_dict()))
                else:
                    tally.admit(row)
                    files[row.split].write(dump_line(row.prompt.to_dict()))
            done += len(part)
            work.add(len(part))
    if done != found.rows:
        raise passes.changed()


def judged_by(reward: RewardSettings) -> AbstractContextManager[Sandbox | None]:
    """What judges the reference solutions; an environment judges episodes and no texts."""
    return nullcontext() if reward.verifier.kind == "environment" else Sandbox(reward.verifier, reward.sandbox)


def consistency(split: Path, settings: Settings) -> tuple[Weights | None, dict[str, Any]]:
    """The embedded classifier made from the SFT split, and its figures for the metrics; neither where it is not
    used."""
    chosen = settings.reward.consistency
    if not isinstance(chosen, EmbeddedConsistency):
        return None, {}
    weights, figures = train(read_prompts(split), chosen, derive(settings.seed, "consistency"))
    return weights, {"consistency": figures}
