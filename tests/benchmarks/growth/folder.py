"""The registry in a folder, beside `cp` and `sha256sum` on the same files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.benchmarks.growth.checkpoints import made, too_large
from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.measures import busy, peak, wall_s
from tests.benchmarks.section import Row

FLUSHED, HASHED = (f"find . -type f -print0 | xargs -0 {tool}" for tool in ("sync", "sha256sum"))


def plain(source: Path, target: Path) -> float:
    """Seconds of `cp` to disk and a `sha256sum` of the copy: what anybody would do by hand."""
    copy = ["cp", "-r", "--sparse=never", "--reflink=never", str(source), str(target)]

    def run() -> None:
        subprocess.run(copy, check=True)
        for command in (FLUSHED, HASHED):
            subprocess.run(["sh", "-c", command], cwd=target, check=True, stdout=subprocess.DEVNULL)

    seconds = wall_s(run)
    shutil.rmtree(target)
    return seconds


def measure(size: int, folder: Path) -> Row:
    """On the clock, for all of it waits for the disk; ``put_cpu_s`` is the processor's share of putting."""
    from components.registry.checkpoints import check_proposed, check_stored
    from components.registry.directory import DirectoryStore

    if (row := too_large(size, folder)) is not None:
        return row
    source = made(size, folder)
    root = folder / "registry"
    store = DirectoryStore(root)
    beside = plain(source, folder / "plain")
    began = busy()
    with peak() as putting:
        put = wall_s(lambda: (check_proposed(source), store.put_tree(source)))
    put_cpu = busy() - began
    (tree,) = (root / "trees").iterdir()
    shutil.rmtree(source)
    verify = wall_s(lambda: check_stored(store.tree(tree.name)))
    with peak() as pulling:
        pull = wall_s(lambda: store.fetch_tree(tree.name, folder / "pulled"))
    for path in (root, folder / "pulled"):
        shutil.rmtree(path)
    return {
        "plain_s": beside,
        "put_s": put,
        "put_cpu_s": put_cpu,
        "verify_s": verify,
        "pull_s": pull,
        "put_mb": putting.mb,
        "pull_mb": pulling.mb,
    }


DISK = (
    "each byte is read, hashed and copied equally often at every size (the processor's share is linear); what "
    "fits into the page cache does not wait for the disk, and the largest does not fit, as `cp` shows beside it"
)
CURVE = Curve(
    "checkpoints", "folder", (10, 100, 1000, 10**4), 1, measure,
    (
        Cost("put_s", "checked and put", DISK),
        Cost("put_cpu_s", "of that, processor"),
        Cost("verify_s", "verified where it lies", DISK),
        Cost("pull_s", "pulled", DISK),
        Cost("put_mb", "putting: peak memory"),
        Cost("pull_mb", "pulling: peak memory"),
    ),
    beside=(("put_s", "plain_s", "cp and sha256sum"), ("pull_s", "plain_s", "cp and sha256sum")),
)  # fmt: skip
