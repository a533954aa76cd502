"""A small S3 server for measuring transfers: `python -m tests.benchmarks.s3_stub FOLDER RATE` prints its port.

moto keeps objects in memory and reads all of one for every range, so it would be what is measured. This one keeps files
and knows what a client of one bucket needs: objects with metadata and conditions, ranges, multipart uploads. It
compares checksums, SHA-256 and CRC-32. In a process of its own, so that its memory and time are not the client's. RATE
is what all connections together carry, in bytes a second; with 0, client and server compete for the processor.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
import shutil
import socket
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

BLOCK = 2**20
LOCK = threading.Lock()


class Link:
    """Carries ``rate`` bytes a second; 0: any number."""

    def __init__(self, rate: float = 0.0) -> None:
        self._rate, self._free, self._lock = rate, 0.0, threading.Lock()

    @property
    def block(self) -> int:
        """Bytes that are carried at a time."""
        return BLOCK if self._rate else sys.maxsize

    def carry(self, count: int) -> None:
        """Return when these bytes have arrived."""
        if not self._rate:
            return
        with self._lock:
            now = time.monotonic()
            self._free = max(self._free, now) + count / self._rate
            wait = self._free - now
        time.sleep(wait)


class Crc32:
    value = 0

    def update(self, data: bytes) -> None:
        self.value = zlib.crc32(data, self.value)

    def digest(self) -> bytes:
        return self.value.to_bytes(4)


SUMS = {"x-amz-checksum-sha256": hashlib.sha256, "x-amz-checksum-crc32": Crc32}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 2**16
    folder: Path
    link = Link()
    objects: ClassVar[dict[str, tuple[str, dict[str, str]]]] = {}
    """Key -> ETag and metadata. The content is a file."""

    def log_message(self, *_: object) -> None: ...

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handle_expect_100(self) -> bool:
        """Answered at once: boto3 asks before every upload, and waits a second for what stays in the buffer."""
        answered = super().handle_expect_100()
        self.wfile.flush()
        return answered

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.get("length", str(len(body))))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def error(self, status: int, code: str) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
        self.reply(status, b"" if self.command == "HEAD" else text)

    def asked(self) -> tuple[str, dict[str, str]]:
        split = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
        return unquote(split.path).split("/", 2)[2] if split.path.count("/") > 1 else "", query

    def file(self, name: str) -> Path:
        return self.folder / hashlib.sha256(name.encode()).hexdigest()

    def take(self, path: Path) -> str | None:
        """The body into a file; its ETag, or None where it does not have its checksum."""
        left, temporary = int(self.headers["Content-Length"]), path.with_name(secrets.token_hex(8))
        sums = {name: kind() for name, kind in SUMS.items() if name in self.headers}
        with temporary.open("wb") as file:
            while left and (block := self.rfile.read(min(BLOCK, left))):
                self.link.carry(len(block))
                file.write(block)
                for each in sums.values():
                    each.update(block)
                left -= len(block)
        if left or any(self.headers[name] != base64.b64encode(each.digest()).decode() for name, each in sums.items()):
            temporary.unlink()
            return None
        os.replace(temporary, path)
        return f'"{secrets.token_hex(16)}"'

    def do_PUT(self) -> None:
        key, query = self.asked()
        if "uploadId" in query:
            number, upload = int(query["partNumber"]), query["uploadId"]
            etag = self.take(self.file(f"{upload} {number}"))
            if etag is None:
                return self.error(400, "BadDigest")
            return self.reply(200, ETag=etag)
        with LOCK:
            there = self.objects.get(key)
            wanted = self.headers.get("If-Match")
            if (self.headers.get("If-None-Match") and there) or (wanted and there and there[0] != wanted):
                self.rfile.read(int(self.headers["Content-Length"]))
                return self.error(412, "PreconditionFailed")
            if wanted and not there:
                self.rfile.read(int(self.headers["Content-Length"]))
                return self.error(404, "NoSuchKey")
            etag = self.take(self.file(key)) if key else '""'
            if etag is None:
                return self.error(400, "BadDigest")
            metadata = {name: value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}
            self.objects[key] = etag, metadata
        self.reply(200, ETag=etag)

    def do_POST(self) -> None:
        key, query = self.asked()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "uploads" in query:
            upload = secrets.token_hex(8)
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return self.reply(200, text.encode())
        numbers = [int(number) for number in re.findall(rb"<PartNumber>(\d+)<", body)]
        parts = [self.file(f"{query['uploadId']} {number}") for number in numbers]
        with parts[0].open("ab") as whole:  # later parts are added to the first
            for part in parts[1:]:
                with part.open("rb") as file:
                    shutil.copyfileobj(file, whole, BLOCK)
                part.unlink()
        os.replace(parts[0], self.file(key))
        etag = f'"{secrets.token_hex(16)}-{len(parts)}"'
        self.objects[key] = etag, {}
        self.reply(200, f"<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>".encode())

    def do_GET(self) -> None:
        key, query = self.asked()
        if not key:
            return self.listing(query)
        with LOCK:
            found = self.objects.get(key)
        if found is None:
            return self.error(404, "NoSuchKey")
        with self.file(key).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            start = int(asked[1]) if asked else 0
            end = min(int(asked[2] or size - 1), size - 1) if asked else size - 1
            self.send_response_only(206 if asked else 200)
            self.send_header("ETag", found[0])
            self.send_header("Content-Length", str(end - start + 1))
            self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{end}/{size}")
            for name, value in found[1].items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.flush()
            if self.command == "GET":
                while start <= end and (
                    sent := os.sendfile(
                        self.connection.fileno(), file.fileno(), start, min(self.link.block, end - start + 1)
                    )
                ):
                    self.link.carry(sent)
                    start += sent

    do_HEAD = do_GET

    def listing(self, query: dict[str, str]) -> None:
        kind, entries = "ListMultipartUploadsResult", ""
        if "uploads" not in query:
            keys = sorted(key for key in self.objects if key.startswith(query.get("prefix", "")))
            kind, entries = "ListBucketResult", "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
        self.reply(200, f"<{kind}>{entries}<IsTruncated>false</IsTruncated></{kind}>".encode())

    def do_DELETE(self) -> None:
        key, _ = self.asked()
        with LOCK:
            if self.objects.pop(key, None):
                self.file(key).unlink()
        self.reply(204)


def main() -> None:
    Handler.folder = Path(sys.argv[1])
    Handler.link = Link(float(sys.argv[2]))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
