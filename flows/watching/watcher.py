"""Shows a stage in the Prefect UI while it works: its progress, and of training a table of its latest health signals.

A separate thread reads what the stage writes. It starts after `SHOW_AFTER` seconds, sends fewer requests the longer the
stage takes, and a slow server does not delay the run.
"""

from __future__ import annotations

import contextvars
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.context import FlowRunContext, TaskRunContext
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from components.errors import InputError
from components.health.responses import Ledger, read_ledger
from components.health.summaries import ledger_rows
from components.health.summaries.markdown import plain
from components.layout import Layout
from components.working import clock
from flows.display.console import ENDED, Board, StageView, Tail
from flows.run.workspace import Workspace

TIMEOUT = 5.0
"""Seconds for one request."""
PAUSES = (10.0, 30.0, 60.0)
"""Seconds without a request after the first, second, and every later failure in a row."""


@dataclass
class Artifact:
    """One artifact that is changed in place: the UI keeps one version of it in a run, however often it changes. Its
    name ``key`` is the same in every run; ``kind`` is Prefect's type."""

    key: str
    kind: str
    id: UUID | None = None
    sent: tuple[str, Any] | None = field(default=None, repr=False)


class Channel:
    """Artifacts of a flow run on the Prefect server. Use it in one thread, as a context, within the context of a flow
    run.

    A server that does not answer costs the thread a timeout and never delays the run: it is logged once and retried
    with growing pauses.
    """

    def __init__(self, flow_run: UUID | None, task_run: UUID | None) -> None:
        self._flow_run, self._task_run = flow_run, task_run
        self._open = ExitStack()
        self._client: SyncPrefectClient | None = None
        self._failures, self._silent_until = 0, 0.0

    def __enter__(self) -> Self:
        self._open.enter_context(temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def works(self) -> bool:
        """Whether the server answered the last request."""
        return self._failures == 0

    def show(self, artifact: Artifact, description: str, data: Any) -> None:
        """Make the artifact, or change it. What is as it was sent before is not sent again."""
        if artifact.sent == (description, data) or time.monotonic() < self._silent_until:
            return
        if self._try(lambda client: self._send(client, artifact, description, data)):
            artifact.sent = (description, data)

    def _send(self, client: SyncPrefectClient, artifact: Artifact, description: str, data: Any) -> None:
        if artifact.id is not None:
            changed = {"description": description, "data": data}
            # not client.update_artifact, which also emits an event: one for every change would fill the database
            try:
                client.request("PATCH", "/artifacts/{id}", path_params={"id": artifact.id}, json=changed)
                return
            except httpx.HTTPStatusError as error:
                if error.response.status_code != httpx.codes.NOT_FOUND:
                    raise  # NOT_FOUND: it was deleted in the UI
        runs = {"flow_run_id": self._flow_run, "task_run_id": self._task_run}
        made = ArtifactCreate(key=artifact.key, type=artifact.kind, description=description, data=data, **runs)
        artifact.id = client.create_artifact(made).id

    def _try(self, request: Callable[[SyncPrefectClient], None]) -> bool:
        try:
            if self._client is None:
                settings = {"timeout": TIMEOUT}
                self._client = self._open.enter_context(get_client(httpx_settings=settings, sync_client=True))
            request(self._client)
        except Exception as error:  # whatever it is, the run goes on
            if not self._failures:
                said = f"{type(error).__name__}: {error}".splitlines()[0]
                get_run_logger().warning(
                    "the run goes on, but cannot show its progress on the Prefect server: %s", said
                )
            self._silent_until = time.monotonic() + PAUSES[min(self._failures, len(PAUSES) - 1)]
            self._failures += 1
            return False
        if self._failures:
            get_run_logger().info("the Prefect server answers again")
        self._failures = 0
        return True


SHOW_AFTER = 5.0
"""Seconds after which a stage is shown."""
LEAST, MOST, SHARE = 3.0, 30.0, 1 / 50
"""Seconds between two looks: this share of the time so far, within these bounds. A look costs this process 4 ms of
computing, and the server 40."""
LAST = 2.0
"""Seconds that the last look is waited for."""
SIGNALS = "run-signals"


@contextmanager
def watched(workspace: Workspace, stage: str) -> Iterator[None]:
    """Show the stage that runs inside the block. Use it in the stage's task."""
    flow, task = FlowRunContext.get(), TaskRunContext.get()
    flow_run = flow.flow_run.id if flow and flow.flow_run else None
    watcher = Watcher(workspace, stage, flow_run, task.task_run.id if task else None)
    watcher.start()
    try:
        yield
    except BaseException as error:
        watcher.end(shown=isinstance(error, Exception))  # a stopped run does not wait for its last update
        raise
    watcher.end(shown=True)


def pace(elapsed: float) -> float:
    """Seconds until the next request for an artifact of a stage that has worked for ``elapsed`` seconds."""
    return min(MOST, max(LEAST, elapsed * SHARE))


class Watcher:
    """The thread of one stage."""

    def __init__(self, workspace: Workspace, stage: str, flow_run: UUID | None, task_run: UUID | None) -> None:
        self._stage, self._channel = stage, Channel(flow_run, task_run)
        self._board, self._tail = Board.of([stage]), Tail(workspace.progress)
        self._signals = SignalTable(workspace.layout) if stage == "train" else None
        self._progress = Artifact(f"stage-{stage}", "progress")
        self._table = Artifact(SIGNALS, "table")
        self._what = f"of {workspace.run_id}"
        self._over, self._shown = threading.Event(), True
        context = contextvars.copy_context()  # the thread logs as the task does
        self._thread = threading.Thread(target=context.run, args=(self._run,), name=f"watch-{stage}", daemon=True)

    def start(self) -> None:
        """Begin to watch; what the progress file holds already is of earlier runs."""
        self._tail.read()
        self._began = time.monotonic()
        self._thread.start()

    def end(self, *, shown: bool) -> None:
        """Show how the stage ended, unless ``shown`` is False or that would delay the run."""
        self._shown = shown
        self._over.set()
        if shown and self._channel.works:
            self._thread.join(LAST)

    def _run(self) -> None:
        if self._over.wait(SHOW_AFTER):
            return
        with self._channel:
            self._look()
            while not self._over.wait(pace(time.monotonic() - self._began)):
                self._look()
            if self._shown:
                self._look()

    def _look(self) -> None:
        for event in self._tail.read():
            if event["stage"] == self._stage:
                self._board.apply(event)
        view = self._board.stages[self._stage]
        note = ", ".join(view.note.split("  "))  # Markdown would run its parts together
        share = 1.0 if view.state == "done" else view.done / view.total if view.total else 0.0
        self._channel.show(self._progress, self._line(view, note), round(100 * share, 1))
        if self._signals is not None and view.total and self._signals.update():
            standing = f"**{plain(note) or 'training'}**\n\nThe latest steps {self._what}, the newest first."
            self._channel.show(self._table, standing, json.dumps(self._signals.rows(), ensure_ascii=False))

    def _line(self, view: StageView, note: str) -> str:
        elapsed = clock(time.monotonic() - self._began)
        amount = f"{view.done} of {view.total}" if view.total else ""
        state = f"{view.state} in {elapsed}" if view.state in ENDED else f"running for {elapsed}"
        return f"{self._stage} {self._what}: {', '.join(part for part in (state, amount, note, view.work) if part)}"


STEPS = 20
"""Of the table."""
COLUMNS = (
    ("Accuracy", "accuracy", "{:.1%}"),
    ("Dev pass@1", "dev_pass_at_1", "{:.1%}"),
    ("Entropy", "entropy", "{:.3f}"),
    ("KL", "kl_ref", "{:.4f}"),
    ("Zero var.", "zero_variance_share", "{:.0%}"),
    ("Grad. norm", "grad_norm", "{:.3f}"),
    ("LR", "lr", "{:.3g}"),
)
"""Head, signal and format; short, so that a screen has room for all. Entropy and KL (to the SFT checkpoint) are in nats
per token; what a step did not measure is left empty."""


class SignalTable:
    """The latest steps of the training in a workspace; `update` takes in what was added.

    Read from the log that the stage appends to, `.state/train/records.jsonl`, and from the ledger next to it;
    `out/train` has them only when the stage has ended.
    """

    def __init__(self, layout: Layout) -> None:
        self._records = Tail(layout.state / "train" / layout.records.name)
        self._ledger_path = layout.state / "train" / layout.ledger.name
        self._latest: deque[Mapping[str, Any]] = deque(maxlen=STEPS)
        self._ledger = Ledger()

    def update(self) -> bool:
        """Whether there is anything to show."""
        rows = self._records.read()
        if self._records.replaced:
            self._latest.clear()
        self._latest.extend(rows)
        with suppress(InputError):  # it is being written to: the next look sees it whole
            self._ledger = read_ledger(self._ledger_path) if self._ledger_path.exists() else Ledger()
        return bool(self._latest)

    def rows(self) -> list[dict[str, str]]:
        """A row a step, the newest first."""
        responses: dict[int, list[str]] = {}
        for row in ledger_rows(self._ledger):
            responses.setdefault(row.response.step, []).append("; ".join(row.changed) or row.response.level)
        return [_row(record, responses) for record in reversed(self._latest)]


def _row(record: Mapping[str, Any], responses: Mapping[int, list[str]]) -> dict[str, str]:
    signals, notes = record.get("signals", {}), record.get("notes", {})
    figures = {head: text.format(signals[name]) if name in signals else "" for head, name, text in COLUMNS}
    said = [f"{verdict['rule']}: {verdict['level']}" for verdict in notes.get("verdicts", ())]
    step = record.get("step")
    done = responses.get(step, []) if isinstance(step, int) else []
    return {"Step": str(step), **figures, "Verdicts": ", ".join(said), "Acted": ", ".join(done)}
