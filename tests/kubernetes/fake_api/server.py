"""As much of an API server as Evenkeel asks for."""

from __future__ import annotations

import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.kubernetes.fake_api import answers
from tests.kubernetes.fake_api.faults import Fault, Faults
from tests.kubernetes.fake_api.store import Store, selected

PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>v[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<part>[^/]+))?"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as an API server understands it."""

    verb: str
    group: str
    version: str
    plural: str
    namespace: str
    name: str
    part: str
    query: dict[str, str]
    body: dict[str, Any]
    line: str
    """Method, path and query as they came."""

    @property
    def permission(self) -> tuple[str, str, str]:
        return self.group, f"{self.plural}/{self.part}" if self.part else self.plural, self.verb


class FakeApi:
    """It listens on 127.0.0.1 from `running` on."""

    def __init__(self) -> None:
        self.store, self.faults = Store(), Faults()
        self.seen: list[Asked] = []
        self.requests: list[str] = []
        self.namespaces = {"evenkeel"}
        self.served = {"": ["v1"], "batch": ["v1"], "jobset.x-k8s.io": ["v1alpha2"], "storage.k8s.io": ["v1"]}
        self.served |= {"scheduling.k8s.io": ["v1"], "authorization.k8s.io": ["v1"]}
        self.git_version = "v1.36.2"
        self.tokens = {"good"}
        self.denied: set[tuple[str, str, str]] = set()
        self.logs: dict[tuple[str, str], str] = {}
        self.context: ssl.SSLContext | None = None
        self._server: _Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http{'s' if self.context else ''}://127.0.0.1:{self._port}"

    @contextmanager
    def running(self) -> Iterator[FakeApi]:
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def start(self) -> None:
        """Listen; after `stop` at the same address, with the same objects."""
        server = _Server(("127.0.0.1", self._port), type("Handler", (_Handler,), {"api": self}))
        if self.context:
            server.socket = self.context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._port, self._server = server.server_port, server
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """Every connection ends."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.shutdown()
        server.server_close()
        server.end()
        with self.store.changed:
            self.store.changed.notify_all()

    @property
    def up(self) -> bool:
        return self._server is not None

    def count(self, verb: str, plural: str) -> int:
        return sum((one.verb, one.plural) == (verb, plural) for one in self.seen)

    def put(self, plural: str, found: dict[str, Any], namespace: str = "evenkeel") -> dict[str, Any]:
        return self.store.put(plural, namespace, found)


class _Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False

    def __init__(self, *args: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None: ...

    def end(self) -> None:
        """Connections that wait for another request end too."""
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    api: FakeApi
    protocol_version = "HTTP/1.1"
    server_version = "fake"
    wbufsize = 2**16  # one packet for head and body, or every answer would take 40 ms

    def log_message(self, *_: object) -> None: ...

    def do_any(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        line = f"{self.command} {self.path}"
        self.api.requests.append(line)
        try:
            fault = self.api.faults.take(self.command, self.path)
            if fault and fault.kind == "dropped":
                self._drop(fault)
            elif fault and fault.kind in ("status", "text"):
                self._refuse(fault)
            elif self.headers.get("Authorization", "").removeprefix("Bearer ") not in self.api.tokens:
                self._send(401, answers.UNAUTHORIZED)
            else:
                self._serve(json.loads(raw) if raw else {}, line, fault)
        except OSError:
            self.close_connection = True

    do_GET = do_POST = do_DELETE = do_any

    def _refuse(self, fault: Fault) -> None:
        fault.meanwhile()
        if fault.kind == "text":
            page = b"<html>a proxy's page</html>"
            self._bytes(int(fault.body.get("code", 200)), page, {"Content-Type": "text/html", **fault.headers})
        else:
            self._send(int(fault.body["code"]), dict(fault.body), dict(fault.headers))

    def _serve(self, body: dict[str, Any], line: str, fault: Fault | None) -> None:
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        if url.path == "/version":
            return self._answer(200, {"gitVersion": self.api.git_version}, fault)
        group = re.fullmatch(r"/apis/([^/]+)", url.path)
        if group:
            versions = [{"version": one} for one in self.api.served.get(group[1], ())]
            return self._answer(200, {"kind": "APIGroup", "versions": versions}, fault) if versions else self._unknown()
        found = PATH.fullmatch(url.path)
        if not found or found["version"] not in self.api.served.get(found["group"] or "", ()):
            return self._unknown()
        parts = {key: unquote(value or "") for key, value in found.groupdict().items()}
        asked = Asked(self._verb(parts, query), query=query, body=body, line=line, **parts)
        self.api.seen.append(asked)
        if asked.permission in self.api.denied:
            return self._send(403, answers.forbidden(asked.verb, asked.plural, asked.group, asked.namespace))
        getattr(self, f"_{asked.verb}")(asked, fault)

    def _verb(self, parts: dict[str, str], query: dict[str, str]) -> str:
        verb = {"POST": "create", "DELETE": "delete"}.get(self.command, "get" if parts["name"] else "list")
        return "watch" if query.get("watch") == "true" else verb

    def _get(self, asked: Asked, fault: Fault | None) -> None:
        if asked.part == "log":
            return self._log(asked, fault)
        found = self.api.store.get((asked.plural, asked.namespace, asked.name))
        self._answer(200, found, fault) if found else self._send(404, answers.absent(asked.plural, asked.name))

    def _list(self, asked: Asked, fault: Fault | None) -> None:
        start, limit = int(asked.query.get("continue") or 0), int(asked.query.get("limit") or 10**6)
        every = self.api.store.list(asked.plural, asked.namespace)
        labels, fields = asked.query.get("labelSelector", ""), asked.query.get("fieldSelector", "")
        chosen = [one for one in every if selected(one, labels, fields)]
        metadata = {"resourceVersion": str(self.api.store.version)}
        if start + limit < len(chosen):
            metadata["continue"] = str(start + limit)
        self._answer(200, {"kind": "List", "metadata": metadata, "items": chosen[start : start + limit]}, fault)

    def _create(self, asked: Asked, fault: Fault | None) -> None:
        if asked.plural == "selfsubjectaccessreviews":
            wanted = asked.body["spec"]["resourceAttributes"]
            resource = "/".join(filter(None, (wanted["resource"], wanted.get("subresource"))))
            allowed = (wanted["group"], resource, wanted["verb"]) not in self.api.denied
            return self._answer(201, {**asked.body, "status": {"allowed": allowed}}, fault)
        if asked.namespace not in self.api.namespaces:
            return self._send(404, answers.absent("namespaces", asked.namespace))
        name = asked.body["metadata"]["name"]
        with self.api.store.changed:  # a Condition's lock may be taken twice
            if self.api.store.get((asked.plural, asked.namespace, name)):
                return self._send(409, answers.exists(asked.plural, name))
            dry = asked.query.get("dryRun") == "All"
            made = asked.body if dry else self.api.store.put(asked.plural, asked.namespace, asked.body)
        self._answer(201, made, fault)

    def _delete(self, asked: Asked, fault: Fault | None) -> None:
        key = (asked.plural, asked.namespace, asked.name)
        with self.api.store.changed:
            found = self.api.store.get(key)
            if found is None:
                return self._send(404, answers.absent(asked.plural, asked.name))
            wanted = (asked.body.get("preconditions") or {}).get("uid")
            if wanted not in (None, found["metadata"]["uid"]):
                return self._send(409, answers.other_uid(wanted, found["metadata"]["uid"]))
            self.api.store.remove(key)
        self._answer(200, found, fault)

    def _watch(self, asked: Asked, fault: Fault | None) -> None:
        """The present state, then every change, in one long answer."""
        fields, store = asked.query.get("fieldSelector", ""), self.api.store
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with store.changed:
            sent = store.version
            events = [("ADDED", one) for one in store.list(asked.plural, asked.namespace) if selected(one, "", fields)]
        end, count = time.monotonic() + float(asked.query.get("timeoutSeconds") or 3600), 0
        while True:
            for kind, found in events:
                if self._interrupted(fault, count, found):
                    return
                self._chunk(json.dumps({"type": kind, "object": found}).encode() + b"\n")
                count += 1
            if self._interrupted(fault, count, None):
                return
            with store.changed:
                if store.version == sent:
                    store.changed.wait(max(0.0, min(0.1, end - time.monotonic())))
                new = [entry for entry in store.history if entry[0] > sent]
                sent = store.version
            mine = [(kind, found) for _, kind, key, found in new if key[0] == asked.plural]
            events = [(kind, found) for kind, found in mine if selected(found, "", fields)]
            if not self.api.up:
                return self._drop(None)
            if time.monotonic() >= end and not events:
                self.wfile.write(b"0\r\n\r\n")
                return

    def _interrupted(self, fault: Fault | None, count: int, found: dict[str, Any] | None) -> bool:
        if fault is None or count < fault.after:
            return False
        if fault.kind == "cut" and found is not None:
            line = json.dumps({"type": "MODIFIED", "object": found}).encode()
            self._chunk(line[: len(line) // 2])
            self._drop(fault)
            return True
        if fault.kind == "event":
            fault.meanwhile()
            self._chunk(json.dumps({"type": "ERROR", "object": dict(fault.body)}).encode() + b"\n")
            self.wfile.write(b"0\r\n\r\n")
            return True
        return False

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _log(self, asked: Asked, fault: Fault | None) -> None:
        text = self.api.logs.get((asked.name, asked.query.get("container", "")))
        if text is None:
            return self._send(404, answers.absent("pods", asked.name))
        if text == "":
            return self._send(400, answers.NOT_STARTED)
        lines = text.splitlines(keepends=True)
        kept = lines[-int(asked.query["tailLines"]) :] if "tailLines" in asked.query else lines
        self._finish(200, "".join(kept).encode(), {"Content-Type": "text/plain"}, fault)

    def _unknown(self) -> None:
        self._bytes(404, b"404 page not found\n", {"Content-Type": "text/plain"})

    def _answer(self, code: int, found: dict[str, Any], fault: Fault | None) -> None:
        self._finish(code, json.dumps(found).encode(), {"Content-Type": "application/json"}, fault)

    def _finish(self, code: int, data: bytes, headers: dict[str, str], fault: Fault | None) -> None:
        """Respond to a request that was carried out, with its ``fault`` if there is one."""
        if fault is None or fault.kind in ("cut", "event"):
            return self._bytes(code, data, headers)
        fault.meanwhile()
        if fault.kind == "lost":
            return self._drop(None)
        if fault.kind == "slow":
            time.sleep(fault.seconds)
            return self._bytes(code, data, headers)
        self._head(code, len(data), headers)
        if fault.kind == "trickle":
            for byte in data:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(fault.seconds)
            return
        self.wfile.write(data[: len(data) // 2])
        self._drop(None)

    def _send(self, code: int, found: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._bytes(code, json.dumps(found).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _bytes(self, code: int, data: bytes, headers: dict[str, str]) -> None:
        self._head(code, len(data), headers)
        self.wfile.write(data)

    def _head(self, code: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def _drop(self, fault: Fault | None) -> None:
        """End the connection as a machine that fails does."""
        if fault is not None:
            fault.meanwhile()
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True
