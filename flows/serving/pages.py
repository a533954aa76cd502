"""Reports and data docs of runs over HTTP, so that links in the Prefect UI open them.

Loopback only, reading only, and of a run, or of the evidence for a candidate, only what is below its `out/` and belongs
to a page. A page elsewhere whose name was made to point here (DNS rebinding) is refused by its ``Host``, and no page
may load anything from elsewhere. Static files of `starlette` need an event loop in the supervisor, and these rules too.
"""

from __future__ import annotations

import html
import os
import re
import sys
import threading
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from components.files import sha256_bytes
from components.layout import Layout
from components.processes.environments import LOOPBACK

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""What pages consist of; nothing else is served."""
PAGES_VARIABLE = "EVENKEEL_PAGES_URL"
"""Address below which ``runs/<run-id>/out/...`` is served: browsers follow no ``file:`` link from a server's page."""
EVIDENCE = Path(".state/evidence")
"""Copies of the pages of candidates' evidence, in the project; a folder each, named after the evidence's digest."""
PATH = re.compile(
    r"/(?:runs/(?P<run>[A-Za-z0-9][\w.\-]*)|evidence/(?P<evidence>[0-9a-f]{64}))"
    r"/out/(?P<rest>(?:[A-Za-z0-9_][\w.\-]*/)*[A-Za-z0-9_][\w.\-]*)"
)
POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A report and the data docs carry all that they need."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
FIRST, PORTS = 20_000, 10_000
"""Where ports of pages begin, and how many there are: below those that systems hand out by themselves."""
POLL = 0.1
"""Seconds that an end may take to be noticed."""


class Server(ThreadingHTTPServer):
    """Ignores browsers that disconnect during a response."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # what it was called with


class PageServer:
    """Serves the pages of a project's runs, ``with PageServer(project) as pages: pages.url``.

    A project has the same port every time, for links outlive it: in a form that waits for days, say. Where that is
    taken it is another one.
    """

    def __init__(self, project: Path) -> None:
        handler = partial(Handler, project)
        own_port = FIRST + int(sha256_bytes(bytes(project.resolve())), 16) % PORTS
        try:
            self._server = Server((LOOPBACK, own_port), handler)
        except OSError:
            self._server = Server((LOOPBACK, 0), handler)
        self.url = f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def __enter__(self) -> PageServer:
        threading.Thread(target=self._server.serve_forever, args=(POLL,), name="pages", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def find(project: Path, url_path: str) -> Path | None:
    """The file that a URL's path means; None where it is not one that is served."""
    try:
        matched = PATH.fullmatch(unquote(urlsplit(url_path).path))
        if matched is None:
            return None
        home = Path("runs", matched["run"]) if matched["run"] else EVIDENCE / matched["evidence"]
        path = project.resolve() / home / "out" / matched["rest"]
        real = path.resolve(strict=True)
    except (ValueError, OSError):  # no URL at all; a file that does not exist, or cannot under such a name
        return None
    # A link would lead out of the run.
    return path if real == path and path.suffix in TYPES and path.is_file() else None


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server_version, sys_version = "evenkeel", ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def __init__(self, project: Path, *arguments: object) -> None:
        self._project = project
        super().__init__(*arguments)  # type: ignore[arg-type]  # socket, address, server

    def do_GET(self) -> None:
        port = self.server.server_address[1]  # type: ignore[index]
        if self.headers.get("Host") not in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"not this host")
        elif self.path == "/":
            self._answer(HTTPStatus.OK, self._index(), TYPES[".html"])
        elif (path := find(self._project, self.path)) is None:
            self._answer(HTTPStatus.NOT_FOUND, b"no such page")
        else:
            self._answer(HTTPStatus.OK, path.read_bytes(), TYPES[path.suffix])

    def _index(self) -> bytes:
        """Links to all reports, the newest first."""
        reports = list(self._project.glob("runs/*/out/report.html"))
        reports.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        runs = [html.escape(path.parts[-3]) for path in reports]
        body = "".join(f'<li><a href="/runs/{run}/out/report.html">{run}</a></li>' for run in runs)
        body = body or "<li>none yet</li>"
        return f"<!doctype html><title>Evenkeel: reports</title><h1>Reports</h1><ul>{body}</ul>".encode()

    def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Page views are not logged."""


def addresses(layout: Layout, folder: str) -> dict[str, str]:
    """Title -> address of every page that there is; ``folder`` is the layout's own on the server of pages."""
    base = os.environ.get(PAGES_VARIABLE, "").rstrip("/")

    def address(path: Path) -> str:
        if not base:
            return path.resolve().as_uri()
        return f"{base}/{quote(folder)}/{quote(path.relative_to(layout.root).as_posix())}"

    validation = layout.data / "validation.html"
    pages = {"Report": layout.report, "Data validation": validation, "Verifier audit": layout.audit_page}
    return {title: address(path) for title, path in pages.items() if path.is_file()}
