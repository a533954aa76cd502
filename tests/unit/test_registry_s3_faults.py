"""The store on S3 when the network or the server fails: the right outcome after another attempt, or a clear error.

Every write is looked at behind the proxy as well: nothing is ever half written, and no write succeeds twice.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from components.config.registry import TransferSettings
from components.errors import EvenkeelError, InputError
from components.files import sha256_file, sha256_tree
from components.registry import Conflict, Store, Unavailable, open_store
from components.registry.s3 import objects
from tests.s3_faults import Fault, FaultyProxy
from tests.s3_server import BUCKET, KEYS, S3Server
from tests.tiers import slow_but

PATIENCE = TransferSettings(
    part_size=5 * 2**20, concurrency=2, connect_timeout=1, read_timeout=1, attempts=4, deadline=5
)
LONGEST = 8.0
"""Seconds of a request that never succeeds: the deadline, and one more timeout."""
PASSING = ["500", "503", "409", "slow", "torn upload", "flipped upload", "lost response", "reset", "twice"]
LASTING = ["500", "503", "slow", "torn upload", "flipped upload", "reset"]
READS = ["500", "slow", "torn response", "flipped response", "reset"]
ALWAYS = 99


@pytest.fixture(scope="module")
def _proxy(_s3_server: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(_s3_server.port).running() as proxy:
        yield proxy


@pytest.fixture
def proxy(_proxy: FaultyProxy) -> Iterator[FaultyProxy]:
    yield _proxy
    _proxy.faults.clear()
    _proxy.seen.clear()


@pytest.fixture(scope="module")
def _stores(
    _s3_server: S3Server, _proxy: FaultyProxy, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Store, Store, Path]:
    """Made once: a client takes a while, and a server is probed before anything is written."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        folder = tmp_path_factory.mktemp("s3")
        stores = [
            open_store(_s3_server.settings(folder / name, "faults", endpoint_url=url, transfer=PATIENCE))
            for name, url in (("direct", _s3_server.url), ("store", _proxy.url))
        ]
        for store in stores:
            store.put_if_absent("warm", b"")
    return stores[0], stores[1], folder / "store" / "cache"


@pytest.fixture
def direct(_stores: tuple[Store, Store, Path]) -> Store:
    """The same store without the proxy: another writer, and what there really is."""
    return _stores[0]


@pytest.fixture
def store(_stores: tuple[Store, Store, Path], proxy: FaultyProxy) -> Store:
    proxy.seen.clear()
    return _stores[1]


@pytest.fixture
def cache(_stores: tuple[Store, Store, Path]) -> Path:
    """Where `store` puts what it fetches."""
    return _stores[2]


@pytest.fixture
def key() -> str:
    return f"key-{uuid4().hex}"


# --- objects


@pytest.mark.parametrize("kind", slow_but(PASSING, "503", "flipped upload", "lost response", "reset", "twice"))
def test_a_record_is_created_once_whatever_happens_on_the_way(store, direct, proxy, key, kind):
    proxy.faults = [Fault(kind, "PUT", key)]
    assert store.put_if_absent(key, b"mine")
    assert direct.get(key)[0] == b"mine"
    assert not direct.put_if_absent(key, b"mine")


@pytest.mark.parametrize("kind", slow_but(PASSING, "lost response", "twice"))
def test_a_swap_happens_once_whatever_happens_on_the_way(store, direct, proxy, key, kind):
    first = direct.compare_and_swap(key, b"1", None)
    proxy.faults = [Fault(kind, "PUT", key)]
    second = store.compare_and_swap(key, b"2", first)
    assert direct.get(key) == (b"2", second)
    with pytest.raises(Conflict):
        store.compare_and_swap(key, b"3", first)


@pytest.mark.parametrize("kind", slow_but(READS, "torn response", "flipped response"))
def test_what_is_read_is_what_was_written(store, direct, proxy, key, kind):
    direct.put_if_absent(key, b"the content of the record")
    proxy.faults = [Fault(kind, "GET", key)]
    assert store.get(key)[0] == b"the content of the record"


@pytest.mark.parametrize("kind", slow_but(LASTING, "reset"))
def test_a_write_that_never_succeeds_ends_in_time_and_leaves_nothing_half(store, direct, proxy, key, kind):
    proxy.faults = [Fault(kind, "PUT", key, times=ALWAYS)]
    started = time.monotonic()
    if kind == "slow":  # it has succeeded; only its answers are late
        assert store.put_if_absent(key, b"mine")
    else:
        with pytest.raises(Unavailable, match="put_object: "):
            store.put_if_absent(key, b"mine")
        assert direct.get(key) is None
    assert time.monotonic() - started < LONGEST


@pytest.mark.parametrize("kind", slow_but(READS, "torn response"))
def test_a_read_that_never_succeeds_ends_in_time(store, direct, proxy, key, kind):
    direct.put_if_absent(key, b"the content of the record, which is as long as records are" * 20)
    proxy.faults = [Fault(kind, "GET", key, times=ALWAYS)]
    started = time.monotonic()
    with pytest.raises(Unavailable):
        store.get(key)
    assert time.monotonic() - started < LONGEST


def test_a_record_that_cannot_be_read_is_not_taken_for_one_that_is_not_there(store, proxy, key):
    proxy.faults = [Fault("telling", "GET", key)]
    with pytest.raises(InputError, match="AccessDenied"):
        store.get(key)


@pytest.mark.parametrize("kind", ["500", "reset"])
def test_who_is_overtaken_while_trying_again_has_lost(store, direct, proxy, key, kind):
    proxy.faults = [Fault(kind, "PUT", key, meanwhile=lambda: direct.put_if_absent(key, b"mine"))]
    assert not store.put_if_absent(key, b"mine")


def test_of_two_writers_of_the_same_the_one_whose_answer_was_lost_has_won(store, direct, proxy, key):
    others = []
    proxy.faults = [
        Fault("lost response", "PUT", key, meanwhile=lambda: others.append(direct.put_if_absent(key, b"same")))
    ]
    assert store.put_if_absent(key, b"same")
    assert others == [False]


def add_one(store: Store, key: str) -> str:
    data, version = store.get(key)
    return store.compare_and_swap(key, str(int(data) + 1).encode(), version)


def test_a_swap_whose_answer_was_lost_counts_although_others_have_swapped_since(store, direct, proxy, key):
    direct.compare_and_swap(key, b"0", None)
    proxy.faults = [Fault("lost response", "PUT", key, meanwhile=lambda: [add_one(direct, key) for _ in range(3)])]
    version = add_one(store, key)
    assert direct.get(key)[0] == b"4"
    with pytest.raises(Conflict):
        store.compare_and_swap(key, b"over what others wrote", version)


def test_a_swap_with_an_unknown_outcome_is_neither_won_nor_lost(store, direct, proxy, key, monkeypatch):
    monkeypatch.setattr(objects, "REMEMBERED", 3)
    direct.compare_and_swap(key, b"0", None)
    proxy.faults = [Fault("lost response", "PUT", key, meanwhile=lambda: [add_one(direct, key) for _ in range(3)])]
    with pytest.raises(Unavailable, match="it is unknown whether this write took effect"):
        add_one(store, key)


def test_writers_lose_no_update_while_answers_are_lost(store, direct, proxy, key):
    direct.compare_and_swap(key, b"0", None)
    proxy.faults = [Fault(kind, "PUT", key) for kind in ("lost response", "reset", "500", "twice")]

    def ten(_: int) -> None:
        for _ in range(5):
            while True:
                try:
                    add_one(store, key)
                    break
                except Conflict:
                    continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ten, range(4)))
    assert direct.get(key)[0] == b"20"


# --- trees


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file that is looked for before it is sent, and one in three parts."""
    path = tmp_path / "source"
    path.mkdir()
    (path / "config.json").write_text(uuid4().hex * 4000)
    (path / "weights").write_bytes(np.random.default_rng().bytes(12 * 2**20))
    return path


UPLOADS = [
    (kind, *target)
    for kind in ("500", "torn upload", "flipped upload", "lost response", "reset", "slow")
    for target in (("PUT", "partNumber=2"), ("POST", "uploadId="), ("PUT", "/trees/"))
    if not (kind in ("torn upload", "flipped upload") and target[0] == "POST")
] + [("503", "POST", "uploads"), ("lost response", "POST", "uploads"), ("reset", "HEAD", "/blobs/")]
QUICK_UPLOADS = [
    ("lost response", "POST", "uploadId="),
    ("flipped upload", "PUT", "partNumber=2"),
    ("lost response", "PUT", "/trees/"),
]


@pytest.mark.parametrize(("kind", "method", "path"), slow_but(UPLOADS, *QUICK_UPLOADS))
def test_a_tree_is_stored_whatever_happens_on_the_way(store, direct, proxy, source, kind, method, path):
    proxy.faults = [Fault(kind, method, path)]
    digest = store.put_tree(source)
    assert proxy.faults[0].times == 0
    assert sha256_tree(direct.tree(digest)) == digest == sha256_tree(source)


@pytest.mark.parametrize("kind", slow_but(["500", "torn upload", "flipped upload", "reset"], "reset"))
def test_a_tree_that_cannot_be_stored_is_not_there_and_is_resumed(store, direct, proxy, source, kind, _s3_server):
    proxy.faults = [Fault(kind, "PUT", "partNumber=3", times=ALWAYS)]
    with pytest.raises(EvenkeelError):
        store.put_tree(source)
    assert not direct.has_tree(sha256_tree(source))
    blob = f"faults/blobs/{sha256_file(source / 'weights')}"
    assert "Uploads" not in _s3_server.client.list_multipart_uploads(
        Bucket=BUCKET, Prefix=blob
    )  # its parts were removed
    proxy.faults.clear()
    proxy.seen.clear()
    digest = store.put_tree(source)
    assert sha256_tree(direct.tree(digest)) == digest
    assert proxy.count("PUT", sha256_file(source / "config.json")) == 0


DOWNLOADS = [
    (kind, *target)
    for kind in ("500", "torn response", "flipped response", "reset", "slow")
    for target in (("GET", "/blobs/"), ("GET", "/trees/"))
] + [("reset", "HEAD", "/blobs/")]
QUICK_DOWNLOADS = [("flipped response", "GET", "/blobs/"), ("torn response", "GET", "/trees/")]


@pytest.mark.parametrize(("kind", "method", "path"), slow_but(DOWNLOADS, *QUICK_DOWNLOADS))
def test_a_tree_is_fetched_whatever_happens_on_the_way(store, direct, proxy, source, kind, method, path):
    digest = direct.put_tree(source)
    proxy.faults = [Fault(kind, method, path)]
    assert sha256_tree(store.tree(digest)) == digest
    assert proxy.faults[0].times == 0


@pytest.mark.parametrize("kind", slow_but(READS, "torn response"))
def test_a_tree_that_cannot_be_fetched_is_not_given_out_and_is_resumed(
    store, direct, proxy, source, cache, tmp_path, kind
):
    digest = direct.put_tree(source)
    weights = sha256_file(source / "weights")
    proxy.faults = [Fault(kind, "GET", f"{weights}.*bytes=5242880-", times=ALWAYS)]  # its second part
    started = time.monotonic()
    with pytest.raises(EvenkeelError):
        store.fetch_tree(digest, tmp_path / "target")
    assert time.monotonic() - started < 2 * LONGEST
    assert not (tmp_path / "target").exists()
    assert not (cache / digest).exists()
    proxy.faults.clear()
    proxy.seen.clear()
    store.fetch_tree(digest, tmp_path / "target")
    assert sha256_tree(tmp_path / "target") == digest
    assert proxy.count("GET", sha256_file(source / "config.json")) == 0
