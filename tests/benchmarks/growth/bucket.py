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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.growth.checkpoints import made, too_large
from tests.benchmarks.growth.curve import PLAIN, Cost, Curve
from tests.benchmarks.growth.measures import clocked, medians, peak
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
def server(folder: Path, rate: float) -> Iterator[int]:
    """The port of one that keeps its files in this folder; ``rate`` in bytes a second, or 0."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.benchmarks.s3_stub", str(folder), str(rate)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else "")
        finally:
            process.kill()
    shutil.rmtree(folder)


def measure(size: int, folder: Path, rate: float = 0, *, digested: bool = False) -> Row:
    """Medians of three; every other time ours is first.

    Args:
        digested: whether a put is given the manifest, as when a checkpoint is proposed.
    """
    if (row := too_large(size, folder)) is not None:
        return row
    return medians([_once(size, folder, rate, digested, ours_first=bool(number % 2)) for number in range(3)])


def _once(size: int, folder: Path, rate: float, digested: bool, *, ours_first: bool) -> Row:
    """Both with a connection that stands, and with nothing left to write of what was before."""
    import boto3

    from components.config.registry import RegistrySettings
    from components.files import manifest
    from components.registry import open_store

    os.environ.update(KEYS)
    source, plain, row = made(size, folder), folder / "plain", dict[str, float]()
    with server(folder / "server", rate) as port:
        address = f"http://127.0.0.1:{port}"
        settings = RegistrySettings(kind="s3", bucket=BUCKET, endpoint_url=address, cache=folder / "cache")
        store, client = open_store(settings), boto3.client("s3", endpoint_url=address)
        plain.mkdir()
        (plain / "warm").touch()
        store.put_tree(plain)
        client.upload_file(str(plain / "warm"), BUCKET, "warm")
        names = sorted(path.name for path in source.iterdir())
        digests: list[str] = []
        files = manifest(source) if digested else None

        def timed(name: str, call: Callable[[], object]) -> None:
            os.sync()
            took = clocked(call)
            row[f"{name}_s"], row[f"{name}_cpu_s"] = took.wall, took.user + took.kernel

        def by_boto3() -> None:
            timed("upload", lambda: [client.upload_file(str(source / name), BUCKET, name) for name in names])
            timed("download", lambda: [client.download_file(BUCKET, name, str(plain / name)) for name in names])

        def by_us() -> None:
            with peak() as putting:
                timed("put", lambda: digests.append(store.put_tree(source, files)))
            with peak() as pulling:
                timed("pull", lambda: store.tree(digests[0]))
            timed("verify", lambda: store.tree(digests[0]))
            row.update(put_mb=putting.mb, pull_mb=pulling.mb)

        for side in (by_us, by_boto3) if ours_first else (by_boto3, by_us):
            side()
    for path in (source, plain, folder / "cache"):
        shutil.rmtree(path)
    return row


SERVER = (
    "boto3's `upload_file` of the same files to the same server grows alike (the line above it): both share the "
    "connection, and the server, which writes files on this machine; which of them it is was not investigated"
)
UP, DOWN = "boto3's upload_file", "boto3's download_file"
CURVE = Curve(
    "checkpoints", "bucket", (10, 100, 1000), 1, measure,
    (
        Cost("upload_s", UP, PLAIN),
        Cost("upload_cpu_s", "of that, processor"),
        Cost("put_s", "put", SERVER),
        Cost("put_cpu_s", "of that, processor"),
        Cost("download_s", DOWN, PLAIN),
        Cost("download_cpu_s", "of that, processor"),
        Cost("pull_s", "pulled"),
        Cost("pull_cpu_s", "of that, processor"),
        Cost("verify_s", "verified, once it was pulled"),
        Cost("put_mb", "putting: peak memory"),
        Cost("pull_mb", "pulling: peak memory"),
    ),
    plain_tools=(("put_s", "upload_s", UP), ("pull_s", "download_s", DOWN)),
)  # fmt: skip
