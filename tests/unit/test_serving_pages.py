"""The page server gives out pages of runs to this machine's browser, and nothing else."""

from __future__ import annotations

import http.client
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.serving.pages import PageServer

REPORT = "/runs/demo-12345678/out/report.html"
EVIDENCE = "e" * 64


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("project")
    out = tmp_path / "runs/demo-12345678/out"
    (out / "data/docs").mkdir(parents=True)
    (out / "report.html").write_text("<p>a report</p>", encoding="utf-8")
    (out / "data/docs/style.css").write_text("p {}", encoding="utf-8")
    (out / "data/train.jsonl").write_text("{}", encoding="utf-8")
    (out.parent / "params.html").write_text("not a page", encoding="utf-8")
    (tmp_path / "secret.html").write_text("secret", encoding="utf-8")
    (out / "link.html").symlink_to(tmp_path / "secret.html")
    (tmp_path / "elsewhere/out").mkdir(parents=True)
    (tmp_path / "elsewhere/out/report.html").write_text("secret", encoding="utf-8")
    (tmp_path / "runs/linked").symlink_to(tmp_path / "elsewhere")
    (out / "folder").symlink_to(tmp_path / "elsewhere/out")
    judged = tmp_path / ".state/evidence" / EVIDENCE
    (judged / "out").mkdir(parents=True)
    (judged / "out/report.html").write_text("<p>what was judged</p>", encoding="utf-8")
    (judged / "lineage.html").write_text("not a page", encoding="utf-8")
    (tmp_path / ".state/evidence" / ("f" * 64)).symlink_to(tmp_path / "elsewhere")
    return tmp_path


@pytest.fixture(scope="module")
def server(project: Path) -> Iterator[PageServer]:
    with PageServer(project) as server:
        yield server


def ask(server: PageServer, path: str, method: str = "GET", host: str = "") -> http.client.HTTPResponse:
    """The path goes out as it is: no client tidies it up."""
    address = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=5)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or address)
    connection.endheaders()
    return connection.getresponse()


def test_a_report_is_served_with_headers_that_keep_it_from_doing_harm(server: PageServer) -> None:
    answer = ask(server, REPORT)
    assert (answer.status, answer.read()) == (200, b"<p>a report</p>")
    assert answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/runs/demo-12345678/out/data/docs/style.css?v=1", "text/css", "p {}"),
        (f"/evidence/{EVIDENCE}/out/report.html", "text/html", "<p>what was judged</p>"),
        ("/", "text/html", f'<a href="{REPORT}">demo-12345678</a>'),
    ],
)
def test_what_pages_need_the_evidence_and_a_list_of_reports_are_served(
    server: PageServer, path: str, kind: str, body: str
) -> None:
    answer = ask(server, path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    assert body.encode() in answer.read()


@pytest.mark.parametrize(
    "path",
    [
        "/secret.html",
        "/runs/demo-12345678/params.html",
        "/runs/demo-12345678/out/data/train.jsonl",
        "/runs/demo-12345678/out",
        "/runs/demo-12345678/out/",
        "/runs/demo-12345678/out/../params.html",
        "/runs/demo-12345678/out/../../../secret.html",
        "/runs/demo-12345678/out/%2e%2e/%2e%2e/%2e%2e/secret.html",
        "/runs/demo-12345678/out/..%2f..%2f..%2fsecret.html",
        "/runs/../secret.html",
        "/runs/demo-12345678/out//etc/passwd.html",
        "/runs/demo-12345678/out/report.html%00.css",
        "/runs/demo-12345678/out/.hidden.html",
        "/runs/demo-12345678/out/link.html",
        "/runs/demo-12345678/out/folder/report.html",
        "/runs/linked/out/report.html",
        f"/evidence/{EVIDENCE}/lineage.html",
        f"/evidence/{EVIDENCE[:12]}/out/report.html",
        f"/evidence/{'f' * 64}/out/report.html",
        f"/evidence/{EVIDENCE}/out/../../../../secret.html",
        "/runs/demo-12345678/out/missing.html",
        "/runs/demo-12345678/out/" + "a" * 5000 + ".html",
        "http://127.0.0.1/secret.html",
    ],
)
def test_nothing_else_is_served(server: PageServer, path: str) -> None:
    answer = ask(server, path)
    assert answer.status == 404
    assert b"secret" not in answer.read()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example"]
)
def test_a_foreign_host_is_refused(server: PageServer, host: str) -> None:
    assert ask(server, REPORT, host=host).status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_it_only_reads(server: PageServer, method: str) -> None:
    assert ask(server, REPORT, method=method).status in (405, 501)


def test_a_page_has_the_same_address_after_a_restart_unless_its_port_is_taken(tmp_path: Path) -> None:
    with PageServer(tmp_path) as first, PageServer(tmp_path) as second:
        assert second.url != first.url
    with PageServer(tmp_path) as again:
        assert again.url == first.url


def test_what_no_browser_sends_is_no_page_and_no_stack_on_the_console(
    server: PageServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(server, "http://[x/").status == 404
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets it
        connection.sendall(b"GET / HT")
        time.sleep(0.1)  # until somebody reads
    time.sleep(0.2)
    assert ask(server, REPORT).status == 200
    assert capfd.readouterr().err == ""
