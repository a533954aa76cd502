"""The client of a Prefect server: it repeats a request while the database is busy, and none that is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer

import pytest

from flows.prefect_runtime import server as module
from flows.prefect_runtime.server import PrefectServer, ServerUnavailable

PASSWORD = "set PREFECT_API_AUTH_STRING to user:password"


@pytest.fixture
def answers() -> Iterator[tuple[str, list[int], list[bytes]]]:
    """The address of a server, the codes and the bodies that it answers with, one after the other; 200 and a running
    flow run when they are used up."""
    codes: list[int] = []
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = bodies.pop(0) if bodies else b'{"state_type": "RUNNING"}'
            self.send_response(codes.pop(0) if codes else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = TCPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", codes, bodies
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0)


def test_a_request_is_repeated_while_the_database_is_busy(answers) -> None:
    url, codes, _ = answers
    codes += [503, 503]
    assert PrefectServer(url).state_of("run") == "RUNNING"


@pytest.mark.parametrize(
    ("code", "requests", "predicate", "fix"),
    [
        (503, 3, "refuses (503 Service Unavailable)", None),
        (401, 1, f"refuses (401 Unauthorized); {PASSWORD}", PASSWORD),
        (409, 1, "refuses (409 Conflict)", None),
    ],
)
def test_a_refusal_is_an_error_with_its_code(answers, code, requests, predicate, fix) -> None:
    url, codes, _ = answers
    codes += [code] * 4
    with pytest.raises(ServerUnavailable) as caught:
        PrefectServer(url, attempts=3).state_of("run")
    assert (4 - len(codes), caught.value.predicate, caught.value.how) == (requests, predicate, fix)


@pytest.mark.parametrize(
    ("url", "predicate"),
    [
        ("http://127.0.0.1:port/api", "has no such address: Invalid port: 'port'"),
        ("http://127.0.0.1:9/api", "does not answer (ConnectError)"),
        ("elsewhere/api", "does not answer (UnsupportedProtocol)"),
    ],
)
def test_an_address_without_a_server_is_an_error(url, predicate) -> None:
    with pytest.raises(ServerUnavailable) as caught:
        PrefectServer(url, timeout=5).get("/health")
    assert caught.value.predicate == predicate


def test_something_other_than_prefect_does_not_answer(answers) -> None:
    url, _, bodies = answers
    bodies.append(b"<html>")
    with pytest.raises(ServerUnavailable, match="does not answer"):
        PrefectServer(url).get("/health")


def test_what_is_not_there_is_no_error(answers) -> None:
    url, codes, _ = answers
    codes += [404, 404, 404]
    server = PrefectServer(url)
    assert server.get("/flow_runs/1") is None
    assert server.state_of("1") == ""
    assert server.set_state("1", {"type": "CANCELLED"}) == "ABSENT"


def test_flow_runs_come_page_by_page(answers, monkeypatch) -> None:
    url, _, bodies = answers
    monkeypatch.setattr(module, "PAGE", 2)
    bodies += [json.dumps([{"id": number} for number in page]).encode() for page in ([4, 3], [2, 1], [])]
    assert [run["id"] for run in PrefectServer(url).flow_runs({})] == [4, 3, 2, 1]
    assert bodies == []
