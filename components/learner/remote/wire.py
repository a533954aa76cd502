"""Messages between a run and its ranks: a JSON header and tensors as safetensors. Nothing in them is ever unpickled.

A message is eight bytes, the header's length (little-endian), the header, and a safetensors file. Names of what belongs
together share a prefix, as in ``batch/input_ids``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from components.errors import EvenkeelError, InputError, PeerLost
from components.learner.batch import Batch

LENGTH = 8
MAX_HEADER = 1 << 20


class Message(NamedTuple):
    """A header, and tensors by name."""

    header: dict[str, Any]
    tensors: dict[str, Tensor]


def encode(header: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None) -> bytes:
    """The bytes of a message."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(LENGTH, "little") + text + save({k: t.contiguous() for k, t in (tensors or {}).items()})


def decode(data: bytes) -> Message:
    """The message of some bytes.

    Raises:
        InputError: they are no message.
    """
    end = LENGTH + int.from_bytes(data[:LENGTH], "little")
    if not LENGTH < end <= min(len(data), LENGTH + MAX_HEADER):
        raise _broken(f"{len(data)} bytes with a header of {end - LENGTH}")
    try:
        header, tensors = json.loads(data[LENGTH:end]), load(bytes(data[end:]))
    except (ValueError, RecursionError, SafetensorError) as error:
        raise _broken(str(error)) from error
    if not isinstance(header, dict):
        raise _broken(f"its header is a {type(header).__name__}")
    return Message(header, tensors)


def described(error: Exception) -> dict[str, Any]:
    """An error as `raised` makes it again."""
    if isinstance(error, EvenkeelError):
        return {"what": error.what, "where": error.where, "how": error.how, "lost": isinstance(error, PeerLost)}
    return {"what": f"{type(error).__name__}: {error}", "where": None, "how": None, "lost": True}


def raised(error: Mapping[str, Any], where: str | None) -> InputError:
    """The error of the other side; ``where`` it is, if that did not say. What is a bug there is a loss here."""
    kind = PeerLost if error.get("lost") else InputError
    return kind(str(error["what"]), where=error["where"] or where, how=error["how"])


def _broken(why: str) -> InputError:
    how = "let nothing else connect to the learner's address; both sides need the same version"
    return InputError(f"not a message between a run and its ranks: {why}", where="learner.ranks", how=how)


def pack(batch: Batch) -> dict[str, Tensor]:
    """The tensors of a batch by name; those that are not set are absent."""
    found = {f.name: getattr(batch, f.name) for f in fields(batch)}
    return {f"batch/{name}": tensor for name, tensor in found.items() if tensor is not None}


def unpack(tensors: Mapping[str, Tensor]) -> Batch:
    """The batch of `pack`.

    Raises:
        InputError: a tensor is missing or unknown.
    """
    found = {name.removeprefix("batch/"): tensor for name, tensor in tensors.items()}
    try:
        return Batch(**found)
    except TypeError as error:
        raise _broken(str(error)) from error
