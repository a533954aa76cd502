"""Where a run's files lie when its pods share no folder: ``s3://bucket/prefix/<run>``.

- ``input/`` what its stage needs, put there by whoever submits it
- ``state/`` its checkpoints, put there by the stage
- ``output/`` what its stage wrote, and how it ended

Each holds `parcels`: files as ``blobs/<sha256>``, and their names in a manifest that comes last.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from pydantic import ValidationError

from components.config.registry import RegistrySettings, TransferSettings
from components.errors import InputError
from components.pods.parcels import clear
from components.registry.s3.bucket import Bucket

SCHEME = "s3://"
Part = Literal["input", "state", "output"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, slots=True)
class Depot:
    """Files of one run. Credentials come from where boto3 looks for them, and from nowhere else."""

    uri: str
    endpoint_url: str | None = None
    region: str | None = None
    transfer: TransferSettings = field(default_factory=TransferSettings)

    @classmethod
    def of(cls, uri: str, environment: Mapping[str, str] = os.environ) -> Depot:
        """As a pod finds it: server and region are those that AWS's own tools would take from the environment."""
        endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        return cls(uri, endpoint, environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"))

    def bucket(self, part: Part) -> Bucket:
        """The bucket below one part of it.

        Raises:
            InputError: the address is none, or boto3 cannot be set up.
        """
        name, _, prefix = self.uri.removeprefix(SCHEME).strip("/").partition("/")
        try:
            if not self.uri.startswith(SCHEME) or not prefix:
                raise ValueError("it names no bucket with a prefix")
            settings = RegistrySettings(
                kind="s3",
                bucket=name,
                prefix=f"{prefix}/{part}",
                endpoint_url=self.endpoint_url,
                region=self.region,
                transfer=self.transfer,
            )
        except ValueError as error:
            how = "write s3://bucket/prefix/run, and the server as http(s)://host:port in AWS_ENDPOINT_URL"
            raise InputError(f"not an address of files: {_reason(error)}", where=self.uri, how=how) from None
        return Bucket(settings)


def forget(depot: Depot) -> int:
    """Remove all that a run has there, once its output was taken, or is no longer wanted; returns how many objects."""
    return sum(clear(depot.bucket(part)) for part in PARTS)


def _reason(error: ValueError) -> str:
    """Without what was given, which may hold a password."""
    return "; ".join(str(one["msg"]) for one in error.errors()) if isinstance(error, ValidationError) else str(error)
