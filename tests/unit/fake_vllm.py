"""A vLLM server of a few milliseconds: its HTTP interface over a policy of this process, with faults on order.

What it samples and reports is real, so that the log-prob check means something; `tests/vllm` holds the same ground
against the real server.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import torch
from safetensors.torch import load_file

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.policy import Policy
from components.policy.weights import weights_of
from components.rollout.base import Sampling
from components.rollout.servers.plugin.evenkeel_groups import broadcast, dist, own_address, process_group
from components.rollout.torch_engine import TorchEngine
from components.types import Completion

Fault = Callable[[Any, Any], Any]
"""From the request's body and the right answer to what is answered instead."""


class Raw(bytes):
    """An answer that is sent as it is."""


class Status(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, text: str = "broken") -> None:
        super().__init__(text)
        self.code, self.text = code, text


class Hang(Exception):
    """No answer until the server ends."""


class Drop(Exception):
    """The connection is closed instead of an answer."""


ALWAYS: dict[str, Any] = {
    "/v1/models": {"data": [{"id": "policy"}]},
    "/pause": {"status": "paused"},
    "/reset_prefix_cache": {"success": True},
    "/resume": {},
}
"""Answers that are the same whatever happens."""


class FakeVllm:
    """One server. ``faults`` maps a path to what happens to its answers; ``calls`` are the paths of its calls, and
    ``bodies`` what came with them: JSON, or the parameters of the URL."""

    def __init__(self, policy: Policy, **facts: Any) -> None:
        self.engine = TorchEngine(policy, TorchEngineSettings())
        self.policy = self.engine._policy
        config = policy.model.config
        shape = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.facts = {
            "model_type": config.model_type,
            "shape": {name: getattr(config, name) for name in shape},
            "dtype": "float32",
            "kv_cache_dtype": "auto",
            "max_model_len": 64,
            "max_num_seqs": 256,
            "logprobs_mode": "processed_logprobs",
            "transfer": "evenkeel_files",
            "world_size": 1,
            "device": "cpu",
            "tied": True,
            **facts,
        }
        self.version, self.label = "0.32.0", "default"
        self.faults: dict[str, Fault] = {}
        self.calls: list[str] = []
        self.deaf: set[str] = set()
        self.bodies: list[Any] = []
        self.pending: dict[str, torch.Tensor] = {}
        self.asleep: set[str] = set()
        self.ended, self._lock = threading.Event(), threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self.host, self.port = "127.0.0.1", 0

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def start(self) -> FakeVllm:
        self.ended.clear()
        self._server = _Listening((self.host, self.port), _handler(self))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def stop(self) -> None:
        """As if its process had been killed."""
        self.ended.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def fail(self, path: str, fault: Fault, times: int = 10**9) -> None:
        """Let the next ``times`` answers to a path go wrong."""
        left = [times]

        def limited(body: Any, answer: Any) -> Any:
            if left[0] <= 0:
                return answer
            left[0] -= 1
            return fault(body, answer)

        self.faults[path] = limited

    def answer(self, path: str, body: Any) -> Any:
        self.calls.append(path)
        self.bodies.append(body)
        if path in ALWAYS:
            answer = ALWAYS[path]
        elif path.endswith("/generate"):
            answer = self._generate(body)
        else:
            answer = getattr(self, "_" + path.strip("/").replace("/", "_"))(body)
        return self.faults.get(path, lambda _, right: right)(body, answer)

    def _version(self, _: Any) -> Any:
        return {"version": self.version}

    def _collective_rpc(self, _: Any) -> Any:
        return {"results": [self.facts]}

    def _tokenize(self, body: Any) -> Any:
        return {"tokens": self.policy.tokenizer.encode(body["prompt"], add_special_tokens=False)}

    def _sleep(self, body: Any) -> Any:
        """As level 2: what the memory of the weights holds afterwards is not what it held."""
        self.asleep = {"weights", "kv_cache"}
        with self._lock:
            lost = {name: torch.full_like(weight, torch.nan) for name, weight in self.policy.weights().items()}
            self.policy.load_weights(lost)
        return {"status": "sleeping", "level": int(body["level"])}

    def _is_sleeping(self, _: Any) -> Any:
        return {"is_sleeping": bool(self.asleep)}

    def _wake_up(self, body: Any) -> Any:
        self.asleep.discard(body["tags"])
        return {"status": "sleeping" if self.asleep else "awake", "tags": [body["tags"]]}

    def _start_weight_update(self, _: Any) -> Any:
        self._refuse_asleep("weights")

        def empty() -> None:
            self.pending = {}

        return empty

    def _init_weight_transfer_engine(self, body: Any) -> Any:
        info = body["init_info"]
        timeout = timedelta(seconds=info["timeout"])
        self.store = dist.TCPStore(info["host"], info["port"], info["world_size"], is_master=False, timeout=timeout)
        self.store.set("here-1", "")
        host = own_address(info["host"], info["port"])
        self.group = process_group(self.store, 1, info["world_size"], "gloo", host, timeout)
        return {}

    def _received(self, info: Any) -> dict[str, torch.Tensor]:
        found = {}
        for name, dtype, shape in zip(info["names"], info["dtypes"], info["shapes"], strict=True):
            found[name] = torch.empty(shape, dtype=getattr(torch, dtype))
            broadcast(self.group, found[name], timedelta(minutes=5))
        return found

    def _update_weights(self, body: Any) -> Any:
        self._refuse_asleep("weights")
        info = body["update_info"]
        if "names" in info and "/update_weights" in self.deaf:
            raise Hang  # it was sent the names of tensors and never receives them
        weights = self._received(info) if "names" in info else load_file(info["path"])
        return lambda: self.pending.update(weights)

    def _finish_weight_update(self, body: Any) -> Any:
        def put() -> None:
            if self.pending:
                self.engine.load_weights(self.pending)
            self.label = body["weight_version"]

        return put

    def _weight_info(self, _: Any) -> Any:
        return {"weight_version": self.label}

    def _refuse_asleep(self, *tags: str) -> None:
        if self.asleep.intersection(tags):
            raise Status(500, f"asleep: {sorted(self.asleep)}")

    def _generate(self, body: Any) -> Any:
        self._refuse_asleep("weights", "kv_cache")
        params = body["sampling_params"]
        if params.get("prompt_logprobs") is not None:
            return self._score(body["token_ids"])
        _end, *stop = params["stop_token_ids"]
        sampling = Sampling(params["n"], params["max_tokens"], params["temperature"], params["seed"], tuple(stop))
        with self._lock:
            (group,) = self.engine.generate([body["token_ids"]], sampling)
        return {"choices": [self._choice(i, one) for i, one in enumerate(group)]}

    def _score(self, ids: list[int]) -> Any:
        """Log-probabilities of the tokens of a prompt, and one new token."""
        with self._lock:
            text = (tuple(ids[:1]), tuple(ids[1:]))
            values = weights_of(self.policy).scores([text], 1.0).tolist()
        entries = [{str(i): {"logprob": v, "rank": 1}} for i, v in zip(ids[1:], values, strict=True)]
        one = Completion((0,), (-1.0,), "length", "")
        return {"choices": [self._choice(0, one)], "prompt_logprobs": [None, *entries]}

    def _choice(self, index: int, one: Any) -> Any:
        content = [{"token_id": i, "logprob": v} for i, v in zip(one.token_ids, one.logprobs, strict=True)]
        return {
            "index": index,
            "token_ids": list(one.token_ids),
            "finish_reason": "length" if one.finish_reason == "length" else "stop",
            "logprobs": {"content": content},
            "weight_versions": [{"version": self.label, "start": 0, "end": len(one.token_ids)}],
        }


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a client may open one connection for each request

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)


def _handler(fake: FakeVllm) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply()

        def do_POST(self) -> None:
            self._reply()

        def _reply(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            try:
                url = urlsplit(self.path)
                answer = fake.answer(url.path, json.loads(raw) if raw else dict(parse_qsl(url.query)))
                if callable(answer):
                    answer = answer() or {}
                if fake.ended.is_set():
                    raise Drop
                self._send(200, answer if isinstance(answer, Raw) else json.dumps(answer).encode())
            except Status as status:
                self._send(status.code, json.dumps({"error": {"message": status.text}}).encode())
            except Hang:
                fake.ended.wait()
                self.close_connection = True
            except (Drop, ConnectionError):
                self.close_connection = True

        def _send(self, code: int, body: bytes) -> None:
            with contextlib.suppress(OSError):
                self.send_response(code)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    return Handler


@contextlib.contextmanager
def serving(policy: Policy, count: int = 1, kind: type[FakeVllm] = FakeVllm, **facts: Any) -> Iterator[list[FakeVllm]]:
    """Servers of a policy, as long as the context lasts."""
    servers = [kind(policy, **facts).start() for _ in range(count)]
    try:
        yield servers
    finally:
        for server in servers:
            server.stop()


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for something that has to become true."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it never became true"
        time.sleep(0.01)


def raising(error: Exception) -> Fault:
    """The fault that is this error."""

    def fault(_body: Any, _answer: Any) -> Any:
        raise error

    return fault
