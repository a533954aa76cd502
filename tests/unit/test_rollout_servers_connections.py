"""A connection to a server after an answer, and one that breaks."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest

from components.rollout.servers.client import ServerFault
from components.rollout.servers.vllm import VllmClient

BROKEN = b'{"error": "a worker broke"}'
LATE = 0.05
"""Seconds between an error's answer and the end of its connection: uvicorn writes down the traceback in between."""


async def _as_uvicorn_does(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Requests that need no body; one to start an update fails, and nothing more is read from its connection."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = [line for line in head.splitlines() if line.lower().startswith("content-length:")]
            await reader.readexactly(int(length[0].split(":")[1]) if length else 0)
            fails = "/start_weight_update" in head
            code, body = ("500 Broken", BROKEN) if fails else ("200 OK", b"{}")
            writer.write(f"HTTP/1.1 {code}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            if fails:
                await asyncio.sleep(LATE)
                break
    writer.close()


def test_a_request_after_a_5xx_is_not_lost_with_the_connection_that_ends():
    async def run() -> None:
        async with await asyncio.start_server(_as_uvicorn_does, "127.0.0.1", 0) as server:
            client = VllmClient("rollout-0", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            for _ in range(3):
                with pytest.raises(ServerFault, match="a worker broke"):
                    await client.begin_update(5)
                await client.update({"path": "x"}, 5)
            await client.aclose()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (httpx.ReadError(""), "no connection for /version: ReadError"),
        (httpx.ConnectError("refused"), "no connection for /version: refused"),
    ],
)
def test_the_error_of_a_broken_connection_says_its_message_or_else_its_kind(error, said):
    def broken(_: httpx.Request) -> httpx.Response:
        raise error

    async def run() -> None:
        client = VllmClient("rollout-0", "http://127.0.0.1:1")
        await client.aclose()
        client._http = httpx.AsyncClient(base_url=client.url, transport=httpx.MockTransport(broken))
        with pytest.raises(ServerFault) as caught:
            await client.call("GET", "/version", 1.0)
        assert str(caught.value) == said
        await client.aclose()

    asyncio.run(run())
