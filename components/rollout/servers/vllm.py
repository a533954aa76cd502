"""vLLM's dialect: its token-in token-out endpoint, and its interface for RL (development mode)."""

from __future__ import annotations

from collections.abc import Mapping
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

ABANDONED = "abandoned"
"""The label of weights of an update that broke off; nothing is sampled from them."""
ADAPTER = "evenkeel-adapter"
"""The name that requests have for the adapter, where the servers have it apart from the base."""
MISSING = -9999.0
"""What vLLM writes for a log-probability that is NaN or that it does not have."""
WHOLE = {**UNTOUCHED, "top_k": 0}


class VllmClient(ServerClient):
    """One `vllm serve`. ``model`` is the name that it must serve; None takes any."""

    def __init__(self, name: str, url: str, model: str | None = None) -> None:
        super().__init__(name, url)
        self._model, self._asleep = model, False
        self._body: dict[str, Any] = {}  # of every request
        self._adapter = ""  # the folder of the one that this update brings

    async def ready(self, timeout: float) -> None:
        models = (await self.call("GET", "/v1/models", timeout)).get("data")
        served = [one.get("id") for one in models if isinstance(one, dict)] if isinstance(models, list) else []
        if not served or self._model not in (None, *served):
            raise ServerFault(f"it serves {served}, not {self._model!r}: another server listens there")

    async def facts(self, timeout: float) -> Facts:
        version = str((await self.call("GET", "/version", timeout)).get("version"))
        results = (await self.call("POST", "/collective_rpc", timeout, {"method": "evenkeel_facts"})).get("results")
        if not isinstance(results, list) or not results:
            raise ServerFault("it says nothing of its model; is the extension evenkeel_vllm.Extension loaded?")
        reported = {name: value for name, value in mapping(results[0], "evenkeel_facts").items() if name != "tied"}
        if reported.get("transfer") == "evenkeel_adapter":
            self._body["model"] = ADAPTER
        try:
            return Facts(version=version, **reported)
        except TypeError as error:
            raise ServerFault(f"its extension is not this project's: {error}") from error

    async def generate(self, request: Request, timeout: float) -> list[Written]:
        params = {
            **WHOLE,
            "n": request.n,
            "max_tokens": request.max_new_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "stop_token_ids": list(request.stop),
            "ignore_eos": True,  # the end tokens are those of the request, not those of the server's configuration
            "logprobs": 0,
            "detokenize": False,
        }
        body = {**self._body, "token_ids": list(request.prompt), "sampling_params": params}
        choices = (await self.call("POST", "/inference/v1/generate", timeout, body)).get("choices")
        if not isinstance(choices, list) or len(choices) != request.n:
            raise ServerFault(f"{len(choices) if isinstance(choices, list) else 'no'} completions for n {request.n}")
        choices = sorted((mapping(choice, "generate") for choice in choices), key=lambda one: int(one.get("index", 0)))
        return [_written(request, choice) for choice in choices]

    async def score(self, text: Text, timeout: float) -> Written:
        context, ids = text
        params = {
            **WHOLE,
            "max_tokens": 1,
            "prompt_logprobs": 0,
            "logprobs": 0,
            "detokenize": False,
            "ignore_eos": True,
        }
        body = {**self._body, "token_ids": [*context, *ids], "sampling_params": params}
        answer = await self.call("POST", "/inference/v1/generate", timeout, body)
        choices, entries = answer.get("choices"), answer.get("prompt_logprobs")
        if not isinstance(choices, list) or not choices or not isinstance(entries, list):
            raise ServerFault("it does not say what it makes of a text (prompt_logprobs)")
        if len(entries) != len(context) + len(ids):
            raise ServerFault(f"{len(entries)} log-probabilities for a text of {len(context) + len(ids)} tokens")
        known = zip(ids, entries[len(context) :], strict=True)
        values = [mapping(mapping(entry, "text").get(str(token)), "text").get("logprob") for token, entry in known]
        labels = _labels(mapping(choices[0], "generate").get("weight_versions"))
        return scored(text, values, labels, worst=MISSING)

    async def sleep(self, timeout: float) -> None:
        # Level 2 drops the weights: the update that ends the sleep replaces all of them. No request is in flight but
        # those whose answer is not waited for any more.
        await self.call("POST", "/sleep", timeout, params={"level": "2", "mode": "abort"})
        if (await self.call("GET", "/is_sleeping", timeout)).get("is_sleeping") is not True:
            raise ServerFault("it was put to sleep and is awake")
        self._asleep = True

    async def begin_update(self, timeout: float) -> None:
        if self._asleep:  # memory for the weights alone: that of the cache is needed while they come in
            await self.call("POST", "/wake_up", timeout, params={"tags": "weights"})
        await self.call("POST", "/pause", timeout, params={"mode": "keep"})
        try:
            await self.call("POST", "/start_weight_update", timeout)
        except ServerFault as fault:
            if "already active" not in str(fault):
                raise
            # An update broke off. Layers that it had completed would take no weight of this one in: it is ended first.
            await self.call("POST", "/finish_weight_update", timeout, {"weight_version": ABANDONED})
            await self.call("POST", "/start_weight_update", timeout)

    async def update(self, info: Mapping[str, Any], timeout: float) -> None:
        if "adapter" in info:
            self._adapter = str(info["adapter"])
            return
        await self.call("POST", "/update_weights", timeout, {"update_info": dict(info)})

    async def finish_update(self, label: str, timeout: float) -> None:
        await self.call("POST", "/finish_weight_update", timeout, {"weight_version": label})
        if self._adapter:  # the end of an update drops the one before
            body = {"method": "evenkeel_adapter", "args": [ADAPTER, self._adapter]}
            await self.call("POST", "/collective_rpc", timeout, body)
            self._adapter = ""
        # Requests in flight are recomputed under the new weights, so that no key or value of the old ones is left.
        reset = await self.call("POST", "/reset_prefix_cache", timeout, params={"reset_running_requests": "true"})
        if reset.get("success") is not True:
            raise ServerFault(f"it could not forget what the cache holds of the old weights: {reset}")
        if self._asleep:
            status = (await self.call("POST", "/wake_up", timeout, params={"tags": "kv_cache"})).get("status")
            if status != "awake":
                raise ServerFault(f"it is {status!r} once weights and cache have been woken up")
            self._asleep = False
        await self.call("POST", "/resume", timeout)
        reported = (await self.call("GET", "/weight_info", timeout)).get("weight_version")
        if reported != label:
            raise ServerFault(f"it has weights {reported!r} after an update to {label!r}")

    async def init_transfer(self, info: Mapping[str, Any], timeout: float) -> None:
        """Agree on how weights will travel."""
        await self.call("POST", "/init_weight_transfer_engine", timeout, {"init_info": dict(info)})


def _written(request: Request, choice: dict[str, Any]) -> Written:
    ids = choice.get("token_ids")
    content = (choice.get("logprobs") or {}).get("content")
    values: list[Any] = []
    if isinstance(content, list) and isinstance(ids, list):
        entries = [mapping(entry, "generate") for entry in content]
        if [entry.get("token_id") for entry in entries] != ids:
            raise ServerFault("log-probabilities of other tokens than those that were written")
        values = [entry.get("logprob") for entry in entries]
    labels = _labels(choice.get("weight_versions"))
    return checked(request, ids, values, labels, choice.get("finish_reason"), worst=MISSING)


def _labels(spans: Any) -> list[str]:
    """The label of each token, from spans that follow one another."""
    labels: list[str] = []
    for span in spans if isinstance(spans, list) else []:
        start, end = mapping(span, "generate").get("start"), span.get("end")
        if start != len(labels) or not isinstance(end, int) or end < len(labels):
            raise ServerFault(f"weight versions that do not follow one another: {spans}")
        labels += [str(span.get("version"))] * (end - len(labels))
    return labels
