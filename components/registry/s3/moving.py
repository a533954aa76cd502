"""boto3's transfer manager, with our idea of which failures are worth another attempt."""

from __future__ import annotations

import base64
from typing import Any

from botocore.exceptions import ClientError
from s3transfer.manager import TransferConfig, TransferManager

from components.config.registry import TransferSettings
from components.registry.s3.digested import Digested
from components.registry.s3.retries import GivenUp, Retries, passing, word

BLOCK = 2**17
"""Bytes of a part that are sent in one call. One call for all of it would have to end within the connect timeout."""


def checksum(crc32: int) -> str:
    """A CRC-32 as S3 writes it."""
    return base64.b64encode(crc32.to_bytes(4)).decode()


def prepared(client: Any, transfer: TransferSettings) -> Any:
    """A client for transfers: its requests are repeated."""
    client.meta.events.register("needs-retry.s3", Repeating(Retries(transfer.attempts, transfer.deadline)))
    return client


def manager(client: Any, transfer: TransferSettings) -> TransferManager:
    """For the transfers of a `with` block; where an error leaves it, those that are under way end."""
    config = TransferConfig(
        multipart_threshold=transfer.part_size,
        multipart_chunksize=transfer.part_size,
        max_request_concurrency=transfer.concurrency,
        max_submission_concurrency=transfer.concurrency,
        max_in_memory_upload_chunks=transfer.concurrency,
        max_in_memory_download_chunks=transfer.concurrency,
        num_download_attempts=transfer.attempts,
        io_chunksize=transfer.part_size,  # threads that hand over less wait for each other more than for the server
        max_io_queue_size=transfer.concurrency,
    )
    return TransferManager(Summed(client), config)


class Repeating:
    """What botocore asks after every attempt of a request: how long to wait before another one; None where it
    succeeded, or was refused."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries

    def __call__(
        self, response: Any, operation: Any, caught_exception: Exception | None, request_dict: dict[str, Any], **_: Any
    ) -> float | None:
        """Pauses itself.

        Raises:
            GivenUp: no attempt is left. The manager passes it on, while it would repeat what botocore gives up.
        """
        error = caught_exception
        if response is not None and response[0].status_code >= 300:
            error = ClientError(response[1], operation.name)
        if error is None or not passing(error):
            return None
        attempts = request_dict["context"].setdefault("evenkeel_attempts", self._retries.begin())
        if not attempts.again():
            raise GivenUp(word(error), attempts.made)
        return 0.0


class Blocks:
    """A part of a file, in larger blocks than http.client asks for (16 KB, which take longer to read than to send)."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)

    def read(self, size: int = -1) -> bytes:
        return self._part.read(max(size, BLOCK) if size > 0 else None)  # type: ignore[no-any-return]


class Summed:
    """A client that sends the parts of files with their checksums."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.files: dict[str, Digested] = {}
        """Key -> what is sent there."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def upload_part(self, *, Key: str, PartNumber: int, Body: Any, **given: Any) -> Any:
        """In a header: botocore would send a checksum after the body, which not every server understands."""
        given |= {"Body": Blocks(Body), "ChecksumCRC32": checksum(self.files[Key].crc32(PartNumber))}
        return self._client.upload_part(Key=Key, PartNumber=PartNumber, **given)

    def put_object(self, *, Key: str, **_: Any) -> Any:
        """The manager sends a file at once that has become smaller than a part since it was digested."""
        raise self.files[Key].changed

    def complete_multipart_upload(self, *, Key: str, MultipartUpload: Any, **given: Any) -> Any:
        """Unless the file is not the one that was digested."""
        self.files[Key].check(len(MultipartUpload["Parts"]))
        return self._client.complete_multipart_upload(Key=Key, MultipartUpload=MultipartUpload, **given)
