"""Where candidates, promotion records, aliases and checkpoints are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from components.config.base import Section
from components.config.urls import host_and_port

BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PREFIX = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*)?")
ONLY_S3 = ("bucket", "prefix", "endpoint_url", "region")
"""Settings that mean nothing to a folder."""


class TransferSettings(Section):
    """How patiently and how widely files are moved to and from S3."""

    part_size: int = Field(
        5 * 2**20,
        ge=5 * 2**20,
        le=2**30,
        description="Bytes that are sent or fetched at once; S3 takes no parts below 5 MiB. A file of more than "
        "10,000 such parts gets larger ones.",
    )
    concurrency: int = Field(
        8,
        ge=1,
        le=64,
        description="Files, and parts of files, under way at a time; a part takes its size in memory.",
    )
    connect_timeout: float = Field(5.0, gt=0, description="Seconds until a connection must stand.")
    read_timeout: float = Field(30.0, gt=0, description="Seconds of silence after which a request is given up.")
    attempts: int = Field(6, ge=1, le=50, description="Times that a request is made before it is given up.")
    deadline: float = Field(
        120.0, gt=0, description="Seconds for a request, or for one part of a file, with all its attempts and pauses."
    )


class RegistrySettings(Section):
    """A folder, or a bucket of S3 or of a server that speaks like it and honours conditional writes.

    There is no setting for a key or a token: boto3 looks for them in the environment, in its own files and in the
    machine's role.
    """

    kind: Literal["directory", "s3"] = Field("directory", description="directory: a folder. s3: a bucket.")
    path: Path = Field(Path("registry"), description="Kind directory: folder of the store, shared by all runs.")
    bucket: str | None = Field(None, description="Kind s3: the bucket, which must exist.")
    prefix: str = Field("", description="Kind s3: what all names in the bucket start with, such as team/evenkeel.")
    endpoint_url: str | None = Field(None, description="Kind s3: the server, http(s)://host:port; AWS where absent.")
    region: str | None = Field(None, description="Kind s3: the bucket's region; absent: boto3's own configuration.")
    cache: Path = Field(
        Path(".state/registry"), description="Kind s3: folder of the checkpoints that were fetched; it may be deleted."
    )
    transfer: TransferSettings = TransferSettings()

    def conflicts(self) -> Iterator[str]:
        if self.kind == "directory":
            if given := [name for name in ONLY_S3 if getattr(self, name)]:
                yield f"{', '.join(given)}: for kind s3, and this is kind directory; write kind: s3"
        elif self.bucket is None:
            yield "kind s3 needs the name of its bucket (bucket)"
        elif not BUCKET.fullmatch(self.bucket):
            yield "bucket: 3 to 63 lower-case letters, digits, dots and hyphens, and no more than a name"
        if not PREFIX.fullmatch(self.prefix):
            yield "prefix: letters, digits and . _ - between slashes, without one at the ends"
        if self.endpoint_url is not None:
            yield from endpoint_problems(self.endpoint_url)

    @property
    def address(self) -> str:
        """The store in one word, for people: its folder, or s3://bucket/prefix."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/") if self.kind == "s3" else str(self.path)

    def under(self, project: Path) -> RegistrySettings:
        """The same with its folders in a project, where they are relative, so that all runs share them."""
        return self.model_copy(update={"path": project / self.path, "cache": project / self.cache})


def endpoint_problems(url: str) -> Iterator[str]:
    """What is wrong with the address of a server, which must be bare; the address is not repeated.

    A URL can hold a password, or be a signed one, and errors end up in logs. For the same reason this is checked with
    the section, whose errors do not repeat a field's value.
    """
    if "@" in url:
        yield (
            "endpoint_url holds a name or a password (it is not repeated here); give the bare address, and the "
            "credentials to boto3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role"
        )
    try:
        host_and_port(url)
    except ValueError:
        yield "endpoint_url: write it as http://host:port or https://host:port, and no more"
