"""An S3 server for tests: moto, with what it leaves out.

moto looks at a condition and writes in two steps, believes every checksum, and stores what has arrived of an upload
that was torn. Here a conditional write is one step, content must have its checksum and its length, and a caller may say
what else the server does wrong.
"""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from components.config.registry import RegistrySettings, TransferSettings

BUCKET = "models"
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST",
    "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests",
    "AWS_SESSION_TOKEN": "token-of-the-tests",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}
PATIENCE = TransferSettings(connect_timeout=2, read_timeout=2, attempts=5, deadline=8)
"""What a server on the same machine deserves."""
CHECKSUMS = {
    "SHA256": lambda body: hashlib.sha256(body).digest(),
    "CRC32": lambda body: zlib.crc32(body).to_bytes(4),
}


class Strict:
    """A WSGI application in front of moto's."""

    def __init__(self, app: Any) -> None:
        self._app, self._one_at_a_time = app, threading.Lock()
        self.ignores: set[str] = set()
        """Of `if-none-match`, `if-match`, `checksums` (or one of `CHECKSUMS`) and `metadata`, what it does not know."""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)
        if len(body) != length:
            return _refuse(start_response, "IncompleteBody")
        for name, digest in CHECKSUMS.items():
            claimed = environ.get(f"HTTP_X_AMZ_CHECKSUM_{name}")
            if (
                claimed
                and not self.ignores & {"checksums", name}
                and claimed != base64.b64encode(digest(body)).decode()
            ):
                return _refuse(start_response, "BadDigest")
        for header in self.ignores & {"if-none-match", "if-match"}:
            if environ["REQUEST_METHOD"] == "PUT":
                environ.pop(f"HTTP_{header.upper().replace('-', '_')}", None)
        if "metadata" in self.ignores:
            for name in [name for name in environ if name.startswith("HTTP_X_AMZ_META_")]:
                del environ[name]
        if environ["REQUEST_METHOD"] in ("PUT", "POST", "DELETE"):
            try:
                with self._one_at_a_time:
                    return list(self._app(environ, start_response))
            except KeyError:  # moto does not look whether there is such an upload
                return _refuse(start_response, "NoSuchUpload")
        return self._app(environ, start_response)  # type: ignore[no-any-return]


def _refuse(start_response: Any, code: str) -> list[bytes]:
    start_response("400 Bad Request", [("Content-Type", "application/xml")])
    return [f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()]


class S3Server:
    """It listens on 127.0.0.1 from `running` on. Tests keep out of each other's way with a prefix."""

    def __init__(self) -> None:
        self.app = Strict(DomainDispatcherApplication(create_backend_app))
        self._server = make_server("127.0.0.1", 0, self.app, threaded=True, request_handler=MotoRequestHandler)
        self.port: int = self._server.port
        self.url = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[S3Server]:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        self.client.create_bucket(Bucket=BUCKET)
        yield self
        self._server.shutdown()
        thread.join()
        self._server.server_close()

    @cached_property
    def client(self) -> Any:
        """A plain boto3 client, to look behind the store."""
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        return boto3.session.Session(**keys).client("s3", endpoint_url=self.url)

    def settings(self, tmp_path: Path, prefix: str, **other: Any) -> RegistrySettings:
        given = {"endpoint_url": self.url, "transfer": PATIENCE, **other}
        return RegistrySettings(kind="s3", bucket=BUCKET, prefix=prefix, cache=tmp_path / "cache", **given)
