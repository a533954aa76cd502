"""The process of a flow run: which ends of Prefect's engine are ends, and which are only those of a server."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from flows.serving import flow_run


class Again(BaseException):
    """Stands for the program that takes the place of this one."""


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str], BaseException]:
    """What comes of an engine that ends with this exit code while the server says this of the run."""

    def end(code: int, state: str) -> BaseException:
        def engine(*_: object, **__: object) -> None:
            raise SystemExit(code)

        found = SimpleNamespace(state=SimpleNamespace(type=SimpleNamespace(value=state)))
        monkeypatch.setattr(runpy, "run_module", engine)
        monkeypatch.setattr(flow_run, "read_flow_run", lambda _: found)
        with pytest.raises((SystemExit, Again)) as caught:
            flow_run.main()
        return caught.value

    def replaced(*_: object) -> None:
        raise Again

    monkeypatch.setattr(flow_run, "die_with_parent", lambda: None)
    monkeypatch.setattr(os, "execv", replaced)
    monkeypatch.setenv(flow_run.FLOW_RUN, "1")
    monkeypatch.setenv(flow_run.STARTS, "0")
    monkeypatch.delenv(flow_run.START_WITHIN, raising=False)
    monkeypatch.setattr("sys.argv", [])
    return end


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_an_engine_that_could_not_report_its_end_is_started_again_but_not_for_ever(ended, state):
    for number in range(flow_run.MOST_STARTS):
        assert isinstance(ended(1, state), Again)
        assert os.environ[flow_run.STARTS] == str(number + 1)
    assert isinstance(ended(1, state), SystemExit)


@pytest.mark.parametrize(("code", "state"), [(1, "FAILED"), (1, "CRASHED"), (1, "CANCELLED"), (0, "RUNNING")])
def test_an_end_that_is_the_runs_state_is_one(ended, code, state):
    assert ended(code, state).code == code


def test_a_server_that_is_away_is_waited_for(monkeypatch):
    answers = iter([RuntimeError("Failed to reach API"), RuntimeError("Failed to reach API"), "the run"])

    class Client:
        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None: ...

        def read_flow_run(self, _: str):
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda **_: Client())
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert flow_run.read_flow_run("1") == "the run"
    monkeypatch.setattr(flow_run, "PATIENCE", -1)
    answers = iter([RuntimeError("Failed to reach API")])
    with pytest.raises(RuntimeError, match="reach"):
        flow_run.read_flow_run("1")
