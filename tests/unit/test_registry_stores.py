"""What every store promises: put-if-absent, compare-and-swap, folders under their digest; in a folder and on S3."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from components.config.registry import RegistrySettings
from components.errors import InputError
from components.files import manifest, sha256_json, sha256_tree
from components.registry import Conflict, Store, open_store
from tests.code_graph import ROOT


@pytest.fixture(params=["directory", "s3"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> RegistrySettings:
    """Of an empty store."""
    if request.param == "directory":
        return RegistrySettings(path=tmp_path / "registry")
    return request.getfixturevalue("s3_server").settings(tmp_path, uuid4().hex)


@pytest.fixture
def store(settings: RegistrySettings) -> Store:
    return open_store(settings)


def folder(path: Path, text: str = "one") -> Path:
    (path / "sub").mkdir(parents=True)
    (path / "a.txt").write_text(text)
    (path / "sub" / "b.txt").write_text("two")
    (path / "sub" / "the same.txt").write_text("two")
    (path / "empty").write_bytes(b"")
    return path


# --- objects


def test_what_was_put_is_read_back(store):
    assert store.put_if_absent("a/b.json", b"1")
    found = store.get("a/b.json")
    assert found is not None and found[0] == b"1"
    assert store.get("a/c.json") is None


def test_an_object_is_put_only_once(store):
    assert store.put_if_absent("key", b"first")
    assert not store.put_if_absent("key", b"second")
    assert not store.put_if_absent("key", b"first")
    assert store.get("key")[0] == b"first"


def test_the_version_of_a_swap_is_the_one_that_is_read(store):
    version = store.compare_and_swap("alias", b"1", None)
    assert store.get("alias") == (b"1", version)


def test_compare_and_swap_needs_the_current_version(store):
    first = store.compare_and_swap("alias", b"1", None)
    second = store.compare_and_swap("alias", b"2", first)
    for stale in (None, first):
        with pytest.raises(Conflict):
            store.compare_and_swap("alias", b"3", stale)
    assert store.get("alias") == (b"2", second)


def test_compare_and_swap_of_an_absent_object_refuses_a_version(store):
    with pytest.raises(Conflict):
        store.compare_and_swap("alias", b"1", "0" * 64)
    assert store.get("alias") is None


def test_keys_are_listed_by_prefix_in_order(store):
    assert store.keys("") == []
    for key in ("b/2", "b/1", "a", "bb"):
        store.put_if_absent(key, b"")
    assert store.keys("b/") == ["b/1", "b/2"]
    assert store.keys("") == ["a", "b/1", "b/2", "bb"]


@pytest.mark.parametrize("key", ["", "../x", "/etc/passwd", "a/../b", "a//b", ".hidden", "a/.b", "A", "a b", "a\n"])
def test_a_key_cannot_leave_the_store(store, key):
    for use in (store.get, lambda k: store.put_if_absent(k, b""), lambda k: store.compare_and_swap(k, b"", None)):
        with pytest.raises(InputError, match="not a key"):
            use(key)


# --- trees


def test_a_folder_is_stored_under_its_digest(store, tmp_path):
    source = folder(tmp_path / "source")
    assert not store.has_tree(sha256_tree(source))
    digest = store.put_tree(source)
    assert digest == sha256_tree(source) == sha256_tree(store.tree(digest))
    assert store.has_tree(digest)
    assert store.put_tree(folder(tmp_path / "same")) == digest
    assert store.put_tree(folder(tmp_path / "other", "three")) != digest


@pytest.mark.parametrize("size", [3, 9 * 2**20])
def test_a_folder_that_is_not_what_its_manifest_says_is_not_stored(store, tmp_path, size):
    files = manifest(folder(tmp_path / "source", "x" * size))
    source = folder(tmp_path / "changed", "y" * size)
    with pytest.raises(InputError, match="changed while it was"):
        store.put_tree(source, files)
    assert not store.has_tree(sha256_json(files))
    assert store.put_tree(source, manifest(source)) == sha256_tree(source)


def test_a_stored_folder_is_fetched_into_a_new_one(store, tmp_path):
    digest = store.put_tree(folder(tmp_path / "source"))
    store.fetch_tree(digest, tmp_path / "here" / "copy")
    assert sha256_tree(tmp_path / "here" / "copy") == digest
    (tmp_path / "here" / "copy" / "a.txt").write_text("mine now")
    assert sha256_tree(store.tree(digest)) == digest


@pytest.mark.parametrize("there", [lambda p: p.mkdir(), lambda p: p.write_text(""), lambda p: p.symlink_to("nowhere")])
def test_nothing_is_fetched_over_what_is_there(store, tmp_path, there):
    digest = store.put_tree(folder(tmp_path / "source"))
    there(tmp_path / "target")
    with pytest.raises(InputError, match="something at this path"):
        store.fetch_tree(digest, tmp_path / "target")


@pytest.mark.parametrize(("digest", "problem"), [("0" * 64, "no such checkpoint"), ("../..", "not a sha256")])
def test_a_folder_that_was_never_stored_is_an_error(store, tmp_path, digest, problem):
    for use in (store.tree, lambda d: store.fetch_tree(d, tmp_path / "target")):
        with pytest.raises(InputError, match=problem):
            use(digest)
    assert not (tmp_path / "target").exists()


def test_a_symbolic_link_is_not_stored(store, tmp_path):
    source = folder(tmp_path / "source")
    (source / "link").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="symbolic link"):
        store.put_tree(source)


def test_another_opening_of_the_store_sees_it_all(settings, tmp_path):
    open_store(settings).put_if_absent("key", b"1")
    digest = open_store(settings).put_tree(folder(tmp_path / "source"))
    assert open_store(settings).get("key")[0] == b"1"
    assert open_store(settings).has_tree(digest)


# --- many at a time


def race(settings: RegistrySettings, work: str, *, processes: int, threads: int, times: int) -> list[int]:
    """What each of the threads in several processes says that came of it."""
    command = [sys.executable, "-m", "tests.registry_writers", settings.model_dump_json(), work, "key"]
    running = [
        subprocess.Popen(
            [*command, str(threads), str(times)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(processes)
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120)[0].split() for process in running]
    assert [process.returncode for process in running] == [0] * processes
    return [int(word) for words in outputs for word in words]


def at_once(work, writers: int = 40) -> list:
    """What each of that many threads gets."""
    barrier = threading.Barrier(writers)

    def one(number: int):
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(writers) as pool:
        return list(pool.map(one, range(writers)))


def test_of_40_writers_of_the_same_exactly_one_creates(store):
    assert sum(at_once(lambda _: store.put_if_absent("key", b"the same"))) == 1


def test_of_40_swaps_of_one_version_exactly_one_happens(store):
    version = store.compare_and_swap("alias", b"start", None)

    def swap(number: int) -> int | None:
        try:
            store.compare_and_swap("alias", str(number).encode(), version)
        except Conflict:
            return None
        return number

    winners = [number for number in at_once(swap) if number is not None]
    assert [str(number).encode() for number in winners] == [store.get("alias")[0]]


@pytest.mark.slow
def test_of_100_writers_in_4_processes_exactly_one_creates(settings):
    assert sorted(race(settings, "create", processes=4, threads=25, times=1)) == [0] * 99 + [1]


@pytest.mark.slow
def test_of_100_swaps_by_20_writers_in_2_processes_none_is_lost(settings):
    race(settings, "count", processes=2, threads=10, times=5)
    assert open_store(settings).get("key")[0] == b"100"
