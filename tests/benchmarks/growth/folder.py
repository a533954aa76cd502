"""The registry in a folder, compared with `cp` and `sha256sum` on the same files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from statistics import median

from tests.benchmarks.growth.checkpoints import SHARD, made, too_large
from tests.benchmarks.growth.curve import PLAIN, Cost, Curve
from tests.benchmarks.growth.measures import clocked, medians, peak, wall_s
from tests.benchmarks.section import Row

KEPT = 6
"""Copies of a shard."""
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
    """On the clock, for all of it waits for the disk; ``put_user_s`` and
    ``put_kernel_s`` are the processor's share of putting."""
    if (row := too_large(size, folder)) is not None:
        return row
    found = medians([_once(size, folder) for _ in range(3 if size == 10 else 1)])
    return {**found, **(_in_memory(folder) if size == SHARD else {})}


def _once(size: int, folder: Path) -> Row:
    from components.checkpoints.checks import check_proposed, check_stored
    from components.registry.directory import DirectoryStore

    source = made(size, folder)
    root = folder / "registry"
    store = DirectoryStore(root)
    plain_tools = plain(source, folder / "plain")
    with peak() as putting:
        put = clocked(lambda: (check_proposed(source), store.put_tree(source)))
    (tree,) = (root / "trees").iterdir()
    shutil.rmtree(source)
    verify = wall_s(lambda: check_stored(store.tree(tree.name)))
    with peak() as pulling:
        pull = clocked(lambda: store.fetch_tree(tree.name, folder / "pulled"))
    for path in (root, folder / "pulled"):
        shutil.rmtree(path)
    return {
        "plain_s": plain_tools,
        "put_s": put.wall,
        "put_user_s": put.user,
        "put_kernel_s": put.kernel,
        "verify_s": verify,
        "pull_s": pull.wall,
        "pull_user_s": pull.user,
        "pull_kernel_s": pull.kernel,
        "put_mb": putting.mb,
        "pull_mb": pulling.mb,
    }


def _in_memory(folder: Path) -> Row:
    """What the kernel takes to copy a shard into memory that was freed just before; and then into more and more, as a
    large checkpoint does: the median of the last three copies."""
    source, copies = made(SHARD, folder), folder / "copies"
    (file,) = source.glob("*.safetensors")
    copies.mkdir()

    def copied(name: str) -> float:
        return clocked(lambda: shutil.copyfile(file, copies / name)).kernel

    freed = []
    for _ in range(3):
        freed.append(copied("freed"))
        (copies / "freed").unlink()
    kept = [copied(f"kept-{number}") for number in range(KEPT)]
    for path in (source, copies):
        shutil.rmtree(path)
    return {"freed_s": median(freed[1:]), "more_s": median(kept[-3:])}


MEMORY = (
    "outside the kernel its processor time is linear; the kernel takes longer for a GB in memory that the machine has "
    "not used lately than in memory freed just before (the last lines of `folder` show both, of a plain copy), "
    "and what fits into the latter is small"
)
CURVE = Curve(
    "checkpoints", "folder", (10, 100, SHARD, 10**4), 1, measure,
    (
        Cost("plain_s", "cp and sha256sum", PLAIN),
        Cost("put_s", "checked and put", MEMORY),
        Cost("put_user_s", "of that, processor outside the kernel"),
        Cost("put_kernel_s", "of that, kernel", MEMORY),
        Cost("verify_s", "verified where it lies"),
        Cost("pull_s", "pulled", MEMORY),
        Cost("pull_user_s", "of that, processor outside the kernel"),
        Cost("pull_kernel_s", "of that, kernel", MEMORY),
        Cost("put_mb", "putting: peak memory"),
        Cost("pull_mb", "pulling: peak memory"),
        Cost("freed_s", "a plain copy, kernel: into memory freed just before"),
        Cost("more_s", "a plain copy, kernel: into more memory than that"),
    ),
    plain_tools=(("put_s", "plain_s", "cp and sha256sum"), ("pull_s", "plain_s", "cp and sha256sum")),
)  # fmt: skip
