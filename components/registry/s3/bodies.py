"""The content of an answer, whole and in time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from urllib3.exceptions import HTTPError

from components.registry.s3.retries import Damaged

BLOCK = 2**20
"""Bytes that are read at once, at the most."""


def blocks(answer: Mapping[str, Any], end: float) -> Iterator[bytes]:
    """What has arrived, as it arrives, until it is as much as was announced.

    `StreamingBody.read` waits for as many bytes as are requested. With a server that sends one now and then it would
    wait for ever, because no silence is long enough for a timeout. What is under it does not.

    Raises:
        Damaged: it ends early.
        TimeoutError: it is not all there at ``end`` (`time.monotonic`).
    """
    left = int(answer["ContentLength"])
    with closing(answer["Body"]) as body:
        while left:
            try:
                block = body._raw_stream.read1(min(BLOCK, left))
            except HTTPError as error:
                raise Damaged from error
            if not block:
                raise Damaged
            if time.monotonic() > end:
                raise TimeoutError("the time for this answer is up")
            left -= len(block)
            yield block


def whole(answer: Mapping[str, Any], end: float) -> bytearray:
    """All of it, in memory once."""
    data, at = bytearray(int(answer["ContentLength"])), 0
    for block in blocks(answer, end):
        data[at : at + len(block)] = block
        at += len(block)
    return data
