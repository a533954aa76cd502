"""What can be said of serving without a server: options, who serves, and what the files of deployments hold."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import socket
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from prefect.client.schemas.objects import WorkerStatus
from prefect.client.schemas.schedules import CronSchedule
from prefect.workers.process import ProcessWorker
from rich.console import Console

from components.errors import EvenkeelError, InputError
from flows.prefect_runtime.environment import prefect_environment
from flows.prefect_runtime.server import ZOMBIE, ServerUnavailable
from flows.serving import options as environments
from flows.serving import serve
from flows.serving.automations import MESSAGES
from flows.serving.options import Options, check_free, choose
from flows.serving.register import FILE, Entry, ScheduleEntry, make_pool, read_entries, remove_others, schedule
from flows.serving.serve import reschedule
from flows.serving.service import (
    LONGEST_PAUSE,
    MAX_EXITS,
    ProcessIdentity,
    Service,
    SupervisedProcess,
    exclusive,
    served,
    service_file,
    write_service,
)
from tests.code_graph import ROOT

DEPLOYED = ["post-training", "nightly", "promote", "audit-verifier", "audit-run", "reproduce", "janitor"]


def place(**changes: Any) -> Service:
    url = "http://127.0.0.1:4200"
    urls = {"api_url": f"{url}/api", "ui_url": url, "pages_url": url}
    return Service(**{"server": ProcessIdentity.of(os.getpid()), **urls, **changes})


def test_other_commands_use_the_server_that_runs_or_that_the_caller_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "PREFECT_API_URL" not in prefect_environment(tmp_path, quiet=True)
    write_service(tmp_path, place())
    assert prefect_environment(tmp_path, quiet=True)["PREFECT_API_URL"] == "http://127.0.0.1:4200/api"
    monkeypatch.setenv("PREFECT_API_URL", "http://elsewhere/api")
    assert "PREFECT_API_URL" not in prefect_environment(tmp_path, quiet=True)


def test_what_a_dead_serve_left_is_ignored(tmp_path: Path) -> None:
    me = ProcessIdentity.of(os.getpid())
    before = ProcessIdentity(pid=me.pid, created=me.created - 60)  # the number was used before
    write_service(tmp_path, place(server=before))
    assert served(tmp_path) is None
    service_file(tmp_path).write_text("{", encoding="utf-8")
    assert served(tmp_path) is None


def test_a_project_is_served_once(tmp_path: Path) -> None:
    with exclusive(tmp_path):
        write_service(tmp_path, place())
        with pytest.raises(InputError, match=f"by process {os.getpid()} at http://127.0.0.1:4200"), exclusive(tmp_path):
            pass
    with exclusive(tmp_path):
        pass


def test_a_taken_port_is_named_with_the_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} cannot be used") as refused:
            check_free(port)
    assert "--port" in str(refused.value)


def test_a_password_does_not_belong_on_a_command_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a password on the command line") as refused:
        choose(tmp_path, 0, "postgresql+asyncpg://me:hidden@host/db", "")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("database", "notify"),
    [
        ("postgresql://me@host/db", ""),
        ("", "hooks.example/x"),
        ("", "file:///x"),
        ("", "http://[x"),
        ("postgresql+asyncpg://u@[h/db", ""),
    ],
)
def test_urls_that_cannot_work_are_refused(tmp_path: Path, database: str, notify: str) -> None:
    with pytest.raises(InputError):
        choose(tmp_path, 0, database, notify)


def test_secrets_reach_only_whom_they_concern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_SERVER_DATABASE_CONNECTION_URL", "postgresql+asyncpg://me:one@host/db")
    monkeypatch.setenv("EVENKEEL_NOTIFY_URL", "https://hooks.example/two")
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "admin:three")
    options = choose(tmp_path, 0, "", "")
    assert not any(secret in repr(options) for secret in ("one@", "two", "three"))
    inherited = dict(os.environ)

    secrets = {"database": ":one@", "webhook": "/two", "auth": ":three"}

    def knows(environment: dict[str, str]) -> set[str]:
        text = json.dumps(inherited | environment)
        return {name for name, secret in secrets.items() if secret in text}

    assert knows(environments.server_environment(options)) == {"database", "auth"}
    assert knows(environments.registrar_environment(options)) == {"webhook", "auth"}
    assert knows(environments.worker_environment(options, "http://pages")) == {"auth"}


def test_a_process_that_dies_again_and_again_is_given_up(tmp_path: Path) -> None:
    part = SupervisedProcess("server", ["false"], {}, tmp_path / "log", tmp_path, 0.0)
    part.started = float("inf")  # so that it never lived long
    pauses = [part.record_exit() for _ in range(MAX_EXITS)]
    assert pauses[0] == 0
    assert pauses == sorted(pauses)
    assert max(pauses) <= LONGEST_PAUSE
    assert part.gave_up


class FakeServer:
    """Holds flow runs; records the states that they are given."""

    def __init__(self, *runs: dict[str, Any]) -> None:
        self._runs, self.changed, self.workers = runs, {}, [{"name": "me", "status": "ONLINE"}]

    def post(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        assert path.endswith("/workers/filter")
        return self.workers

    def flow_runs(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        types = wanted["flow_runs"]["state"]["type"]["any_"]
        return [run for run in self._runs if run["state_type"] in types]

    def set_state(self, run: str, state: dict[str, str], *, force: bool) -> None:
        assert force
        self.changed[run] = (state["type"], state["name"])


def run(id: str, type: str, *, worker: str | None = "me", message: str = "", age: int = 0) -> dict[str, Any]:
    at = datetime.now(UTC) - timedelta(seconds=age)
    state = {"message": message, "timestamp": at.isoformat()}
    labels = {"prefect.worker.name": worker} if worker else {}
    return {"id": id, "name": id, "state_type": type, "state": state, "labels": labels}


def test_runs_that_lost_their_process_are_given_back() -> None:
    server = FakeServer(
        run("running", "RUNNING"),
        run("pending", "PENDING", worker=None),
        run("cancelling", "CANCELLING"),
        run("elsewhere", "RUNNING", worker="another"),
        run("crashed", "CRASHED", message="Process exited with status code: 1."),
        run("zombie", "CRASHED", message=f"{ZOMBIE} for 120 seconds."),
    )
    returned = reschedule(server, "why", "me")  # type: ignore[arg-type]
    assert returned == ["running", "pending"]
    assert server.changed == {
        "running": ("SCHEDULED", "AwaitingRetry"),
        "pending": ("SCHEDULED", "AwaitingRetry"),
        "cancelling": ("CANCELLED", "Cancelled"),
    }


def test_a_run_without_a_worker_is_left_alone_while_another_worker_may_take_it() -> None:
    server = FakeServer(run("pending", "PENDING", worker=None), run("running", "RUNNING"))
    server.workers += [{"name": "another", "status": "ONLINE"}]
    assert reschedule(server, "why", "me") == ["running"]  # type: ignore[arg-type]


class FakeClient:
    """A server whose pool was made for a project, and has a worker or not."""

    def __init__(self, project: Path, worker: str) -> None:
        template = ProcessWorker.get_default_base_job_template()
        template["variables"]["properties"]["working_dir"]["default"] = str(project)
        self._template, self._worker, self.updated = template, worker, False

    def read_work_pool(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(base_job_template=self._template)

    def read_workers_for_work_pool(self, name: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(status=WorkerStatus(self._worker))]

    def update_work_pool(self, *_: Any) -> None:
        self.updated = True


@pytest.mark.parametrize(
    ("before", "worker", "taken"),
    [("there", "OFFLINE", False), ("gone", "ONLINE", False), ("mine", "ONLINE", True), ("gone", "OFFLINE", True)],
)
def test_another_projects_pool_is_not_taken_over_but_that_of_a_project_that_was_moved(
    tmp_path: Path, before: str, worker: str, taken: bool
) -> None:
    (tmp_path / "there").mkdir()
    client = FakeClient(tmp_path / before, worker)
    refused = pytest.raises(InputError, match=f"another project: {tmp_path / before}")
    with nullcontext() if taken else refused:
        make_pool(client, tmp_path / "mine")  # type: ignore[arg-type]
    assert client.updated == taken


def test_after_a_long_pause_runs_that_the_server_took_for_dead_are_given_back_too() -> None:
    server = FakeServer(
        run("just now", "CRASHED", message=f"{ZOMBIE} for 120 seconds."),
        run("last week", "CRASHED", message=f"{ZOMBIE} for 120 seconds.", age=3600),
        run("crashed", "CRASHED", message="Process exited with status code: 1."),
    )
    since = datetime.now(UTC) - timedelta(seconds=60)
    assert reschedule(server, "why", "me", since) == ["just now"]  # type: ignore[arg-type]


class Parts:
    """A `Serving` whose server and worker are fakes; ``starts`` says of each start whether the part lives then."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said = io.StringIO()
        self.serving = serve.Serving(Options(project, 4200, "", "", ""), Console(file=self.said))
        self.starts: list[bool] = []
        self.exits: list[str] = []
        self.parts = {name: self._part(name) for name in ("server", "worker")}
        monkeypatch.setattr(self.serving, "_parts", self.parts)
        monkeypatch.setattr(self.serving, "_run_part", self._start)
        monkeypatch.setattr(self.serving, "_write_service", lambda url: None)
        monkeypatch.setattr(self.serving._prefect, "ready", lambda: True)

    def _part(self, name: str) -> SimpleNamespace:
        part = SimpleNamespace(alive=True, ending=str, gave_up=False, child=SimpleNamespace(stop=lambda: None))
        part.record_exit = lambda: self.exits.append(name) or 0.0
        return part

    def _start(self, name: str, *_: object) -> None:
        self.parts[name].alive = self.starts.pop(0) if self.starts else True

    def look(self, *killed: str) -> None:
        for name in killed:
            self.parts[name].alive = False
        self.serving._supervise("http://127.0.0.1")


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    return Parts(tmp_path, monkeypatch)


def test_runs_that_a_restarted_server_took_for_dead_are_given_back_with_the_worker(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    since: list[datetime | None] = []
    monkeypatch.setattr(serve, "reschedule", lambda server, why, worker, crashed: since.append(crashed) or [])
    parts.look("server", "worker")
    monkeypatch.setattr(serve, "CATCHING_UP", timedelta(0))
    parts.look("worker")
    assert [at is not None for at in since] == [True, False]


def test_a_server_that_dies_once_more_while_it_is_started_again_is_started_again(parts: Parts) -> None:
    parts.starts = [False, True]
    parts.look("server")
    assert not parts.parts["server"].alive
    parts.look()
    assert parts.parts["server"].alive
    assert parts.exits == ["server", "server"]
    assert parts.said.getvalue().count("server is back") == 1


def test_a_server_that_is_busy_when_the_worker_is_started_again_ends_nothing(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = ServerUnavailable("does not answer (ReadTimeout)", where="here")
    monkeypatch.setattr(serve, "reschedule", Mock(side_effect=[busy, ["continued"]]))
    monkeypatch.setattr(serve, "BUSY", 0.0)
    parts.look("worker")
    assert not parts.parts["worker"].alive
    parts.look()
    assert parts.parts["worker"].alive
    assert "not started yet" in parts.said.getvalue() and "continued" in parts.said.getvalue()


def kinds(base: type[EvenkeelError]) -> set[type[EvenkeelError]]:
    return {base}.union(*(kinds(kind) for kind in base.__subclasses__()))


def test_a_failed_run_is_notified_whatever_its_failed_state_is_called() -> None:
    for module in ("post_training", "nightly", "reproduce", "promote", "audit_run", "audit_verifier", "janitor"):
        importlib.import_module(f"flows.{module}")
    names = {getattr(kind, "state_name", "Failed") for kind in kinds(EvenkeelError)}
    assert names >= {"Failed", "BudgetSpent"}
    assert MESSAGES["failed"].events >= {f"prefect.flow-run.{name}" for name in names}


def test_all_flows_are_deployed(tmp_path: Path) -> None:
    entries = {entry.name: entry for entry in read_entries(ROOT)}
    assert list(entries) == DEPLOYED
    assert entries["nightly"].concurrency_limit is not None
    assert entries["nightly"].concurrency_limit.collision_strategy == "CANCEL_NEW"
    assert entries["promote"].triggers[0].expect == {"checkpoint.candidate"}


@pytest.mark.parametrize("entrypoint", ["flows.nowhere.flow", "flows.nightly.nothing", "flows.host.git.git", "nothing"])
def test_an_entrypoint_that_leads_to_no_flow_is_named(entrypoint: str) -> None:
    entry = Entry.model_validate({"name": "x", "entrypoint": entrypoint, "work_pool": {"name": "p"}})
    with pytest.raises(InputError, match=entrypoint):
        entry.load()


DEEP = pytest.param("[" * 10**5, id="deep")
"""The reader in C ends the process on it."""


@pytest.mark.parametrize("text", ["", "deployments: 3", "deployments:\n  - {name: x}", "[", "deployments: [3]", DEEP])
def test_a_file_of_deployments_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=FILE):
        read_entries(tmp_path)


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("schedules.0.cron", {"schedules": [{"slug": "s", "cron": "61 2 * * *", "timezone": "Etc/UTC"}]}),
        ("schedules.0.timezone", {"schedules": [{"slug": "s", "cron": "0 2 * * *", "timezone": "Europe/Berlinn"}]}),
        ("concurrency_limit.collision_strategy", {"concurrency_limit": {"limit": 1, "collision_strategy": "OLD"}}),
        ("triggers.0", {"triggers": [{"expect": 3}]}),
    ],
)
def test_a_typing_error_in_the_file_is_named_before_anything_is_deployed(
    tmp_path: Path, key: str, change: dict[str, Any]
) -> None:
    entry = {"name": "night", "entrypoint": "flows.nightly.nightly", "work_pool": {"name": "p"}} | change
    (tmp_path / FILE).write_text(yaml.safe_dump({"deployments": [entry]}), encoding="utf-8")
    with pytest.raises(InputError, match=rf"^deployments\.night\.{re.escape(key)}") as refused:
        read_entries(tmp_path)
    assert "\n" not in refused.value.what


class Deployed:
    """A server with one deployment; remembers what is asked of it."""

    def __init__(self, *schedules: SimpleNamespace) -> None:
        self.said: list[Any] = []
        self.schedules = list(schedules)

    def read_deployment_by_name(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(id=name, schedules=self.schedules)

    def read_deployments(self, deployment_filter: Any, work_pool_filter: Any) -> list[SimpleNamespace]:
        self.read = (deployment_filter.tags.all_, work_pool_filter.name.any_)
        return [SimpleNamespace(id=f"{name} id", name=name, flow_id="a flow") for name in ("there", "gone")]

    def read_flow(self, id: str) -> SimpleNamespace:
        return SimpleNamespace(name="flow")

    def __getattr__(self, called: str) -> Any:
        return lambda *arguments, **named: self.said.append((called, *arguments, *named.values()))


def test_schedules_follow_the_file_and_those_of_the_ui_stay() -> None:
    cron = CronSchedule(cron="0 2 * * *", timezone="Etc/UTC")
    slugs = ("same", "changed", "renamed", None)
    server = Deployed(*(SimpleNamespace(id=f"{one} id", slug=one, schedule=cron, parameters={}) for one in slugs))
    same = {"cron": "0 2 * * *", "timezone": "Etc/UTC"}
    wanted = [{"slug": "same"}, {"slug": "changed", "parameters": {"keep_days": 3}}]
    schedule(server, "d", [ScheduleEntry.model_validate(same | entry) for entry in wanted])  # type: ignore[arg-type]
    assert server.said == [
        ("update_deployment_schedule", "d", "changed id", cron, {"keep_days": 3}),
        ("delete_deployment_schedule", "d", "renamed id"),
    ]


def test_a_deployment_that_left_the_file_goes_with_its_triggers_and_other_pools_are_left_alone() -> None:
    server = Deployed()
    assert list(remove_others(server, {"flow/there"}, "a pool")) == ["flow/gone"]  # type: ignore[arg-type]
    assert server.read == (["evenkeel"], ["a pool"])
    assert server.said == [
        ("delete_resource_owned_automations", "prefect.deployment.gone id"),
        ("delete_deployment", "gone id"),
    ]


def values(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / f"k8s/prefect/{name}.yaml").read_text(encoding="utf-8"))
    return found


def test_the_server_in_a_cluster_is_private_and_asks_its_database_whether_it_is_ready() -> None:
    server = values("server")["server"]
    assert server["readinessProbe"]["path"].endswith("/ready")
    assert server["basicAuth"] == {"enabled": True, "existingSecret": "prefect-auth"}
    assert {"name": "PREFECT_SERVER_ANALYTICS_ENABLED", "value": "false"} in server["env"]
    assert values("server")["externalDatabase"]["existingSecret"]
    assert not values("server")["postgresql"]["enabled"]


@pytest.mark.parametrize("name", ["server", "worker"])
def test_pods_in_a_cluster_have_no_privileges_and_bounds(name: str) -> None:
    pod = values(name)[name]
    assert pod["podSecurityContext"]["runAsNonRoot"]
    assert pod["podSecurityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["containerSecurityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not pod["containerSecurityContext"]["allowPrivilegeEscalation"]
    assert pod["resources"]["requests"].keys() == pod["resources"]["limits"].keys() == {"cpu", "memory"}
    version = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("prefect=="))
    image = values(name)["global"]["prefect"]["image"] if name == "server" else pod["image"]
    assert image["prefectTag"].startswith(version.removeprefix("prefect=="))
