"""The one place where requests are made."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import Any, TypeVar

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, FlexibleChecksumError
from s3transfer.futures import TransferFuture
from s3transfer.manager import TransferManager

from components.config.registry import RegistrySettings, endpoint_problems
from components.errors import InputError
from components.registry.base import LARGEST
from components.registry.s3 import moving
from components.registry.s3.retries import FAILURES, Damaged, GivenUp, Retries, code_of, passing, refusal, word

T = TypeVar("T")
BLOBS = "blobs/"
"""Files, under their sha256."""


class Bucket:
    """A bucket below a prefix. Any number of threads may use it; a child process needs one of its own."""

    def __init__(self, settings: RegistrySettings) -> None:
        if settings.bucket is None:
            raise ValueError("these are not the settings of a bucket")
        self.name = settings.bucket
        self.prefix = f"{settings.prefix}/" if settings.prefix else ""
        self.transfer = settings.transfer
        self.retries = Retries(settings.transfer.attempts, settings.transfer.deadline)
        self._connect = partial(_client, _session(), settings)
        self.client = self._connect()
        self.endpoint = str(self.client.meta.endpoint_url)

    @cached_property
    def _mover(self) -> Any:
        """A client that repeats requests by itself, as transfers need it."""
        return moving.prepared(self._connect(), self.transfer)

    def manager(self) -> TransferManager:
        """What moves files, for `move`. It is to be closed."""
        return moving.manager(self._mover, self.transfer)

    def where(self, key: str = "") -> str:
        """An object, or the bucket, for error messages."""
        return f"s3://{self.name}/{self.prefix}{key} at {self.endpoint}"

    def damaged(self, key: str) -> InputError:
        """A stored object is not what was stored, or is gone."""
        return InputError(
            "a stored checkpoint no longer has the digest it is stored under",
            where=self.where(key),
            how="it was changed, damaged or removed: find out how, remove this and its manifest, and propose it again",
        )

    def move(
        self, operation: str, key: str, start: Callable[..., TransferFuture], otherwise: Mapping[str, bool]
    ) -> bool:
        """Transfer a file to its end; True, or what ``otherwise`` has for the code with which the server refused.

        Args:
            start: begins it, or begins it again, given bucket and key.

        Raises:
            Unavailable, InputError: as of `run`.
        """

        def send() -> bool:
            try:
                start(bucket=self.name, key=self.prefix + key).result()
            except FlexibleChecksumError:
                raise Damaged from None
            except FAILURES as error:
                if not passing(error):
                    raise
                raise GivenUp(word(error), self.transfer.attempts) from None
            return True

        return self.run(operation, key, send, otherwise)

    def run(self, operation: str, key: str, send: Callable[[], T], otherwise: Mapping[str, T] | None = None) -> T:
        """What ``send`` returns, with retries, or what ``otherwise`` has for the code with which the server refused.

        Raises:
            Unavailable: no answer in time.
            InputError: the server refused with another code.
        """
        try:
            return self.retries.run(operation, self.where(key), send)
        except ClientError as error:
            if otherwise and code_of(error) in otherwise:
                return otherwise[code_of(error)]
            raise refusal(error, operation, self.where(key)) from None

    def call(self, operation: str, key: str, *, otherwise: Mapping[str, Any] | None = None, **parameters: Any) -> Any:
        """One request of the client (``operation`` is its method) about an object."""
        method = getattr(self.client, operation)
        return self.run(
            operation,
            key,
            lambda: method(Bucket=self.name, Key=self.prefix + key, **parameters),
            otherwise,
        )

    def read(self, key: str) -> bytes | None:
        """The content of a small object; None where there is none.

        Raises:
            InputError: it is larger than any of ours.
        """

        def send() -> bytes:
            answer = self.client.get_object(Bucket=self.name, Key=self.prefix + key)
            return self.content(answer, key)

        return self.run("get_object", key, send, {"NoSuchKey": None})

    def content(self, answer: Mapping[str, Any], key: str) -> bytes:
        """What is read of an answer to get_object about a small object.

        Raises:
            InputError: as of `read`.
        """
        if answer["ContentLength"] > LARGEST:
            answer["Body"].close()
            raise InputError("too large for a record", where=self.where(key), how="find out who wrote it")
        return answer["Body"].read()  # type: ignore[no-any-return]

    def list(self, operation: str, field: str, key: str = "", **parameters: Any) -> list[dict[str, Any]]:
        """All entries of a listing, which the server gives in pages."""
        paginator = self.client.get_paginator(operation)

        def send() -> list[dict[str, Any]]:
            pages = paginator.paginate(Bucket=self.name, **parameters)
            return [entry for page in pages for entry in page.get(field) or ()]

        return self.run(operation, key, send)


def _session() -> boto3.session.Session:
    core = botocore.session.Session()
    core.register_component("data_loader", _loader())
    return boto3.session.Session(botocore_session=core)


def _client(session: boto3.session.Session, settings: RegistrySettings) -> Any:
    """A client that makes no retries of its own, so that ours know what may have happened."""
    transfer = settings.transfer
    _no_secrets_in_logs()
    config = Config(
        connect_timeout=transfer.connect_timeout,
        read_timeout=transfer.read_timeout,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=transfer.concurrency + 2,
        request_checksum_calculation="when_required",
        # With when_required s3transfer 0.19 plans the parts of a download within the first one, and hangs.
        response_checksum_validation="when_supported",
        # What is sent carries its sha256 in a header, which is signed: no need to digest it for the signature, too.
        s3={"payload_signing_enabled": False} | ({"addressing_style": "path"} if settings.endpoint_url else {}),
    )
    try:
        client = session.client("s3", endpoint_url=settings.endpoint_url, region_name=settings.region, config=config)
        if any(endpoint_problems(client.meta.endpoint_url)):
            raise ValueError
    except (BotoCoreError, ValueError) as error:
        known = isinstance(error, BotoCoreError)
        raise InputError(
            f"boto3 cannot be set up ({type(error).__name__})" if known else "AWS_ENDPOINT_URL is not a bare address",
            where="registry",
            how="correct registry.region and registry.endpoint_url, and the environment and files that boto3 reads",
        ) from None
    return client


@cache
def _loader() -> Any:
    """What botocore knows of S3, read once a process; nothing of an environment or of credentials."""
    return botocore.session.Session().get_component("data_loader")


def _no_secrets_in_logs() -> None:
    """At level DEBUG botocore writes out what it signs, session tokens included, and s3transfer what servers say."""
    for logger in map(logging.getLogger, ("botocore", "s3transfer")):
        logger.setLevel(max(logger.level, logging.WARNING))


def checksum(digest: bytes) -> str:
    """A digest as S3 writes it."""
    return base64.b64encode(digest).decode("ascii")
