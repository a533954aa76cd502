"""The client of a Prefect server: a busy server is asked again, one that refuses is not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer

import httpx
import pytest

from flows.watching import api


@pytest.fixture
def answers() -> Iterator[tuple[str, list[int]]]:
    """The address of a server, and the codes that it answers with, one after the other; 200 when they are used up."""
    codes: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"state_type": "RUNNING"}'
            self.send_response(codes.pop(0) if codes else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = TCPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", codes
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "PAUSES", (0.0, 0.0))


def test_a_server_whose_database_is_busy_is_asked_again(answers: tuple[str, list[int]]) -> None:
    url, codes = answers
    codes += [503, 503]
    assert api.state_of(url, "run") == "RUNNING"


def test_one_that_stays_busy_is_left_alone_in_the_end(answers: tuple[str, list[int]]) -> None:
    url, codes = answers
    codes += [503] * 3
    with pytest.raises(httpx.HTTPStatusError) as caught:
        api.state_of(url, "run")
    assert api.describe_error(caught.value) == "refuses (503 Service Unavailable)"


def test_what_is_no_url_is_a_server_that_does_not_answer() -> None:
    with pytest.raises(httpx.HTTPError, match="Invalid port"):
        api.client("http://127.0.0.1:port/api", 1)


def test_one_that_refuses_is_not_asked_again(answers: tuple[str, list[int]]) -> None:
    url, codes = answers
    codes += [401]
    with pytest.raises(httpx.HTTPStatusError):
        api.state_of(url, "run")
    assert codes == []
