"""How much there is to do in a stage, and on how many GPUs: known from the settings, before anything runs.

How long the completions will be is unknown. They are taken to have half of ``rollout.max_new_tokens``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from components.config import Settings
from components.config.inputs import input_sections, library_sections
from components.config.policy import CheckpointModel
from components.config.servers import SglangEngine, VllmEngine
from components.config.sources import FileSource, PythonSource
from components.processes.memory import has_gpus
from components.proportion import MEASURED, audit_sample, draws, ranked_prompts, triage_sample
from flows.budget.costs import loading, seconds, shape_of
from flows.run.workspace import Workspace

BYTES_A_ROW = 200
"""Of a file of questions and answers whose lines cannot be counted."""
ROWS_OF_CODE = 10_000.0
"""Rows that a source of `kind: python` is taken to give: nothing is imported to estimate a time."""
LOOKED_AT = 2**20
"""Bytes of a JSON-lines file that tell how long its lines are."""
BYTES_A_TOKEN = {"tiny": 2.0, "checkpoint": 4.0}
"""Of text, by the kind of the model: the tokenizer of a tiny one has a few hundred tokens."""
QUESTION, TEMPLATE = 24.0, 30.0
"""Tokens of a generated question, and of the chat template of a model that was trained elsewhere."""
WRITTEN = 0.5
"""Share of ``max_new_tokens`` that a completion is taken to have; what is measured lies between 0.3 and 1."""
SPEED_UP = 0.75
"""Exponent: two threads are 1.7 times as fast as one, measured on a model of 135 million parameters."""
LIBRARY = 3.0
"""Seconds until scikit-learn is loaded, or reasoning-gym, for each source that it makes."""
REFILLS = 2
"""Batches of prompts that dynamic sampling draws a step, if it may: one dead group asks for a second."""
RATES = {"rows": 1.5e3, "answers": 150.0, "judgement": 1.0, "page": 0.5, "modelled seconds": 1.0}
"""Done a second on a CPU."""
SAMPLING = frozenset({"admission", "triage", "train", "evaluate", "dpo"})
"""Stages that sample from the policy, and so use the servers."""


@dataclass(frozen=True, slots=True)
class Work:
    """An amount of work and its unit. Of two stages of one name the ratio of amounts is about that of their times.

    ``start`` is what comes before it, in seconds, however much there is to do.
    """

    amount: float
    unit: str
    start: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it takes on a CPU after its start, estimated before it has been measured."""
        return self.amount / RATES[self.unit]


def work_of(settings: Settings, stage: str) -> Work:
    """The work of a stage. Paths of inputs lead from where this process works, see `located`."""
    return WORK[stage](settings)


def located(workspace: Workspace) -> Settings:
    """The settings of a run with its inputs where they are now, and not where its stages will find them."""
    tree = workspace.settings.model_dump(mode="json")
    inputs = {one.path: one for one in workspace.inputs}
    for node in input_sections(tree):
        one, inside = inputs.get(node["path"]), workspace.root / node["path"]
        origin = one.origin if one and one.origin else workspace.project / node["path"]
        node["path"] = str(inside if inside.exists() else origin)
    return Settings.model_validate(tree)


NOTHING = Work(0.0, "modelled seconds")


class Lengths(NamedTuple):
    """Tokens of a prompt, of its reference solution, and of a completion, on average."""

    prompt: float
    solution: float
    completion: float


def lengths(settings: Settings) -> Lengths:
    """What tokens are expected: by the first lines of a file, or by what generated rows have."""
    source, completion = settings.data.source, WRITTEN * settings.rollout.max_new_tokens
    template = TEMPLATE if isinstance(settings.policy.model, CheckpointModel) else 0.0
    if not isinstance(source, FileSource):
        return Lengths(QUESTION + template, completion, completion)
    half = _bytes_a_row(Path(source.path)) / 2 / BYTES_A_TOKEN[settings.policy.model.kind]
    return Lengths(half + template, half, completion)


def _bytes_a_row(path: Path) -> float:
    if not path.is_file() or path.suffix == ".parquet":
        return BYTES_A_ROW
    with path.open("rb") as file:
        head = file.read(LOOKED_AT)
    return max(1.0, len(head) / max(1, head.count(b"\n")))


def _rows(settings: Settings) -> float:
    source = settings.data.source
    if isinstance(source, PythonSource):
        return ROWS_OF_CODE
    if not isinstance(source, FileSource):
        return float(source.rows)
    path = Path(source.path)
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path] if path.exists() else []
    return max(1.0, sum(file.stat().st_size for file in files) / _bytes_a_row(path))


def _training_rows(settings: Settings) -> float:
    return _rows(settings) * settings.data.splits.train


def _sampled(settings: Settings, prompts: float, each: float) -> float:
    """Seconds of ``each`` completions of that many prompts; a prompt is read once."""
    shape, expected = shape_of(settings), lengths(settings)
    reading = seconds("scoring", shape, prompts * expected.prompt)
    return reading + seconds("sampling", shape, prompts * each * expected.completion)


def _passed(settings: Settings, kind: str, prompts: float, each: float) -> float:
    """Seconds of scoring, or learning from, ``each`` completions of that many prompts; a prompt is computed once."""
    expected = lengths(settings)
    return seconds(kind, shape_of(settings), prompts * (expected.prompt + each * expected.completion))


def _audits(settings: Settings) -> bool:
    """Whether labels are audited."""
    mode, source = settings.admission.label_audit, settings.data.source
    trusted = not isinstance(source, FileSource | PythonSource) or source.sha256 in settings.data.trusted
    return mode != "off" and not (mode == "auto" and trusted)


def _on_policy(settings: Settings, modelled: float) -> Work:
    """Work of a stage that loads the policy; ``modelled`` are seconds of one thread."""
    return Work(modelled / settings.threads**SPEED_UP, "modelled seconds", loading(shape_of(settings)))


def _sft(settings: Settings) -> Work:
    expected = lengths(settings)
    tokens = settings.sft.steps * settings.sft.batch_size * (expected.prompt + expected.solution)
    return _on_policy(settings, seconds("learning", shape_of(settings), tokens))


def _admission(settings: Settings) -> Work:
    if not _audits(settings):
        return NOTHING
    size = audit_sample(settings)
    return _on_policy(settings, _sampled(settings, min(size.prompts, _training_rows(settings)), size.samples))


def _triage(settings: Settings) -> Work:
    """Of the entropy, and of the sampling where the label audit has not done that: half of its prompts are triage's."""
    size, known = triage_sample(settings), audit_sample(settings)
    served = min(size.prompts, known.prompts // 2) if _audits(settings) and known.samples >= size.samples else 0
    sampling = _sampled(settings, size.prompts - served, size.samples)
    return _on_policy(settings, sampling + _passed(settings, "scoring", size.prompts, min(MEASURED, size.samples)))


def _clusters(settings: Settings) -> Work:
    """Nothing where no schedule reads them."""
    count = ranked_prompts(settings)
    if count is None:
        return NOTHING
    expected = lengths(settings)
    tokens = min(count, _training_rows(settings)) * (expected.prompt + expected.solution)
    work = _on_policy(settings, seconds("scoring", shape_of(settings), tokens))
    return replace(work, start=work.start + LIBRARY)


def _train(settings: Settings) -> Work:
    train, dynamic = settings.train, settings.rollout.dynamic_sampling
    drawn, size = draws(settings), settings.rollout.group_size
    batches = min(dynamic.max_attempts, REFILLS) if dynamic else 1
    probed = (train.steps / train.eval_every + 1) * train.eval_prompts
    sampling = _sampled(settings, batches * drawn, size) + _sampled(settings, probed, train.eval_samples)
    return _on_policy(settings, sampling + _passed(settings, "learning", drawn, size))


def _evaluate(settings: Settings) -> Work:
    evaluation = settings.evaluation
    sides = 2 if evaluation.champion is None else 3
    sampled = [evaluation, *evaluation.suites.values()]
    return _on_policy(settings, sides * sum(_sampled(settings, one.prompts, one.samples + 1) for one in sampled))


def _dpo(settings: Settings) -> Work:
    pairs = settings.dpo.steps * settings.dpo.batch_size
    return _on_policy(
        settings, _passed(settings, "learning", 2 * pairs, 1) + _passed(settings, "scoring", 2 * pairs, 1)
    )


WORK: dict[str, Callable[[Settings], Work]] = {
    "data": lambda s: Work(_rows(s), "rows", LIBRARY * len(library_sections(s.model_dump(mode="json")))),
    "audit": lambda s: Work(s.audit.prompts * s.audit.repeats, "answers"),
    "sft": _sft,
    "admission": _admission,
    "triage": _triage,
    "clusters": _clusters,
    "train": _train,
    "evaluate": _evaluate,
    "gate": lambda s: Work(1, "judgement"),
    "report": lambda s: Work(1, "page"),
    "dpo": _dpo,
}


def machinery(settings: Settings, stage: str) -> str:
    """What does the work. Times on different machinery are not compared."""
    if stage not in SAMPLING:
        return "cpu"
    learner = f" {settings.learner.kind}" if stage == "train" else ""
    return f"{settings.rollout.engine.kind}{learner} {gpus_of(settings, stage)} gpu"


def gpus_of(settings: Settings, stage: str) -> int:
    """GPUs that a stage holds while it runs.

    Servers elsewhere are counted as one GPU each; ranks and servers of this machine (a server: as many as it spreads
    over) only where it has GPUs at all.
    """
    count = 0
    engine, learner = settings.rollout.engine, settings.learner
    if stage in SAMPLING and isinstance(engine, VllmEngine | SglangEngine):
        count += len(engine.urls)
    if stage in SAMPLING and isinstance(engine, VllmEngine) and has_gpus():
        count += engine.processes * engine.tensor_parallel
    if stage == "train" and learner.kind != "torch" and has_gpus():
        count += learner.ranks.processes
    return count
