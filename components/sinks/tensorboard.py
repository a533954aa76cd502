"""TensorBoard: event files, in a folder of the run's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.config.sinks import TensorBoardSink
from components.sinks.base import Batch, Results, Run, Sink


class TensorBoard(Sink):
    """A process that died may have written a part of a batch. So each file begins with the mark by which TensorBoard
    discards, of the files before, what is of that step and later."""

    def __init__(self, run: Run, settings: TensorBoardSink) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        folder = run.folder / "logs" / "tensorboard" if settings.folder is None else settings.folder / run.id
        self._run, self._last, self._began = run, 0, False
        self._writer = EventFileWriter(str(folder))

    def send(self, batch: Batch) -> None:
        from tensorboard.compat.proto.event_pb2 import SessionLog

        if batch.steps and not self._began:
            self._began = True
            self._event(batch.at, batch.steps[0].number, session_log=SessionLog(status=SessionLog.START))
        if batch.steps and batch.steps[0].number == 0:
            self._parameters(batch.at)
        for step in batch.steps:
            self._last = step.number
            self._scalars(batch.at, step.number, step.figures)
            if step.completions:
                self._text(batch.at, step.number, "completions", table(step.completions))
        for note in batch.notes:
            self._text(batch.at, note.step, "evenkeel/notes", f"**{note.title}** {note.text}")
        self._writer.flush()

    def finish(self, results: Results, at: float) -> None:
        self._scalars(at, self._last, results.figures)
        self._text(at, self._last, "evenkeel/verdict", results.verdict)
        self._text(at, self._last, "evenkeel/report", str(results.report))
        if results.completions:
            self._text(at, self._last, "evenkeel/samples", table(results.completions))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _event(self, at: float, step: int, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=at, step=step, **content))

    def _scalars(self, at: float, step: int, figures: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in figures.items()]
        self._event(at, step, summary=Summary(value=values))

    def _text(self, at: float, step: int, tag: str, text: str) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.compat.proto.types_pb2 import DT_STRING
        from tensorboard.plugins.text.metadata import create_summary_metadata

        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode()], tensor_shape=shape)
        about = create_summary_metadata(display_name="", description="")
        self._event(at, step, summary=Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=about)]))

    def _parameters(self, at: float) -> None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        summary = hparams_pb(dict(self._run.parameters), trial_id=self._run.id, start_time_secs=at)
        self._event(at, 0, summary=summary)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a table in Markdown."""
    heads = list(rows[0])
    cells = [[str(row.get(head, "")).replace("|", "\\|").replace("\n", "<br>") for head in heads] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *cells))
