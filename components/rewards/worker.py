"""The verifier's process: reads JSON lines, judges, answers each before it looks at the next.

The first line holds the settings and is answered when the limits are in force, before anything that a policy wrote is
looked at. The reason of what is unscorable begins with one of `CODES`. Standard output belongs to the protocol: what a
verifier prints goes nowhere.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import TypeAdapter

from components.config.consistency import Consistency
from components.config.extensions import FunctionSet
from components.config.sandbox import SandboxSettings
from components.config.verifiers import Verifier as VerifierSettings
from components.rewards import build_verifier
from components.rewards.base import Judgement, Refused, Verifier
from components.rewards.functions import RewardFunctions
from components.rewards.privileges import hide
from components.rewards.seccomp import refuse_network
from components.types import Prompt

CODES = {
    "timeout": "no verdict within the wall time of one item; the worker was replaced",
    "cpu": "no verdict within the processor time of one item; the worker was replaced",
    "memory": "more address space was needed than a fresh worker has",
    "crash": "the worker ended or broke its protocol, also on a second try in a fresh one; it was replaced",
    "error": "the verifier raised, or returned a figure that cannot be one",
    "refused": "the verifier will not judge this item, say because its reference cannot be read",
}
FILE_BYTES = 1 << 20
"""Verifiers write no files; this is for what a library may leave behind."""
Message = dict[str, Any]
REASON_CHARS = 300


def close_network(limits: SandboxSettings) -> None:
    """First, so that a verifier has no network while it loads its model. No other process may inspect this one."""
    hide()
    if limits.network == "refused":
        refuse_network()


def confine(limits: SandboxSettings) -> None:
    """Cap address space and files for good; no core files. The verifier has loaded what it needs."""
    size = limits.memory_mb * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def timed(limits: SandboxSettings) -> Iterator[None]:
    """The clocks of one item. Both end the whole process, whichever thread used the time up and whatever it is doing.

    ITIMER_PROF counts the processor time of all threads, and its signal is not handled: a computation inside a C
    function, which would not return to look at a handler, ends too. The wall clock is a second fence: if the parent
    was killed, nothing else ends a verifier that sleeps.
    """
    signal.setitimer(signal.ITIMER_REAL, 2 * limits.timeout)
    signal.setitimer(signal.ITIMER_PROF, limits.cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def serve(build: Callable[[Message], Verifier | RewardFunctions]) -> None:
    """Answer requests until the parent closes the pipe. ``build`` makes the verifier from its settings."""
    replies = os.dup(sys.stdout.fileno())
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())  # before any code of the verifier runs; why it does not start is still reported
    hello = json.loads(sys.stdin.buffer.readline())
    limits = SandboxSettings(**hello["limits"])
    close_network(limits)
    verifier = build(hello["verifier"])
    verifier.prepare()
    confine(limits)
    _send(replies, {"ready": True})
    os.dup2(null, sys.stderr.fileno())
    for line in sys.stdin.buffer:
        with timed(limits):
            reply = judge(verifier, line)
        _send(replies, reply)


def judge(verifier: Verifier | RewardFunctions, line: bytes) -> Message:
    """The reply to one request, a text or a group for a function; an exception of any kind is a reason, not an end."""
    try:
        request = json.loads(line)
        if isinstance(verifier, RewardFunctions):
            return {"values": verifier.values(prompt=Prompt(**request.pop("prompt")), **request)}
        judgement = verifier.judge(Prompt(**request["prompt"]), request["text"])
        accuracy, parts, metrics = float(judgement.accuracy), _floats(judgement.parts), _floats(judgement.metrics)
    except MemoryError:
        return {"unscorable": "memory: the verifier needs more than its limit"}
    except Refused as refusal:
        return {"unscorable": f"refused: {refusal}"[:REASON_CHARS]}
    except BaseException as error:  # SystemExit included: a verifier cannot leave through it
        return {"unscorable": f"error: {type(error).__name__}: {error}"[:REASON_CHARS]}
    problem = out_of_range(Judgement(accuracy, parts, metrics))
    if problem is not None:
        return {"unscorable": f"error: the verifier returned {problem}"[:REASON_CHARS]}
    return {"accuracy": accuracy, "parts": parts, "metrics": metrics}


def out_of_range(judgement: Judgement) -> str | None:
    """The first figure that is out of its range, for a message; None where there is none."""
    if not 0 <= judgement.accuracy <= 1:
        return f"{judgement.accuracy}, which is not in [0, 1]"
    for name, value in judgement.parts.items():
        if not -1 <= value <= 1:
            return f"{value} for the part {name}, which is not in [-1, 1]"
    for name, value in judgement.metrics.items():
        if not math.isfinite(value):
            return f"{value} for the metric {name}, which is not finite"
    return None


def _floats(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _send(handle: int, message: Message) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(handle, data) :]


def _from_settings(settings: Message) -> Verifier | RewardFunctions:
    model = settings.pop("model", None)
    chosen: Any = TypeAdapter(VerifierSettings | Consistency | FunctionSet).validate_python(settings)
    return RewardFunctions(chosen.functions) if isinstance(chosen, FunctionSet) else build_verifier(chosen, model)


if __name__ == "__main__":
    serve(_from_settings)
