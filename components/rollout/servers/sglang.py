"""SGLang's dialect: its native HTTP interface, as documented for 0.5.

No such server runs where the project is tested; the exchange that the tests replay is written from the documentation.
The log-prob check stands guard over a real one as it does over vLLM: a server that reports log-probabilities of another
temperature, or keeps its old weights, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.policy.weights import Text
from components.rollout.servers.client import (
    UNTOUCHED,
    Facts,
    Request,
    ServerClient,
    ServerFault,
    Written,
    checked,
    mapping,
    scored,
)

WHOLE = {**UNTOUCHED, "top_k": -1}


class SglangClient(ServerClient):
    """One SGLang server. It states for each completion which weights it came from, not of each token.

    It keeps to seeds only when it was started with ``--enable-deterministic-inference``.
    """

    takes_whole_folders = True

    async def ready(self, timeout: float) -> None:
        await self.call("GET", "/get_model_info", timeout)

    async def facts(self, timeout: float) -> Facts:
        server = await self.call("GET", "/get_server_info", timeout)
        model = await self.call("GET", "/get_model_info", timeout)
        if model.get("is_generation") is False:
            raise ServerFault("it serves a model that does not generate")
        dtype = _text(server.get("dtype"))
        return Facts(
            version=str(server.get("version")),
            model_type=_text(model.get("model_type")),
            dtype=None if dtype == "auto" else dtype,
            kv_cache_dtype=_text(server.get("kv_cache_dtype")),
            max_model_len=_number(server.get("context_length")),
            max_num_seqs=_number(server.get("max_running_requests")),
        )

    async def generate(self, request: Request, timeout: float) -> list[Written]:
        params = {
            **WHOLE,
            "max_new_tokens": request.max_new_tokens,
            "temperature": request.temperature,
            "stop_token_ids": list(request.stop),
            "ignore_eos": True,  # the end tokens are those of the request
            "skip_special_tokens": False,
        }
        # A batch rather than n: the samples of one request would share its seed.
        body = {
            "input_ids": [list(request.prompt)] * request.n,
            "sampling_params": [{**params, "sampling_seed": request.seed + i} for i in range(request.n)],
            "return_logprob": True,
        }
        answer = await self.call_any("POST", "/generate", timeout, body)
        answers = answer if isinstance(answer, list) else [answer]
        if len(answers) != request.n:
            raise ServerFault(f"{len(answers)} completions for n {request.n}")
        return [_written(request, mapping(one, "generate")) for one in answers]

    async def score(self, text: Text, timeout: float) -> Written:
        context, ids = text
        body = {
            "input_ids": [*context, *ids],
            "sampling_params": {**WHOLE, "max_new_tokens": 1, "temperature": 1.0, "ignore_eos": True},
            "return_logprob": True,
            "logprob_start_len": 0,
        }
        meta = mapping((await self.call("POST", "/generate", timeout, body)).get("meta_info"), "generate")
        values = [value for value, *_ in _entries(meta.get("input_token_logprobs"))[-len(ids) :]]
        return scored(text, values, [str(meta.get("weight_version"))])

    async def begin_update(self, timeout: float) -> None:
        await self.call_any("POST", "/pause_generation", timeout, {"mode": "retract"})

    async def update(self, info: Mapping[str, Any], timeout: float) -> None:
        body = {"model_path": str(Path(info["path"]).parent), "flush_cache": True}
        answer = await self.call("POST", "/update_weights_from_disk", timeout, body)
        if answer.get("success") is not True:
            raise ServerFault(f"it did not take the weights in: {answer.get('message')}")

    async def finish_update(self, label: str, timeout: float) -> None:
        await self.call_any(
            "POST", "/update_weight_version", timeout, {"new_version": label, "abort_all_requests": False}
        )
        await self.call_any("POST", "/continue_generation", timeout, {})
        reported = (await self.call("GET", "/get_model_info", timeout)).get("weight_version")
        if reported != label:
            raise ServerFault(f"it has weights {reported!r} after an update to {label!r}")


def _written(request: Request, answer: dict[str, Any]) -> Written:
    """``output_token_logprobs`` holds (log-probability, token id, text or None) of every token."""
    meta = mapping(answer.get("meta_info"), "generate")
    entries = _entries(meta.get("output_token_logprobs"))
    values, ids = [entry[0] for entry in entries], [entry[1] for entry in entries]
    reported = answer.get("output_ids")
    if reported is not None and reported != ids:
        raise ServerFault("log-probabilities of other tokens than those that were written")
    labels = [str(meta.get("weight_version"))] * len(ids)
    return checked(request, ids, values, labels, mapping(meta.get("finish_reason"), "generate").get("type"))


def _entries(entries: Any) -> list[list[Any]]:
    """(log-probability, token id, text or None) of every token."""
    if not isinstance(entries, list) or not all(isinstance(entry, list) and len(entry) >= 2 for entry in entries):
        raise ServerFault("no log-probabilities; the server must return them (return_logprob)")
    return entries


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
