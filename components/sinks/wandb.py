"""Weights & Biases. Its own process writes and sends; a row of a step that it has already is dropped there."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from components.config.sinks import WandbSink
from components.sinks.base import Batch, Results, Run, Sink


class Wandb(Sink):
    def __init__(self, run: Run, settings: WandbSink) -> None:
        import wandb

        folder = run.folder / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        quiet = wandb.Settings(
            console="off",
            silent=True,
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_disable_meta=True,
            x_sync_dir_suffix=token_hex(2),
        )
        self._next, self._id = 0, run.id
        self._run = wandb.init(
            project=settings.project,
            entity=settings.entity,
            id=run.id,
            name=run.name,
            mode=settings.mode,
            dir=str(folder),
            config=dict(run.parameters),
            resume="allow" if settings.mode == "online" else None,
            reinit="create_new",
            settings=quiet,
        )

    def send(self, batch: Batch) -> None:
        rows: dict[int, dict[str, Any]] = {}
        for step in batch.steps:
            tables = {"completions": _table(step.completions)} if step.completions else {}
            rows[step.number] = {**step.figures, **tables}
            self._next = step.number + 1
        for note in batch.notes:  # one that is late comes with the next row: no row can be changed
            row = rows.setdefault(note.step if note.step in rows else self._next, {})
            row["evenkeel/notes"] = "\n".join(filter(None, [row.get("evenkeel/notes"), f"{note.title}: {note.text}"]))
        for number, row in sorted(rows.items()):
            self._run.log(row, step=number, commit=number < self._next)

    def finish(self, results: Results, at: float) -> None:
        import wandb

        self._run.summary.update({**results.figures, "evenkeel/verdict": results.verdict})
        if results.completions:
            self._run.log({"samples": _table(results.completions)}, step=self._next)
        if results.report is not None:
            artifact = wandb.Artifact(f"report-{self._id}", type="report")
            artifact.add_file(str(results.report))
            self._run.log_artifact(artifact)

    def close(self) -> None:
        self._run.finish()


def _table(rows: tuple[Mapping[str, Any], ...]) -> Any:
    import wandb

    heads = list(rows[0])
    return wandb.Table(columns=heads, data=[[str(row.get(head, "")) for head in heads] for row in rows])
