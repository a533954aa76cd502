"""A run's files in a bucket: whole or not there, verified on arrival, and safe from a pod that is not quite dead."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from factories import settings, workspace

from components.code_digest import code_digest
from components.config import dump
from components.config.registry import TransferSettings
from components.errors import InputError, PeerLost
from components.files import append_line, manifest, read_jsonl, write_json, write_text
from components.layout import Layout
from components.pods import code as code_module
from components.pods import fetch as fetch_module
from components.pods import keeper as keeper_module
from components.pods import parcels
from components.pods.code import COPY, copy_installed
from components.pods.depot import Depot, forget
from components.pods.keeper import Keeper
from components.pods.state import State, Writer
from components.pods.workspace import put_input, take_output
from components.registry.base import Unavailable
from components.registry.s3 import uploads
from components.resume import ResumeState, run_steps
from components.status import StageStatus, write_status
from tests.code_graph import ROOT
from tests.s3_faults import Fault, FaultyProxy
from tests.s3_server import BUCKET, PATIENCE, S3Server

SHARD = "learner/shard-00001-of-00001.safetensors"


@pytest.fixture
def run() -> str:
    return uuid4().hex


@pytest.fixture
def depot(s3_server: S3Server, run: str) -> Depot:
    return Depot(f"s3://{BUCKET}/runs/{run}", s3_server.url, transfer=PATIENCE)


@pytest.fixture
def names(s3_server: S3Server, run: str) -> Callable[[str], list[str]]:
    """What lies in the bucket below a part of the run."""

    def found(part: str) -> list[str]:
        prefix = f"runs/{run}/{part}/"
        pages = s3_server.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        return sorted(entry["Key"].removeprefix(prefix) for entry in pages)

    return found


def checkpoint(folder: Path, step: int, saved: list[int]) -> None:
    """What a run leaves after so many steps, and a little more, since it goes on."""
    write_json(folder / "identity.json", {"settings": "a"})
    while (rows := _rows(folder / "records.jsonl")) < step + 1:
        append_line(folder / "records.jsonl", {"step": rows})
        append_line(folder / "ledger.jsonl", {"entry": rows})
    state = {"saved": [{"step": one} for one in saved], "entries": step}
    new = folder / f"step-{step:06d}"
    write_json(new / "state.json", state)
    write_text(new / SHARD, f"weights of step {step}")
    write_text(new / "reference", "the same in all")
    for old in folder.glob("step-*"):
        if int(old.name[5:]) not in (*saved, step):
            shutil.rmtree(old)


def _rows(path: Path) -> int:
    return len(list(read_jsonl(path))) if path.exists() else 0


def state(depot: Depot, folder: Path, who: str = "pod") -> State:
    bucket = depot.bucket("state")
    return State(bucket, folder, Writer(bucket, who))


def put(depot: Depot, folder: Path, *steps: int) -> State:
    """That of a pod that has put a checkpoint after each of these steps."""
    found = state(depot, folder)
    for step in steps:
        checkpoint(folder, step, saved=[step])
        assert found.put()
    return found


# State


def test_the_next_pod_has_all_checkpoints_of_the_newest_state_and_the_logs_up_to_it(depot, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    first = state(depot, one)
    assert first.restore() is None
    checkpoint(one, 2, saved=[0])
    checkpoint(one, 4, saved=[2, 4])
    assert first.put()
    assert not first.put()
    assert state(depot, two).restore() == 4
    assert sorted(path.name for path in two.glob("step-*")) == ["step-000002", "step-000004"]
    assert manifest(two / "step-000004") == manifest(one / "step-000004")
    assert list(read_jsonl(two / "records.jsonl")) == [{"step": step} for step in range(4)]
    assert list(read_jsonl(two / "ledger.jsonl")) == [{"entry": entry} for entry in range(4)]
    assert (two / "identity.json").read_bytes() == (one / "identity.json").read_bytes()


def test_a_checkpoint_that_was_made_to_leave_goes_with_those_that_are_kept(depot, tmp_path):
    first = state(depot, tmp_path / "one")
    checkpoint(tmp_path / "one", 2, saved=[2])
    checkpoint(tmp_path / "one", 3, saved=[2])
    first.put()
    assert state(depot, tmp_path / "two").restore() == 3
    assert sorted(path.name for path in (tmp_path / "two").glob("step-*")) == ["step-000002", "step-000003"]


def test_what_no_state_needs_any_more_is_removed(depot, tmp_path, names):
    put(depot, tmp_path / "one", *range(1, 6))
    found = names("state")
    assert [name for name in found if name.startswith("manifests")] == [
        "manifests/000001-00000004.json",
        "manifests/000001-00000005.json",
    ]
    kept = [parcels.read(depot.bucket("state"), name) for name in ("000001-00000004.json", "000001-00000005.json")]
    blobs = {name.removeprefix("blobs/") for name in found if name.startswith("blobs/")}
    assert blobs == kept[0].blobs | kept[1].blobs


def test_a_state_that_was_half_put_is_not_taken(depot, tmp_path, monkeypatch):
    folder = tmp_path / "one"
    first = put(depot, folder, 1)
    checkpoint(folder, 2, saved=[2])
    original, calls = uploads.put_blob, []

    def dies(*args: object, **more: object) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        original(*args, **more)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(uploads, "put_blob", dies)
        first.put()
    assert state(depot, tmp_path / "two").restore() == 1


def test_a_damaged_state_is_said_and_the_one_before_is_taken(depot, tmp_path, capsys, s3_server, run):
    folder = tmp_path / "one"
    put(depot, folder, 1, 2)
    damaged = manifest(folder)[f"step-000002/{SHARD}"]
    s3_server.client.put_object(Bucket=BUCKET, Key=f"runs/{run}/state/blobs/{damaged}", Body=b"weights of step X")
    assert state(depot, tmp_path / "two").restore() == 1
    assert "000001-00000002.json is of no use" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "two").glob("step-*")] == ["step-000001"]
    assert not list(tmp_path.glob(".two*"))


@pytest.mark.parametrize(("method", "path"), [("GET", "state/manifests/"), ("HEAD", "state/blobs/")])
def test_a_run_does_not_start_over_where_its_state_is_not_readable(s3_server, run, tmp_path, method, path, names):
    with FaultyProxy(s3_server.port).running() as proxy:
        depot = Depot(f"s3://{BUCKET}/runs/{run}", proxy.url, transfer=PATIENCE)
        put(depot, tmp_path / "one", 1)
        before = names("state")
        second = state(depot, tmp_path / "two")
        proxy.faults.append(Fault("telling", method, path, times=99))
        with pytest.raises(InputError, match="none of the 1 states of this run can be used") as caught:
            second.restore()
        assert "(status 403)" in str(caught.value) and "to have it start over" in str(caught.value)
        assert set(before) < set(names("state"))


def test_other_objects_next_to_the_states_are_ignored(depot, tmp_path, s3_server, run):
    for key in ("manifests/", "manifests/readme.txt", "writers/", "writers/readme.txt"):
        s3_server.client.put_object(Bucket=BUCKET, Key=f"runs/{run}/state/{key}", Body=b"")
    put(depot, tmp_path / "one", 1, 2, 3)
    second = state(depot, tmp_path / "two")
    assert (second.restore(), second._writer.number) == (3, 2)


def test_a_damaged_manifest_does_not_keep_others_from_being_put(depot, tmp_path, s3_server, run, capsys, names):
    folder = tmp_path / "one"
    first = put(depot, folder, 1)
    s3_server.client.put_object(Bucket=BUCKET, Key=f"runs/{run}/state/manifests/000001-00000001.json", Body=b"{")
    for step in (2, 3):
        checkpoint(folder, step, saved=[step])
        assert first.put()
    assert "000001-00000001.json goes" in capsys.readouterr().err
    assert "manifests/000001-00000001.json" not in names("state")


def test_a_manifest_that_would_fill_the_memory_is_none(depot, s3_server, run, monkeypatch):
    monkeypatch.setattr("components.registry.s3.bucket.LARGEST", 100)
    s3_server.client.put_object(Bucket=BUCKET, Key=f"runs/{run}/input/manifests/input.json", Body=b" " * 101)
    with pytest.raises(InputError, match="too large for a record"):
        parcels.read(depot.bucket("input"), fetch_module.INPUT)


def test_a_stage_of_plain_steps_has_its_newest_checkpoint_and_its_log(depot, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"

    class Counting:
        def step(self, step: int) -> dict[str, float]:
            return {"loss": float(step)}

        def save(self, directory: Path) -> None:
            write_text(directory / "weights", directory.name)

        def load(self, directory: Path) -> None: ...

    run_steps(Counting(), ResumeState(one, {"settings": "a"}), 7, 2, lambda _: None)
    append_line(one / "log.jsonl", {"step": 7})  # of a step that it has begun
    assert state(depot, one).put()
    assert state(depot, two).restore() == 7
    assert [path.name for path in two.glob("step-*")] == ["step-000007"]
    resumed = run_steps(Counting(), ResumeState(two, {"settings": "a"}), 8, 2, lambda _: None)
    assert [row["step"] for row in resumed] == list(range(8))


def test_a_folder_that_has_a_state_keeps_it(depot, tmp_path):
    folder = tmp_path / "one"
    checkpoint(folder, 1, saved=[1])
    state(depot, folder).put()
    checkpoint(folder, 2, saved=[2])
    assert state(depot, folder).restore() is None
    assert (folder / "step-000002").exists()


def test_a_pod_that_has_been_succeeded_puts_and_removes_nothing_more(depot, tmp_path, names):
    old, new = tmp_path / "old", tmp_path / "new"
    first = put(depot, old, 1)
    second = state(depot, new, "its successor")
    assert second.restore() == 1
    before = names("state")
    checkpoint(old, 9, saved=[9])
    with pytest.raises(PeerLost, match="taken this run over"):
        first.put()
    assert names("state") == before
    checkpoint(new, 2, saved=[1, 2])
    second.put()
    assert state(depot, tmp_path / "third").restore() == 2


def test_what_an_old_pod_puts_at_the_last_moment_counts_as_older(depot, tmp_path, monkeypatch):
    old, new = tmp_path / "old", tmp_path / "new"
    first = put(depot, old, 1)
    second = state(depot, new)
    second.restore()
    look, seen = first._writer.check, []

    def once() -> None:
        if seen:
            look()
        seen.append("a moment before its successor began")

    for step in (9, 11):
        monkeypatch.setattr(first._writer, "check", once)
        checkpoint(old, step, saved=[step])
        with pytest.raises(PeerLost):  # when it wants to remove something
            first.put()
        checkpoint(new, step - 7, saved=[1, step - 7])
        second.put()
        seen.clear()
    with pytest.raises(PeerLost):
        monkeypatch.setattr(first._writer, "check", once)
        checkpoint(old, 13, saved=[13])
        first.put()
    assert state(depot, tmp_path / "third").restore() == 4


def test_a_file_that_an_old_pod_took_away_is_sent_again_with_the_next_checkpoint(depot, tmp_path, s3_server, run):
    folder = tmp_path / "one"
    first = put(depot, folder, 1)
    shared = manifest(folder)["step-000001/reference"]
    s3_server.client.delete_object(Bucket=BUCKET, Key=f"runs/{run}/state/blobs/{shared}")
    checkpoint(folder, 2, saved=[1, 2])
    first.put()
    assert state(depot, tmp_path / "two").restore() == 2


def test_every_pod_is_a_writer_of_its_own(depot):
    assert [Writer(depot.bucket("state"), "pod").number for _ in range(3)] == [1, 2, 3]


def test_a_checkpoint_that_goes_while_it_is_read_gives_way_to_the_newer_one(depot, tmp_path, monkeypatch):
    folder = tmp_path / "one"
    first = state(depot, folder)
    checkpoint(folder, 1, saved=[1])
    original, calls = parcels.digest_file, []

    def overtaken(path: Path, part_size: int) -> object:
        if not calls:
            calls.append(1)
            checkpoint(folder, 2, saved=[2])
        return original(path, part_size)

    monkeypatch.setattr(parcels, "digest_file", overtaken)
    assert first.put()
    assert state(depot, tmp_path / "two").restore() == 2


def test_a_checkpoint_of_a_run_that_started_over_is_another_one(depot, tmp_path):
    folder = tmp_path / "one"
    first = put(depot, folder, 1)
    shutil.rmtree(folder)
    (tmp_path / "inode").touch()  # the folder's number is taken
    checkpoint(folder, 1, saved=[1])
    write_text(folder / "step-000001" / SHARD, "other weights")
    assert first.put()
    state(depot, tmp_path / "two").restore()
    assert (tmp_path / "two" / "step-000001" / SHARD).read_text() == "other weights"


def test_a_run_that_is_forgotten_leaves_nothing_and_no_other_run_is_touched(depot, tmp_path, names):
    other = Depot(f"{depot.uri}-2", depot.endpoint_url, transfer=PATIENCE)
    for one in (depot, other):
        folder = tmp_path / one.uri[-3:]
        put(one, folder, 1)
    assert forget(depot) > 4
    assert names("state") == []
    assert state(other, tmp_path / "two").restore() == 1


# Addresses


@pytest.mark.parametrize("uri", ["/tmp/x", "s3://bucket", "s3://Bad_Bucket/x", "s3://bucket/../x", "https://a/b"])
def test_an_address_that_is_none_says_how_to_write_one(uri):
    with pytest.raises(InputError, match="not an address of files") as caught:
        Depot(uri).bucket("state")
    assert "s3://bucket/prefix/run" in str(caught.value)


def test_a_password_in_the_servers_address_is_not_repeated():
    depot = Depot.of("s3://bucket/a/b", {"AWS_ENDPOINT_URL": "http://me:secret@host:1"})
    with pytest.raises(InputError) as caught:
        depot.bucket("state")
    assert "secret" not in str(caught.value)


# Input and output


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small workspace, ready to train, which each test takes a copy of."""
    root = tmp_path_factory.mktemp("ready") / "workspace"
    layout = workspace(root)
    for extra in (layout.consistency, layout.clusters_metrics):
        write_text(extra, "null\n")
    (root / "components" / "__pycache__").mkdir(parents=True)
    (root / "components" / "__pycache__" / "a.pyc").write_text("x")
    write_text(root / "components" / "a.py", "print(1)\n")
    write_text(root / "configs" / "demo.yaml", "name: x\n")
    shutil.copy(ROOT / "dvc.yaml", root)
    shutil.copy(ROOT / "constraints.txt", root)
    write_text(root / "settings.yaml", dump(settings()))
    return root


@pytest.fixture
def submitted(ready: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ready, tmp_path / "workspace"))


def submit(root: Path, depot: Depot, **sections: object) -> None:
    put_input(root, depot, "train", settings(**sections), Path("settings.yaml"))


def test_a_pod_is_given_what_the_stage_needs_and_nothing_else(depot, submitted, tmp_path, monkeypatch):
    write_text(submitted / ".env", "PASSWORD=1")
    write_text(submitted / "out" / "evaluation.json", "{}")
    submit(submitted, depot)
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(depot.endpoint_url))
    folder = tmp_path / "pod"
    for _ in range(2):  # repeated it does no harm
        assert fetch_module.main([depot.uri, str(folder)]) == 0
    found = manifest(folder)
    assert {name: manifest(submitted)[name] for name in found} == found
    assert {"components/a.py", "configs/demo.yaml", "constraints.txt", "settings.yaml"} <= found.keys()
    assert {"out/clusters.jsonl", "out/sft/checkpoint/model.safetensors", "out/data/train.jsonl"} <= found.keys()
    assert not {".env", "out/evaluation.json", "components/__pycache__/a.pyc"} & found.keys()


def test_a_pod_of_a_project_without_code_is_given_the_installed_package(depot, submitted, tmp_path, monkeypatch):
    shutil.rmtree(submitted / "components")
    installed = tmp_path / "installed"
    package = installed / "components"
    shutil.copytree(code_module.PACKAGE / "pods", package / "pods")
    shutil.copytree(submitted / "configs", installed / "configs")
    shutil.copy(submitted / "dvc.yaml", installed)
    monkeypatch.setattr(code_module, "PACKAGE", package)
    monkeypatch.setattr(code_module, "SHIPPED", installed)
    copy_installed(submitted)
    submit(submitted, depot)
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(depot.endpoint_url))
    assert fetch_module.main([depot.uri, str(tmp_path / "pod")]) == 0
    arrived = tmp_path / "pod" / COPY
    assert code_digest(arrived / "components") == code_digest(package)
    assert {"configs/demo.yaml", "dvc.yaml"} <= manifest(arrived).keys()


def test_what_the_settings_name_goes_along_if_a_pod_could_find_it(depot, submitted, tmp_path):
    def probed(path: str) -> dict[str, object]:
        return {"canaries": {"mine": {"path": path, "format": "qa"}}}

    write_text(submitted / "probes.jsonl", "{}\n")
    submit(submitted, depot, health=probed("probes.jsonl"), dpo={"pairs": {"path": "of-another-stage.jsonl"}})
    assert "probes.jsonl" in parcels.read(depot.bucket("input"), fetch_module.INPUT).files
    write_text(tmp_path / "probes.jsonl", "{}\n")
    for elsewhere in (str(tmp_path / "probes.jsonl"), "../probes.jsonl"):
        with pytest.raises(InputError, match="outside of the run's workspace"):
            submit(submitted, depot, health=probed(elsewhere))


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda root: (root / "out" / "triage.json").unlink(), "the stage needs it"),
        (lambda root: (root / "components" / "link.py").symlink_to("/etc/passwd"), "symbolic link"),
    ],
)
def test_a_workspace_that_lacks_something_is_not_put(depot, submitted, spoil, what, names):
    spoil(submitted)
    with pytest.raises(InputError, match=what):
        submit(submitted, depot)
    assert names("input") == []


def test_input_that_is_not_there_is_refused_and_a_server_that_is_not_there_is_lost(depot, tmp_path, monkeypatch):
    monkeypatch.setenv("EVENKEEL_LINGER", "0")
    monkeypatch.setenv("EVENKEEL_TERMINATION_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(depot.endpoint_url))
    assert fetch_module.main([depot.uri, str(tmp_path / "pod")]) == 2
    assert "no such files" in (tmp_path / "log").read_text()
    monkeypatch.setattr(fetch_module.parcels, "read", _silent)
    assert fetch_module.main([depot.uri, str(tmp_path / "pod")]) == 75


def _silent(*_: object) -> None:
    raise Unavailable("no answer")


def test_a_damaged_input_is_an_error(depot, submitted, tmp_path, monkeypatch, s3_server, run, capsys):
    submit(submitted, depot)
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(depot.endpoint_url))
    blob = manifest(submitted)["constraints.txt"]
    s3_server.client.put_object(Bucket=BUCKET, Key=f"runs/{run}/input/blobs/{blob}", Body=b"other")
    assert fetch_module.main([depot.uri, str(tmp_path / "pod")]) == 2
    assert not (tmp_path / "pod" / "constraints.txt").exists()


def answered(root: Path, depot: Depot, text: str, code: int = 0) -> StageStatus:
    """The end of a stage in its pod."""
    layout = Layout(root)
    write_text(layout.train / "records.jsonl", text)
    write_text(layout.train_checkpoint / "model.safetensors", "weights")
    write_json(layout.train_metrics, {"said": text})
    write_text(layout.curves, "step\n")
    write_status(layout, "train", StageStatus(code, "why" if code else ""))
    return Keeper(depot, layout, "train").finish(StageStatus(code, "why" if code else ""))


def test_output_comes_back_whole_in_the_place_of_what_was_there(depot, submitted, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(depot.endpoint_url))
    pod = tmp_path / "pod"
    shutil.copytree(submitted, pod)
    assert take_output(submitted, depot, "train") is None
    write_text(submitted / "out" / "train" / "stale", "of a run before")
    write_text(submitted / ".state" / "incoming" / "train" / "out" / "train" / "stale", "of a call that was killed")
    assert answered(pod, depot, "first") == StageStatus(0)
    assert answered(pod, depot, "second") == StageStatus(0)
    assert take_output(submitted, depot, "train") == StageStatus(0)
    assert manifest(submitted / "out" / "train") == manifest(pod / "out" / "train")
    assert json.loads((submitted / "out" / "train.json").read_text()) == {"said": "second"}
    assert (submitted / "out" / "train" / "records.jsonl").read_text() == "second"
    assert not (submitted / "out" / "train" / "stale").exists()
    assert not (submitted / ".state" / "incoming" / "train").exists()


def test_the_answer_to_a_submission_before_is_not_taken_for_that_of_the_next(depot, submitted, tmp_path, names):
    pod = tmp_path / "pod"
    shutil.copytree(submitted, pod)
    answered(pod, depot, "of the run before")
    submit(submitted, depot)
    assert take_output(submitted, depot, "train") is None
    assert names("output") == []


def test_a_refusal_comes_back_without_output(depot, submitted, tmp_path):
    pod = tmp_path / "pod"
    shutil.copytree(submitted, pod)
    assert answered(pod, depot, "half", code=3) == StageStatus(3, "why")
    assert take_output(submitted, depot, "train") == StageStatus(3, "why")
    assert not (submitted / "out" / "train").exists()


def test_output_with_a_file_that_is_none_of_the_stages_is_refused(depot, submitted, tmp_path):
    write_text(tmp_path / "x", "x")
    parcels.Sender(depot.bucket("output")).put("000001.json", {"components/a.py": tmp_path / "x"})
    with pytest.raises(InputError, match=r"not an output of stage train: 'components/a\.py'"):
        take_output(submitted, depot, "train")
    assert (submitted / "components" / "a.py").read_text() == "print(1)\n"


# The keeper


def test_a_stage_that_is_to_go_on_leaves_its_newest_checkpoint(depot, tmp_path):
    layout = Layout(tmp_path / "one")
    keeper = Keeper(depot, layout, "train")
    checkpoint(layout.state / "train", 3, saved=[3])
    assert keeper.finish(StageStatus(143, "stopped")) == StageStatus(143, "stopped")
    assert state(depot, tmp_path / "two").restore() == 3


def test_a_keeper_that_stumbles_goes_on_with_the_next_checkpoint(depot, tmp_path, monkeypatch, capsys):
    layout = Layout(tmp_path / "one")
    monkeypatch.setattr(keeper_module, "EVERY", 0.01)
    monkeypatch.setattr(keeper_module, "PAUSE", 0.01)
    keeper, put, stumbled = Keeper(depot, layout, "train"), State.put, list[int]()

    def once(self: State) -> bool:
        if not stumbled:
            stumbled.append(1)
            raise OSError(28, "No space left on device")
        return put(self)

    monkeypatch.setattr(State, "put", once)
    checkpoint(layout.state / "train", 3, saved=[3])
    with keeper:
        until = time.monotonic() + 60
        while not parcels.parcels(depot.bucket("state")) and time.monotonic() < until:
            time.sleep(0.01)
    assert state(depot, tmp_path / "two").restore() == 3
    assert "not safe yet: [Errno 28]" in capsys.readouterr().err


SHORT = TransferSettings(connect_timeout=1, read_timeout=1, attempts=2, deadline=2)


def test_a_bucket_that_is_away_when_the_stage_ends_is_waited_for(s3_server, run, tmp_path, monkeypatch):
    monkeypatch.setattr(keeper_module, "EVERY", 0.01)
    with FaultyProxy(s3_server.port).running() as proxy:
        depot = Depot(f"s3://{BUCKET}/runs/{run}", proxy.url, transfer=SHORT)
        layout = Layout(tmp_path)
        keeper = Keeper(depot, layout, "train")
        checkpoint(layout.state / "train", 3, saved=[3])
        proxy.faults.append(Fault("503", times=2 * SHORT.attempts))
        assert keeper.finish(StageStatus(143, "stopped")) == StageStatus(143, "stopped")
        assert parcels.parcels(depot.bucket("state"))


def test_what_cannot_be_stored_is_said(s3_server, run, tmp_path, monkeypatch):
    monkeypatch.setattr(keeper_module, "PATIENCE", 0.0)
    with FaultyProxy(s3_server.port).running() as proxy:
        depot = Depot(f"s3://{BUCKET}/runs/{run}", proxy.url, transfer=SHORT)
        layout = Layout(tmp_path)
        keeper = Keeper(depot, layout, "train")
        checkpoint(layout.state / "train", 3, saved=[3])
        proxy.faults.append(Fault("503", times=99))
        status = keeper.finish(StageStatus(143, "stopped"))
    assert status.exit_code == 143
    assert "stopped\nthe newest checkpoint could not be stored" in status.message
