"""The registry in a bucket, compared with plain boto3 with the same server, which is a process of its own on this
machine.

boto3's `upload_file` compares one checksum (CRC32) on the way up and none on the way down; ours knows the sha256 of
every file before and after.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.growth.checkpoints import made, too_large
from tests.benchmarks.growth.curve import PLAIN, Cost, Curve
from tests.benchmarks.growth.measures import medians, peak, wall_s
from tests.benchmarks.section import Row
from tests.code_graph import ROOT

BUCKET = "models"
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIABENCHBENCHBENCH0",
    "AWS_SECRET_ACCESS_KEY": "secret-of-nothing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}
"""The server takes any."""


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """The port of one that keeps its files in this folder."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.benchmarks.s3_stub", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else "")
        finally:
            process.kill()
    shutil.rmtree(folder)


def measure(size: int, folder: Path) -> Row:
    """Medians of three up to 100 MB, once above."""
    if (row := too_large(size, folder)) is not None:
        return row
    return medians([_once(size, folder) for _ in range(3 if size <= 100 else 1)])


def _once(size: int, folder: Path) -> Row:
    """On the clock; the neighbours in turn, both with a connection that stands."""
    import boto3

    from components.config.registry import RegistrySettings
    from components.registry import open_store

    os.environ.update(KEYS)
    source = made(size, folder)
    with server(folder / "server") as port:
        address = f"http://127.0.0.1:{port}"
        settings = RegistrySettings(kind="s3", bucket=BUCKET, endpoint_url=address, cache=folder / "cache")
        store, client = open_store(settings), boto3.client("s3", endpoint_url=address)
        store.put_if_absent("warm", b"")
        client.upload_file(str(source / "config.json"), BUCKET, "warm")
        (folder / "plain").mkdir()
        names = sorted(path.name for path in source.iterdir())

        def uploaded() -> None:
            for name in names:
                client.upload_file(str(source / name), BUCKET, f"plain/{name}")

        def downloaded() -> None:
            for name in names:
                client.download_file(BUCKET, f"plain/{name}", str(folder / "plain" / name))

        up, down = wall_s(uploaded), wall_s(downloaded)
        digests: list[str] = []
        with peak() as putting:
            put = wall_s(lambda: digests.append(store.put_tree(source)))
        with peak() as pulling:
            pull = wall_s(lambda: store.tree(digests[0]))
        verify = wall_s(lambda: store.tree(digests[0]))
    for path in (source, folder / "plain", folder / "cache"):
        shutil.rmtree(path)
    return {
        "upload_s": up,
        "download_s": down,
        "put_s": put,
        "pull_s": pull,
        "verify_s": verify,
        "put_mb": putting.mb,
        "pull_mb": pulling.mb,
    }


SERVER = (
    "boto3's `upload_file` of the same files to the same server grows alike (the line above it): both share the "
    "connection, and the server, which writes files on this machine; which of them it is was not investigated"
)
CURVE = Curve(
    "checkpoints", "bucket", (10, 100, 1000), 1, measure,
    (
        Cost("upload_s", "boto3's upload_file", PLAIN),
        Cost("put_s", "put", SERVER),
        Cost("download_s", "boto3's download_file", PLAIN),
        Cost("pull_s", "pulled"),
        Cost("verify_s", "verified, once it was pulled"),
        Cost("put_mb", "putting: peak memory"),
        Cost("pull_mb", "pulling: peak memory"),
    ),
    plain_tools=(("put_s", "upload_s", "boto3's upload_file"), ("pull_s", "download_s", "boto3's download_file")),
)  # fmt: skip
