"""boto3's transfer manager, with our idea of which failures are worth another attempt."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from botocore.exceptions import ClientError
from s3transfer.manager import TransferConfig, TransferManager

from components.config.registry import TransferSettings
from components.registry.s3.retries import GivenUp, Retries, passing, word


def prepared(client: Any, transfer: TransferSettings) -> Any:
    """A client for transfers: its requests are repeated."""
    events = client.meta.events
    events.register("needs-retry.s3", Repeating(Retries(transfer.attempts, transfer.deadline)))
    events.register("before-parameter-build.s3.UploadPart", _digested)
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
        io_chunksize=2**20,
    )
    return TransferManager(client, config)


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


def _digested(params: dict[str, Any], **_: Any) -> None:
    """The part's checksum in a header. botocore would send it after the body, which not every server understands."""
    params["ChecksumSHA256"] = base64.b64encode(hashlib.sha256(params["Body"].read()).digest()).decode()
    params["Body"].seek(0)
