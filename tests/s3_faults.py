"""A proxy in front of an S3 server that does to requests what networks, load balancers and full disks do.

`FaultyProxy.faults` is a list of what is going to happen; each entry concerns the next requests that it fits.
"""

from __future__ import annotations

import http.client
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, list[tuple[str, str]], bytes]


@dataclass
class Fault:
    """What happens to the next ``times`` requests with this method, and this (a regular expression) in what is asked
    for: path, query and range.
    """

    kind: str
    method: str = ""
    path: str = ""
    times: int = 1
    meanwhile: Callable[[], object] = field(default=lambda: None)
    """Done before the client learns of the fault."""


class FaultyProxy:
    """It listens on an address of this machine from `running` on."""

    def __init__(self, upstream: int, host: str = "127.0.0.1") -> None:
        self.upstream, self.faults, self.seen = upstream, list[Fault](), list[str]()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer((host, 0), type("Handler", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[FaultyProxy]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield self
        self._server.shutdown()
        thread.join()
        self._server.server_close()

    def fault_for(self, method: str, path: str) -> Fault | None:
        with self._lock:
            self.seen.append(f"{method} {path}")
            for fault in self.faults:
                if fault.times and fault.method in ("", method) and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return None

    def count(self, method: str, path: str) -> int:
        """Requests that were made with this method, and this in path, query or range."""
        return sum(line.startswith(f"{method} ") and path in line for line in self.seen)


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultyProxy
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.proxy.fault_for(self.command, f"{self.path} {self.headers.get('Range', '')}")
        try:
            KINDS[fault.kind if fault else "none"](self, body, fault)
        except OSError:
            self.close_connection = True  # the client has gone

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_any

    def forward(self, body: bytes, send: int | None = None) -> Reply:
        """The server's reply to this request, or to its first ``send`` bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.upstream, timeout=30)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "expect"):
                connection.putheader(name, value)
        connection.endheaders()
        connection.send(body[:send])
        if send is not None:
            connection.sock.shutdown(socket.SHUT_WR)
        answer = connection.getresponse()
        reply = answer.status, answer.getheaders(), answer.read()
        connection.close()
        return reply

    def answer(self, reply: Reply, *, cut: int | None = None) -> None:
        status, headers, body = reply
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = dict((name.lower(), value) for name, value in headers).get("content-length", "0")
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        self.wfile.flush()
        if cut is not None:
            self.hang_up()

    def hang_up(self, reset: bool = False) -> None:
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            self.connection.shutdown(socket.SHUT_RDWR)


def _error(status: int, code: str, message: str = "") -> Callable[[_Handler, bytes, Fault], None]:
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()

    def act(handler: _Handler, body: bytes, fault: Fault) -> None:
        fault.meanwhile()
        handler.answer((status, [("Content-Type", "application/xml")], b"" if handler.command == "HEAD" else text))

    return act


def _none(handler: _Handler, body: bytes, fault: Fault | None) -> None:
    handler.answer(handler.forward(body))


def _slow(handler: _Handler, body: bytes, fault: Fault) -> None:
    """The response comes after the client's timeout."""
    reply = handler.forward(body)
    fault.meanwhile()
    time.sleep(3)
    handler.answer(reply)


def _torn_response(handler: _Handler, body: bytes, fault: Fault) -> None:
    reply = handler.forward(body)
    handler.answer(reply, cut=len(reply[2]) // 2)


def _torn_upload(handler: _Handler, body: bytes, fault: Fault) -> None:
    handler.forward(body, send=len(body) // 2)
    handler.hang_up()


def _flipped_upload(handler: _Handler, body: bytes, fault: Fault) -> None:
    handler.answer(handler.forward(_flip(body)))


def _flipped_response(handler: _Handler, body: bytes, fault: Fault) -> None:
    status, headers, content = handler.forward(body)
    handler.answer((status, headers, _flip(content)))


def _lost(handler: _Handler, body: bytes, fault: Fault) -> None:
    """The request is carried out, and its response is lost."""
    handler.forward(body)
    fault.meanwhile()
    handler.hang_up()


def _reset(handler: _Handler, body: bytes, fault: Fault) -> None:
    fault.meanwhile()
    handler.hang_up(reset=True)


def _twice(handler: _Handler, body: bytes, fault: Fault) -> None:
    """What a proxy does that makes attempts of its own."""
    handler.forward(body)
    handler.answer(handler.forward(body))


def _flip(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :] if data else data


KINDS: dict[str, Callable[..., None]] = {
    "none": _none,
    "500": _error(500, "InternalError"),
    "503": _error(503, "SlowDown"),
    "409": _error(409, "ConditionalRequestConflict"),
    "slow": _slow,
    "torn response": _torn_response,
    "torn upload": _torn_upload,
    "flipped upload": _flipped_upload,
    "flipped response": _flipped_response,
    "lost response": _lost,
    "reset": _reset,
    "twice": _twice,
    "telling": _error(
        403,
        "AccessDenied",
        "AKIATESTTESTTESTTEST with secret-of-the-tests and token-of-the-tests at http://x/?X-Amz-Signature=abcdef",
    ),
}
