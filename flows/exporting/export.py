"""A checkpoint out of the registry, verified, in the form that another program loads, and its model card.

The card is Markdown with the front matter that Hugging Face reads. Every figure and name in it is taken from the
evidence, the candidate's record and its approvals; what is missing is listed. The same evidence, decisions and policy
give the same text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from components.config.policy import CheckpointModel
from components.directories import write_directory
from components.errors import InputError
from components.files import read_json, write_text
from components.health.summaries.markdown import plain
from components.registry import sound_history
from components.report.attention import worse as fell
from components.report.canaries import canary_rows
from components.report.changes import differences
from components.report.decision import DIGITS, facts, not_judged
from components.report.gains import Gain, forests
from components.report.lineage import origins
from components.report.page import run_health
from components.report.run import Run, dig
from components.words import number, percent, points
from flows.exporting.form import CARD, GGUF, LIBRARIES, Form, write
from flows.governance.checkpoint import CheckpointView, find_candidate, look_up
from flows.governance.policies import check_champion
from flows.governance.registry import RegistryContext, verified
from flows.promoting.report import run_of

TEMPLATE = "card.jinja"
KINDS = ("advantage", "ratio", "aggregation", "kl", "correction", "off_policy_mask", "entropy", "selection")
"""Parts of the objective."""


def card(context: RegistryContext, found: CheckpointView, form: Form = Form.safetensors, base: str = "") -> str:
    """The text of the card.

    Args:
        form: what it lies next to.
        base: name of the base model on a hub; where it is empty, the name of its folder is all that is known.

    Raises:
        InputError: the candidate has no evidence, or its evidence is damaged.
    """
    run, digest = run_of(context, found), found.candidate.digest
    health, base = run_health(run), base or _base(run)
    return _environment().get_template(TEMPLATE).render(
        front=Markup(_front(run, form, base)), run=run, found=found, form=form.value, base=base, digest=digest,
        model=_model(context.store.tree(digest)), method=_method(run), differences=differences(run.settings),
        facts=facts(run, health), gains=gains(run), worse=worse(run), canaries=canary_rows(run), health=health,
        origins=origins(run), missing=list(not_judged(run, health)), short=digest[:DIGITS], gguf=GGUF,
        starts=dig(run.sft, "checkpoint_sha256"),
    )  # fmt: skip


def _environment() -> Environment:
    """Whatever a template puts out is plain text to Markdown: names and reasons are what people typed."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=False,
        finalize=lambda value: plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"percent": percent, "points": points, "number": number}
    templates.globals["dig"] = dig
    return templates


def _front(run: Run, form: Form, base: str) -> str:
    """YAML for a hub. A licence is not in it: none is on record."""
    trained = () if run.settings.train.adopted else (run.settings.objective.advantage.kind, "reinforcement-learning")
    matter: dict[str, Any] = {"base_model": base} if base else {}
    matter |= {"library_name": LIBRARIES[form], "pipeline_tag": "text-generation", "tags": ["evenkeel", *trained]}
    return yaml.safe_dump(matter, sort_keys=False, allow_unicode=True)


def _base(run: Run) -> str:
    """The folder of the base model, without what leads there on the machine of the run; "" of a model that was made."""
    model = run.settings.policy.model
    return model.path.name if isinstance(model, CheckpointModel) else ""


def _model(tree: Path) -> str:
    config = read_json(tree / "config.json")
    kind, precision = config.get("architectures"), config.get("dtype") or config.get("torch_dtype")
    named = kind[0] if isinstance(kind, list) and kind else config.get("model_type")
    return ", ".join(str(one) for one in (named, precision) if one)


def _method(run: Run) -> list[tuple[str, str]]:
    """What was done, by the settings and by what training recorded, as rows."""
    settings, train = run.settings, run.settings.train
    if train.adopted is not None:
        return [("Trained by", "another trainer, whose checkpoint and log were taken over")]
    parts = {name: getattr(settings.objective, name) for name in KINDS}
    named = [f"{name.replace('_', ' ')} {getattr(part, 'kind', 'on')}" for name, part in parts.items() if part]
    steps, kept, lora = dig(run.train, "steps"), dig(run.train, "checkpoint_step"), settings.policy.lora
    sampled = f"{train.prompts_per_step} prompts a step, {settings.rollout.group_size} completions a prompt"
    ended = f"{number(steps)} of {train.steps} steps" if steps is not None else f"{train.steps} steps planned"
    adapter = f"a low-rank adapter (rank {lora.rank}, alpha {lora.alpha}), merged" if lora else "all weights"
    return [
        ("Supervised steps before", str(dig(run.sft, "steps") or settings.sft.steps)),
        ("Reinforcement learning", f"{ended}, {sampled}; the checkpoint has {number(kept)} steps behind it"),
        ("Objective", ", ".join(named)),
        ("Reward", f"verifier {settings.reward.verifier.kind}"),
        ("Trained", adapter),
        ("Learning rate", number(settings.learner.lr)),
        ("Seed", str(settings.seed)),
    ]


def worse(run: Run) -> list[str]:
    """What got worse, a sentence each: gains below 0, probe sets that were lost, then what the report points out."""
    return [*_gains(run), *_lost(run), *fell(run)]


def gains(run: Run) -> list[tuple[str, str, Gain]]:
    """Whom it is compared with, of which prompts, and the gain; without slices."""
    return [
        (forest.before, title, row)
        for forest in forests(run.measured, run.settings.evaluation.small)
        for title, rows in forest.groups.items()
        if not title.startswith("pass@1 by ")
        for row in rows
    ]


def _gains(run: Run) -> Iterator[str]:
    for before, title, row in gains(run):
        if row.mean is not None and row.mean < 0:
            change = f"{percent(row.before)} to {percent(row.after)} ({points(row.mean)} points, {row.interval})"
            yield f"{title}, {row.name}, against {before}: {change}."


def _lost(run: Run) -> Iterator[str]:
    for row in canary_rows(run):
        if row.result == "lost":
            interval = "" if row.low is None else f", 95 % interval {points(row.low)} to {points(row.high)}"
            yield f"Probe set {row.name} ({row.way}): {points(row.change)} points{interval}, more than it may fall."


def cleared(context: RegistryContext, which: str) -> tuple[str, Path]:
    """Digest and files of a checkpoint that may leave the registry: its signature holds, and the champion was approved.

    Raises:
        InputError: one of them does not hold, or there is no such checkpoint.
    """
    if which == "champion":
        check_champion(context, sound_history(context.store))
    digest = find_candidate(context, which).digest
    return digest, verified(context.project, context.store, digest)


def export(context: RegistryContext, which: str, target: Path, form: Form, base: str = "") -> str:
    """Write the new folder ``target``, whole or not at all; returns the digest of the checkpoint.

    Args:
        base: see `card`.

    Raises:
        InputError: as `cleared`; there is something at ``target``; or the checkpoint cannot be had in this form.
    """
    if target.exists() or target.is_symlink():
        raise InputError("there is something at this path", where=target, how="name a folder that is not there")
    digest, tree = cleared(context, which)
    text = card(context, look_up(context, digest), form, base)

    def fill(folder: Path) -> None:
        write(form, tree, digest, folder, title=digest[:12])
        write_text(folder / CARD, text)

    write_directory(target, fill)
    return digest
