"""Requests to an inference server of any dialect: token ids in, token ids and log-probabilities out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx

from components.errors import InputError
from components.policy.weights import Text

SHOWN = 300
"""Characters of an answer that an error shows."""


UNTOUCHED: dict[str, Any] = {
    "top_p": 1.0,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
}
"""The policy's whole distribution, with the ``top_k`` of each dialect. All of it is said, because a server takes its
defaults from the model's generation_config."""


class ServerFault(Exception):
    """A request to a server failed: it is gone, too slow, broken, or its answer is malformed. Another may serve it."""


@dataclass(frozen=True, slots=True)
class Request:
    """``n`` completions of one prompt. Every one ends at a token of ``stop`` or after ``max_new_tokens``."""

    prompt: tuple[int, ...]
    n: int
    max_new_tokens: int
    temperature: float
    seed: int
    stop: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """One completion: token ids, their log-probabilities (nats), the label of the weights behind each token, and the
    number of the server that wrote it (-1: not known yet)."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    labels: tuple[str, ...]
    server: int = -1


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself. A None is not known."""

    version: str
    model_type: str | None = None
    shape: Mapping[str, int | None] | None = None
    dtype: str | None = None
    kv_cache_dtype: str | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    logprobs_mode: str | None = None
    transfer: str | None = None
    world_size: int = 1
    device: str = "cpu"


class ServerClient(ABC):
    """One server. Not safe for use in several event loops."""

    takes_whole_folders: ClassVar[bool] = False
    """Whether it reads all weights from a folder at once, and no single file."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.url = name, url.rstrip("/")
        # Proxies of the environment are for the outside world. No limit on connections: the fleet has its own. Each
        # request has its own connection: a server may be about to end one that is idle, as uvicorn does after a 500
        # and after some seconds, and a request that was written to it would be lost.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        verify = self.url.startswith("https")
        self._http = httpx.AsyncClient(base_url=self.url, trust_env=False, limits=limits, verify=verify)

    async def aclose(self) -> None:
        await self._http.aclose()

    @abstractmethod
    async def ready(self, timeout: float) -> None:
        """Return if the server is up and is the one that is meant; a `ServerFault` states why not."""

    @abstractmethod
    async def facts(self, timeout: float) -> Facts:
        """The version of the server, and its model."""

    async def tokenize(self, text: str, timeout: float) -> tuple[int, ...] | None:
        """The server's own token ids of a text, without special tokens added; None where it has no way to say."""
        answer = await self.call("POST", "/tokenize", timeout, {"prompt": text, "add_special_tokens": False})
        tokens = answer.get("tokens")
        return tuple(tokens) if isinstance(tokens, list) else None

    @abstractmethod
    async def generate(self, request: Request, timeout: float) -> list[Written]:
        """The completions, checked: as many as were requested, each ended by a stop token or the limit, and with a
        finite log-probability for every token."""

    @abstractmethod
    async def score(self, text: Text, timeout: float) -> Written:
        """The log-probabilities that the server gives to the tokens of a text that follow its context, at temperature
        1, and the label of its weights."""

    @abstractmethod
    async def begin_update(self, timeout: float) -> None:
        """Hold generation and get ready for weights. Requests in flight wait, and go on with the new weights."""

    @abstractmethod
    async def update(self, info: Mapping[str, Any], timeout: float) -> None:
        """Take weights in; ``info`` states where they are."""

    @abstractmethod
    async def finish_update(self, label: str, timeout: float) -> None:
        """Put them to use under a label, forget what the cache holds of the old ones, and go on generating."""

    async def sleep(self, timeout: float) -> None:
        """Give up the memory of weights and cache until the next update, which replaces all of the weights.

        Raises:
            ServerFault: it does not.
        """
        raise ServerFault("a server of this kind does not sleep")

    async def canary(self, prompt: tuple[int, ...], stop: tuple[int, ...], timeout: float) -> None:
        """One token: a server that is wedged behind a healthy front cannot make it."""
        await self.generate(Request(prompt, 1, 1, 0.0, 0, stop), timeout)

    async def call(
        self, method: str, path: str, timeout: float, json: object = None, params: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """One exchange whose answer is a JSON object.

        Raises:
            ServerFault: no answer, a 5xx, or an answer that is no JSON object.
            InputError: the server refuses the request (4xx); any other server would, too.
        """
        return mapping(await self.call_any(method, path, timeout, json, params), path)

    async def call_any(
        self, method: str, path: str, timeout: float, json: object = None, params: Mapping[str, str] | None = None
    ) -> Any:
        """As `call`, for an answer that may be any JSON value; an empty one is None."""
        try:
            response = await self._http.request(method, path, json=json, params=params, timeout=timeout)
        except httpx.TimeoutException as error:
            raise ServerFault(f"no answer to {path} within {timeout:g} s") from error
        except httpx.HTTPError as error:
            raise ServerFault(f"no connection for {path}: {str(error) or type(error).__name__}") from error
        if response.status_code >= 500:
            raise ServerFault(f"{path} failed with {response.status_code}: {response.text[:SHOWN]}")
        if response.status_code >= 400:
            raise InputError(
                f"{self.name} refused {path} with {response.status_code}: {response.text[:SHOWN]}",
                where=self.url,
                how="start the server as components/rollout/servers/__init__.py says, with the version it names",
            )
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise ServerFault(f"the answer to {path} is not JSON: {response.text[:SHOWN]!r}") from error


def mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ServerFault(f"the answer to {what} is not a JSON object: {str(value)[:SHOWN]!r}")
    return value


def scored(text: Text, logprobs: Any, labels: Sequence[str], *, worst: float = -math.inf) -> Written:
    """What a server says of the tokens of a text, if it is one finite number for each and one label.

    Args:
        worst: as of `checked`.

    Raises:
        ServerFault: it is not.
    """
    _, ids = text
    if not isinstance(logprobs, list) or len(logprobs) != len(ids):
        raise ServerFault(f"no log-probability for each of the {len(ids)} tokens of a text")
    _refuse_infinite(logprobs, worst)
    if len(set(labels)) != 1:
        raise ServerFault(f"one text was scored under weights {sorted(set(labels))}")
    return Written(ids, tuple(map(float, logprobs)), (labels[0],) * len(ids))


def _refuse_infinite(logprobs: Sequence[Any], worst: float) -> None:
    for value in logprobs:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not worst < value <= 1e-3:
            raise ServerFault(f"a log-probability of {value}; the model's output is not finite")


def checked(
    request: Request, ids: Any, logprobs: Any, labels: Sequence[str], finish: Any, *, worst: float = -math.inf
) -> Written:
    """One completion as it came over the wire, if it is what was requested.

    Args:
        worst: What the server writes for a log-probability that it does not have.

    Raises:
        ServerFault: cut off, aborted, without its log-probabilities, or with values that cannot be.
    """
    if not isinstance(ids, list) or not ids or not all(type(i) is int and i >= 0 for i in ids):
        raise ServerFault(f"a completion without token ids: {str(ids)[:SHOWN]}")
    if not isinstance(logprobs, list) or len(logprobs) != len(ids):
        count = len(logprobs) if isinstance(logprobs, list) else "no"
        raise ServerFault(f"{count} log-probabilities for {len(ids)} tokens; the server must return one for each")
    _refuse_infinite(logprobs, worst)
    if len(labels) != len(ids):
        raise ServerFault(f"{len(labels)} weight versions for {len(ids)} tokens")
    ended = ids[-1] in request.stop
    if not ended and len(ids) != request.max_new_tokens:
        raise ServerFault(f"a completion of {len(ids)} tokens that ended by {finish!r}, not at a stop token")
    if len(ids) > request.max_new_tokens or any(i in request.stop for i in ids[:-1]):
        raise ServerFault(f"a completion of {len(ids)} tokens that goes on after its end")
    return Written(tuple(ids), tuple(min(0.0, float(v)) for v in logprobs), tuple(labels))
