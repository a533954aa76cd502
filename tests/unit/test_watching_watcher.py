"""A stage in the Prefect UI: what is shown when, and an unreachable server does not affect the run."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import httpx
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from components.files import append_line
from components.layout import Layout
from flows.run.workspace import Workspace
from flows.watching import watcher as watchers
from flows.watching.watcher import STEPS, Artifact, Channel, SignalTable, Watcher, pace


class FakeServer:
    """Takes artifacts as a Prefect client does; ``broken`` is raised instead of an answer."""

    def __init__(self) -> None:
        self.broken: Exception | None = None
        self.made: list[Any] = []
        self.changed: list[tuple[UUID, dict[str, Any]]] = []

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def create_artifact(self, artifact: Any) -> Any:
        if self.broken:
            raise self.broken
        self.made.append(artifact)
        return SimpleNamespace(id=uuid5(NAMESPACE_OID, artifact.key))

    def request(self, method: str, path: str, path_params: dict[str, Any], json: dict[str, Any]) -> None:
        if self.broken:
            raise self.broken
        self.changed.append((path_params["id"], json))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    fake = FakeServer()
    monkeypatch.setattr(watchers, "get_client", lambda **_: fake)
    monkeypatch.setattr(watchers, "get_run_logger", lambda: logging.getLogger("test.channel"))
    return fake


@pytest.fixture
def open_channel(server: FakeServer) -> Iterator[Channel]:
    with Channel(uuid4(), None) as channel:
        yield channel


def test_an_artifact_is_made_once_and_then_changed_in_place(open_channel: Channel, server: FakeServer) -> None:
    artifact = Artifact("run-signals", "table")
    for text in ("one", "two", "two", "three"):
        open_channel.show(artifact, text, "[]")
    assert [made.key for made in server.made] == ["run-signals"]
    assert [(id, body["description"]) for id, body in server.changed] == [(artifact.id, "two"), (artifact.id, "three")]


def test_an_artifact_that_somebody_deleted_is_made_again(open_channel: Channel, server: FakeServer) -> None:
    artifact = Artifact("run-signals", "table")
    open_channel.show(artifact, "one", "[]")
    gone = httpx.Response(404, request=httpx.Request("PATCH", "http://server"))
    server.request = lambda *_, **__: gone.raise_for_status()  # type: ignore[method-assign, assignment, return-value]
    open_channel.show(artifact, "two", "[]")
    assert len(server.made) == 2


def test_a_server_that_is_away_is_said_once_and_asked_again_later(
    open_channel: Channel, server: FakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(watchers, "PAUSES", (0.05,))
    artifact = Artifact("run-signals", "table")
    server.broken = httpx.ConnectError("refused")
    for text in ("one", "two", "three"):
        open_channel.show(artifact, text, "[]")
        time.sleep(0.06)
    assert not open_channel.works
    server.broken = None
    open_channel.show(artifact, "four", "[]")
    assert open_channel.works
    assert [made.description for made in server.made] == ["four"]
    away, back = (record.getMessage() for record in caplog.records)
    assert away.startswith("the run goes on, but cannot show its progress on the Prefect server: ")
    assert back == "the Prefect server answers again"


def test_between_two_tries_a_server_that_is_away_is_left_alone(open_channel: Channel, server: FakeServer) -> None:
    server.broken = httpx.ConnectError("refused")
    open_channel.show(Artifact("a", "table"), "one", "[]")
    server.broken = None
    open_channel.show(Artifact("a", "table"), "one", "[]")
    assert server.made == []


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    layout = Layout(tmp_path)
    progress = layout.state / "progress.jsonl"
    return cast(Workspace, SimpleNamespace(root=tmp_path, run_id="demo-1", progress=progress, layout=layout))


@pytest.fixture
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchers, "SHOW_AFTER", 0.05)
    monkeypatch.setattr(watchers, "LEAST", 0.05)


def step(workspace: Workspace, number: int) -> None:
    """What a train stage writes in one step."""
    signals = {"accuracy": number / 100, "entropy": 0.25, "lr": 0.001}
    verdicts = [{"rule": "entropy_low", "level": "warn", "step": number, "reason": "fell"}] if number == 2 else []
    record = {"step": number, "signals": signals, "notes": {"verdicts": verdicts}}
    append_line(workspace.layout.state / "train/records.jsonl", record)
    append_line(workspace.progress, {"stage": "train", "done": number, "total": 4, "note": f"acc {number / 100}"})


def say(workspace: Workspace, state: str, stage: str = "train") -> None:
    append_line(workspace.progress, {"stage": stage, "state": state, "seconds": 1.0})


@contextmanager
def watching(workspace: Workspace, stage: str) -> Iterator[None]:
    watcher = Watcher(workspace, stage, uuid4(), None)
    watcher.start()
    yield
    watcher.end(shown=True)


@pytest.mark.usefixtures("_quickly")
def test_of_a_training_progress_and_signals_are_shown(workspace: Workspace, server: FakeServer) -> None:
    with watching(workspace, "train"):
        say(workspace, "running")
        step(workspace, 1)
        give_up = time.monotonic() + 20
        while len(server.made) < 2 and time.monotonic() < give_up:
            time.sleep(0.01)
        step(workspace, 2)
        say(workspace, "done")
    progress, table = server.made
    assert (progress.key, progress.type, table.key) == ("stage-train", "progress", "run-signals")
    assert table.description.startswith("**acc 0.01**")
    last = dict(server.changed)
    shown, rows = (last[uuid5(NAMESPACE_OID, made.key)] for made in server.made)
    assert (shown["data"], shown["description"][:23]) == (100.0, "train of demo-1: done i")
    (newest, _) = json.loads(rows["data"])
    measured = {"Step": "2", "Accuracy": "2.0%", "Entropy": "0.250", "LR": "0.001", "Verdicts": "entropy_low: warn"}
    assert newest == dict.fromkeys(("Dev pass@1", "KL", "Zero var.", "Grad. norm", "Acted"), "") | measured


def test_a_stage_that_is_soon_over_is_not_shown(workspace: Workspace, server: FakeServer) -> None:
    with watching(workspace, "data"):
        say(workspace, "running", "data")
        say(workspace, "done", "data")
    assert server.made == []


@pytest.mark.usefixtures("_quickly")
def test_what_other_stages_and_earlier_executions_said_is_not_taken_for_this_stages(
    workspace: Workspace, server: FakeServer
) -> None:
    append_line(workspace.progress, {"stage": "sft", "done": 9, "total": 9, "note": "then"})
    with watching(workspace, "sft"):
        say(workspace, "running", "data")
        time.sleep(0.1)
    (made,) = server.made
    assert made.data == 0
    assert "then" not in made.description


@pytest.mark.usefixtures("_quickly")
def test_a_server_that_never_answers_holds_up_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A real socket that takes the request, and a real client."""
    monkeypatch.setattr(watchers, "get_run_logger", lambda: logging.getLogger("test.channel"))
    monkeypatch.setattr(watchers, "TIMEOUT", 0.4)
    monkeypatch.setattr(watchers, "LAST", 0.2)
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as listening,
        temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{listening.getsockname()[1]}/api"}),
    ):
        with watching(workspace, "train"):
            say(workspace, "running")
            time.sleep(0.2)
            began = time.monotonic()
        assert time.monotonic() - began < 0.4
        for thread in [one for one in threading.enumerate() if one.name == "watch-train"]:
            thread.join(5)
    assert len([record for record in caplog.records if "the run goes on" in record.getMessage()]) == 1


def test_the_longer_a_stage_takes_the_more_seldom_it_is_shown() -> None:
    assert [pace(seconds) for seconds in (0, 100, 600, 86400)] == [3.0, 3.0, 12.0, 30.0]


def test_the_table_has_the_latest_steps_the_newest_first_and_what_was_done(workspace: Workspace) -> None:
    for number in range(STEPS + 5):
        step(workspace, number)
    change = {"knob": "learner.lr", "before": 0.2, "after": 0.1}
    response = {"kind": "response", "number": 1, "step": 20, "rule": "entropy_low", "asked": "intervene"}
    rest = {"level": "intervene", "reason": "fell", "saw": {}, "back_to": None, "quarantined": [], "did": ""}
    append_line(workspace.layout.state / "train/ledger.jsonl", {**response, **rest, "changes": [change]})
    table = SignalTable(workspace.layout)
    assert table.update()
    rows = table.rows()
    assert [row["Step"] for row in rows] == [str(number) for number in reversed(range(5, STEPS + 5))]
    assert {row["Step"]: row["Acted"] for row in rows if row["Acted"]} == {"20": "learner.lr 0.2 → 0.1"}


def test_a_ledger_that_is_being_written_to_is_looked_at_again_later(workspace: Workspace) -> None:
    step(workspace, 1)
    (workspace.layout.state / "train/ledger.jsonl").write_text('{"kind": "resp', encoding="utf-8")
    assert SignalTable(workspace.layout).update()
