"""Servers that the run starts: their command line, their port, and how often they may be started again."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import stat
import sys
import threading
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from components.config.rollout import RolloutSettings
from components.config.servers import SglangEngine, VllmEngine
from components.processes.living import lives
from components.processes.vllm_server import Adapter, command_line
from components.rollout.servers import local
from components.rollout.servers.client import ServerFault
from components.rollout.servers.local import Started

SCRIPT = """#!{python}
import http.server, json, os, sys
options = dict(zip(sys.argv, sys.argv[1:]))
{first}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({{"data": [{{"id": options["--served-model-name"]}}]}}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(options["--port"])), Handler).serve_forever()
"""
TAKEN = "if not os.path.exists('tried'): open('tried', 'w'); sys.exit('OSError: [Errno 98] Address already in use')"


def stand_in(folder: Path, first: str = "") -> Path:
    """A program that takes the command line of a server, and is up at once."""
    path = folder / "python"
    path.write_text(SCRIPT.format(python=sys.executable, first=first))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def origin(folder: Path, first: str = "", **options: object) -> Started:
    python = str(stand_in(folder, first))
    settings = VllmEngine.model_validate({"kind": "vllm", "processes": 1, "python": python, **options})
    return Started("rollout-0", settings, folder / "model", "float32", folder / "logs", None, None)


@contextlib.asynccontextmanager
async def opened(tested: Started) -> AsyncIterator[None]:
    client = await tested.open()
    try:
        yield
    finally:
        await client.aclose()
        await tested.close()


def test_a_server_is_up_when_it_serves_the_name_it_was_given_and_gone_when_it_is_closed(tmp_path):
    async def run() -> None:
        tested = origin(tmp_path)
        async with opened(tested):
            assert tested.child is not None
            pids = [process.pid for process in psutil.Process(tested.child.pid).children(recursive=True)]
            assert tested.alive() and pids
        assert not tested.alive() and not any(map(lives, pids))

    asyncio.run(run())


def test_a_start_on_a_port_that_was_taken_meanwhile_is_retried(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))

    async def run() -> None:
        tested = origin(tmp_path, TAKEN)
        async with opened(tested):
            assert (tmp_path / "tried").exists() and tested.alive()

    asyncio.run(run())


def test_a_port_on_which_another_process_refuses_is_given_up_for_another(tmp_path, monkeypatch):
    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

    refusing = http.server.HTTPServer(("127.0.0.1", 0), Refusing)
    ports = [refusing.server_port, local.free_port()]
    monkeypatch.setattr(local, "free_port", lambda: ports.pop(0))
    threading.Thread(target=refusing.serve_forever, daemon=True).start()

    async def run() -> None:
        tested = origin(tmp_path, "import time; time.sleep(1)")
        async with opened(tested):
            assert not ports and tested.alive()

    try:
        asyncio.run(run())
    finally:
        refusing.shutdown()
        refusing.server_close()


def test_a_server_that_ends_at_once_says_so_with_the_end_of_its_log(tmp_path):
    tested = origin(tmp_path, "sys.exit('no such model')")
    with pytest.raises(ServerFault, match=r"rollout-0 ended with exit code 1(?s:.*)no such model"):
        asyncio.run(tested.open())


def test_a_server_that_is_never_up_is_given_up(tmp_path):
    async def run() -> None:
        tested = origin(tmp_path, "import time; time.sleep(60)", start_timeout=0.5)
        try:
            with pytest.raises(ServerFault, match=r"not up after 0\.5 s"):
                await tested.open()
        finally:
            await tested.close()

    asyncio.run(run())


def test_a_process_may_be_replaced_as_often_as_the_settings_say(tmp_path):
    tested = origin(tmp_path, "sys.exit(1)", restarts=1)
    for _ in range(2):
        assert tested.may_open()
        with pytest.raises(ServerFault):
            asyncio.run(tested.open())
    assert not tested.may_open()


def test_a_server_takes_nothing_from_the_models_defaults_and_listens_to_this_machine_only():
    settings = VllmEngine(kind="vllm", processes=1, kv_cache_dtype="fp8_e5m2", max_num_seqs=8)
    command = command_line(
        Path("python"), settings, Path("model"), "bfloat16", host="127.0.0.1", port=8000, served="name", gpu=False
    )
    options = dict(pairwise(command))
    expected = {
        "--generation-config": "vllm",
        "--logprobs-mode": "processed_logprobs",
        "--host": "127.0.0.1",
        "--dtype": "bfloat16",
        "--kv-cache-dtype": "fp8_e5m2",
        "--max-num-seqs": "8",
    }
    assert {name: options[name] for name in expected} == expected
    assert "--max-model-len" not in command
    assert "--enable-sleep-mode" not in command


def test_a_server_that_shares_its_gpu_is_started_so_that_it_can_sleep():
    settings = VllmEngine.model_validate({"kind": "vllm", "processes": 1, "sleep": True})
    command = command_line("python", settings, Path("m"), "bfloat16", host="::", port=1, served="name", gpu=True)
    assert "--enable-sleep-mode" in command


@pytest.mark.parametrize(("rank", "room"), [(1, "1"), (6, "8"), (16, "16"), (17, "32")])
def test_a_server_with_an_adapter_has_room_for_its_rank(rank, room):
    settings = VllmEngine.model_validate({"kind": "vllm", "processes": 1, "transfer": "adapter"})
    adapter = Adapter("name", Path("m/adapter"), rank, ("q_proj", "v_proj"))
    command = command_line(
        "python", settings, Path("m"), "float32", host="::", port=1, served="base", gpu=False, adapter=adapter
    )
    options = dict(pairwise(command))
    assert (options["--max-lora-rank"], options["--lora-modules"]) == (room, "name=m/adapter")
    first = command.index("--lora-target-modules") + 1
    assert command[first : first + 2] == ["q_proj", "v_proj"]
    assert json.loads(options["--weight-transfer-config"]) == {"backend": "evenkeel_adapter"}


def started(processes: int = 2, **options: Any) -> dict[str, Any]:
    return {"kind": "vllm", "processes": processes, **options}


ONLY_WHERE_STARTED = {
    "python": "python",
    "max_num_seqs": 8,
    "cpu_cache_gib": 2,
    "gpu_memory": 0.5,
    "tensor_parallel": 2,
    "eager": False,
    "restarts": 0,
    "sleep": True,
}


class TestSettings:
    @pytest.mark.parametrize(
        ("engine", "said"),
        [
            ({"kind": "vllm"}, "either urls"),
            ({"kind": "vllm", "urls": ["http://a:1"], "processes": 1}, "either urls"),
            ({"kind": "vllm", "processes": 2, "devices": ["0"]}, "devices names 1, processes is 2"),
            ({"kind": "vllm", "urls": ["a:1"]}, "'a:1' is not the address of a server"),
            ({"kind": "sglang", "urls": ["http://a:1", "http://a:1/"]}, "are the same server"),
            (
                started(devices=["0,1", "2"], tensor_parallel=2),
                "devices '2'.*needs tensor_parallel .2. different ones.*such as '0,1'",
            ),
            (started(devices=["0", "1,2"]), "devices '1,2'.*needs tensor_parallel .1. .*such as '0'"),
            (started(devices=["0,0", "1,2"], tensor_parallel=2), "devices '0,0'.*different ones"),
            (started(devices=["0", ""]), "devices ''.*different ones"),
            (started(devices=["0", "0"]), "device 0 is named 2 times.*gpu_memory, 0.9.*lower gpu_memory to 0.5"),
            (started(3, devices=["0"] * 3), "lower gpu_memory to 0.33"),
            (started(max_model_len=40), r"max_new_tokens \(40\).*rollout.engine.max_model_len \(40\)"),
            (started(max_model_len=16), r"check.tokens \(16\).*max_model_len \(16\)"),
            ({"kind": "vllm", "urls": ["http://a:1"], "tensor_parallel": 2, "eager": False}, "tensor_parallel, eager"),
            *(
                ({"kind": "vllm", "urls": ["http://a:1"], name: value}, f"{name} .*servers that the run starts")
                for name, value in ONLY_WHERE_STARTED.items()
            ),
            ({"kind": "sglang"}, "Field required"),
            ({"kind": "other"}, "does not match any of the expected tags"),
        ],
    )
    def test_what_cannot_be_is_refused(self, engine, said):
        with pytest.raises(ValueError, match=said):
            RolloutSettings.model_validate({"engine": engine})

    @pytest.mark.parametrize(
        "engine",
        [
            started(devices=["0,1", " 2, 3"], tensor_parallel=2),
            started(devices=["0", "0"], gpu_memory=0.5),
            started(3, devices=["0"] * 3, gpu_memory=0.33),
            started(1, max_model_len=41),
            {"kind": "vllm", "urls": ["http://a:1"], "kv_cache_dtype": "fp8_e5m2", "max_model_len": 64},
        ],
    )
    def test_what_can_be_is_taken(self, engine):
        assert RolloutSettings.model_validate({"engine": engine, "max_new_tokens": 40}).engine.kind == "vllm"

    def test_an_engine_without_a_kind_is_the_embedded_one(self):
        assert RolloutSettings.model_validate({"engine": {"precision": "int8"}}).engine.kind == "torch"

    def test_a_checkpoint_is_judged_at_its_own_precision_by_servers_that_the_run_starts(self):
        engine = {"kind": "vllm", "processes": 1, "dtype": "bfloat16", "kv_cache_dtype": "fp8_e5m2"}
        judged = RolloutSettings.model_validate({"engine": engine}).as_policy().engine
        assert isinstance(judged, VllmEngine)
        assert (judged.dtype, judged.kv_cache_dtype) == ("policy", "auto")

    def test_given_servers_stay_what_they_are(self):
        given = RolloutSettings.model_validate({"engine": {"kind": "sglang", "urls": ["http://a:1"]}})
        assert isinstance(given.engine, SglangEngine)
        assert given.as_policy() == given

    def test_mixing_needs_the_embedded_engine(self):
        with pytest.raises(ValueError, match="which engine vllm cannot do"):
            RolloutSettings.model_validate({"engine": {"kind": "vllm", "processes": 1}, "mixing": {}})
