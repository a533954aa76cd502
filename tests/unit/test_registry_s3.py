"""What only the store on S3 promises: what lies in the bucket, resuming, what damage it notices, and that it exposes
no secret."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from components.config.registry import RegistrySettings, TransferSettings
from components.errors import EvenkeelError, InputError
from components.files import dump_json, manifest, sha256_bytes, sha256_file, sha256_tree
from components.registry import Store, Unavailable, open_store
from components.registry.s3 import probe
from components.registry.s3.bucket import Bucket
from components.registry.s3.digested import digest_file
from components.registry.s3.moving import BLOCK, Blocks
from tests.code_graph import ROOT
from tests.s3_faults import Fault, FaultyProxy
from tests.s3_server import BUCKET, KEYS, S3Server
from tests.tiers import slow_but

PATIENCE = TransferSettings(
    part_size=5 * 2**20, concurrency=2, connect_timeout=1, read_timeout=1, attempts=3, deadline=5
)
SECRETS = [KEYS[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")]


@pytest.fixture
def prefix() -> str:
    return uuid4().hex


@pytest.fixture
def settings(s3_server: S3Server, tmp_path: Path, prefix: str) -> RegistrySettings:
    return s3_server.settings(tmp_path, prefix, transfer=PATIENCE)


@pytest.fixture
def store(settings: RegistrySettings) -> Store:
    return open_store(settings)


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(s3_server.port).running() as proxy:
        yield proxy


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small file, and one in three parts."""
    path = tmp_path / "source"
    path.mkdir()
    (path / "config.json").write_text("{}")
    (path / "weights").write_bytes(np.random.default_rng().bytes(12 * 2**20))
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small"
    (path / "sub").mkdir(parents=True)
    (path / "a.txt").write_text("one")
    (path / "sub" / "b.txt").write_text("two")
    return path


def names(server: S3Server, prefix: str) -> list[str]:
    """What lies in the bucket."""
    found = server.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/").get("Contents", [])
    return [entry["Key"].removeprefix(f"{prefix}/") for entry in found]


def put(server: S3Server, prefix: str, name: str, data: bytes) -> None:
    server.client.put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=data)


# --- what lies in the bucket


def test_a_tree_is_a_manifest_and_its_files_each_once(store, s3_server, prefix, small):
    (small / "again.txt").write_text("one")
    digest = store.put_tree(small)
    (small / "more.txt").write_text("three")
    other = store.put_tree(small)
    blobs = sorted(f"blobs/{sha256_bytes(text)}" for text in (b"one", b"two", b"three"))
    assert names(s3_server, prefix) == [*blobs, *sorted(f"trees/{each}.json" for each in (digest, other))]


def test_a_manifest_has_the_digest_of_its_tree(store, s3_server, prefix, small):
    digest = store.put_tree(small)
    text = s3_server.client.get_object(Bucket=BUCKET, Key=f"{prefix}/trees/{digest}.json")["Body"].read()
    assert sha256_bytes(text) == digest
    assert json.loads(text) == {"a.txt": sha256_bytes(b"one"), "sub/b.txt": sha256_bytes(b"two")}


def test_a_listing_of_many_pages_is_whole(store, monkeypatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    keys = [f"promotions/{number:06d}.json" for number in range(1, 8)]
    for key in keys:
        store.put_if_absent(key, b"")
    assert store.keys("promotions/") == keys


def test_what_is_no_key_is_not_listed(store, s3_server, prefix):
    put(s3_server, prefix, "objects/promotions/", b"")  # what consoles call a folder
    store.put_if_absent("promotions/1", b"")
    assert store.keys("") == ["promotions/1"]


def test_an_object_that_somebody_else_put_there_is_read_and_swapped(store, s3_server, prefix):
    put(s3_server, prefix, "objects/alias", b"restored by hand")
    data, version = store.get("alias")
    assert data == b"restored by hand"
    store.compare_and_swap("alias", b"2", version)
    assert store.get("alias")[0] == b"2"


def test_a_bucket_that_is_not_there_is_not_an_empty_one(settings):
    store = open_store(settings.model_copy(update={"bucket": "nowhere"}))
    for use in (
        lambda: store.get("key"),
        lambda: store.keys(""),
        lambda: store.has_tree("0" * 64),
        lambda: store.put_if_absent("key", b""),
    ):
        with pytest.raises(InputError, match="NoSuchBucket"):
            use()


# --- damage


def tampered(server: S3Server, prefix: str, damage: str) -> None:
    blob = f"{prefix}/blobs/{sha256_bytes(b'one')}"
    match damage:
        case "another content":
            server.client.put_object(Bucket=BUCKET, Key=blob, Body=b"eno")
        case "another size":
            server.client.put_object(Bucket=BUCKET, Key=blob, Body=b"more than one")
        case "removed":
            server.client.delete_object(Bucket=BUCKET, Key=blob)
        case "another manifest":
            (name,) = (name for name in names(server, prefix) if name.startswith("trees/"))
            put(server, prefix, name, dump_json({"a.txt": sha256_bytes(b"two")}).encode())


@pytest.mark.parametrize("damage", ["another content", "another size", "removed", "another manifest"])
def test_what_was_changed_in_the_bucket_is_never_given_out(store, s3_server, prefix, small, tmp_path, damage):
    digest = store.put_tree(small)
    tampered(s3_server, prefix, damage)
    with pytest.raises(InputError, match="no longer has the digest"):
        store.tree(digest)
    with pytest.raises(InputError, match="no longer has the digest"):
        store.fetch_tree(digest, tmp_path / "target")
    assert not (tmp_path / "target").exists()
    assert not (tmp_path / "cache" / digest).exists()


@pytest.mark.parametrize("damage", ["another size", "another manifest"])
def test_nothing_is_stored_over_what_was_changed_in_the_bucket(store, s3_server, prefix, small, damage):
    store.put_tree(small)
    tampered(s3_server, prefix, damage)
    with pytest.raises(InputError, match="no longer has the digest"):
        store.put_tree(small)


def test_a_file_that_was_removed_from_the_bucket_is_stored_again_with_its_tree(store, s3_server, prefix, small):
    digest = store.put_tree(small)
    tampered(s3_server, prefix, "removed")
    assert store.put_tree(small) == digest
    assert sha256_tree(store.tree(digest)) == digest


@pytest.mark.parametrize(
    "damage",
    [
        lambda tree: (tree / "a.txt").write_text("eno"),
        lambda tree: (tree / "a.txt").unlink(),
        lambda tree: (tree / "extra.txt").write_text(""),
        lambda tree: (tree / "link").symlink_to("/etc/passwd"),
        lambda tree: (tree / os.fsdecode(b"\xff.txt")).touch(),
    ],
    ids=["changed", "removed", "added", "link", "not UTF-8"],
)
def test_a_cached_tree_that_was_changed_is_fetched_again(store, small, damage):
    digest = store.put_tree(small)
    damage(store.tree(digest))
    assert sha256_tree(store.tree(digest)) == digest


def test_an_undamaged_cached_tree_is_not_fetched_again(settings, proxy, small):
    store = open_store(settings.model_copy(update={"endpoint_url": proxy.url}))
    digest = store.put_tree(small)
    store.tree(digest)
    proxy.seen.clear()
    store.tree(digest)
    assert proxy.seen == []


EVIL = [
    "../outside.txt",
    "/tmp/outside.txt",
    "sub/../../outside.txt",
    "./a.txt",
    "a//b.txt",
    "",
    ".",
    "..",
    "a\\b.txt",
    "a\nb.txt",
    "a\0b.txt",
]


@pytest.mark.parametrize("name", slow_but(EVIL, "../outside.txt", "/tmp/outside.txt", ".", "a\\b.txt"))
def test_a_manifest_cannot_name_a_file_outside_its_folder(store, s3_server, prefix, tmp_path, name):
    put(s3_server, prefix, f"blobs/{sha256_bytes(b'one')}", b"one")
    text = dump_json({name: sha256_bytes(b"one")}).encode()
    put(s3_server, prefix, f"trees/{sha256_bytes(text)}.json", text)
    with pytest.raises(InputError, match=r"the name .* of a file"):
        store.tree(sha256_bytes(text))
    assert not list(tmp_path.rglob("outside.txt")) and not Path("/tmp/outside.txt").exists()


ONE = sha256_bytes(b"one")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (dump_json({"a": ONE, "a/b": ONE}), "a path below a file"),
        (dump_json({"a": "../../trees/x"}), "no digest"),
        (dump_json({"a": 1}), "no digest"),
        (dump_json(["a"]), "not a manifest"),
        (json.dumps({"a": ONE}), "not a manifest"),
        ("{", "not a manifest"),
        ("[" * 100_000, "not a manifest"),
    ],
)
def test_what_is_no_manifest_is_refused_although_it_has_its_digest(store, s3_server, prefix, text, said):
    put(s3_server, prefix, f"trees/{sha256_bytes(text.encode())}.json", text.encode())
    with pytest.raises(InputError, match=said):
        store.tree(sha256_bytes(text.encode()))


def test_a_manifest_that_would_fill_the_memory_is_none(store, s3_server, prefix, monkeypatch):
    monkeypatch.setattr("components.registry.s3.bucket.LARGEST", 100)
    put(s3_server, prefix, f"trees/{ONE}.json", b" " * 101)
    with pytest.raises(InputError, match="too large for a record"):
        store.tree(ONE)


def test_a_folder_with_a_name_that_could_not_be_fetched_is_not_stored(store, s3_server, prefix, small):
    (small / "a\nb").write_text("")
    with pytest.raises(InputError, match=r"the name .* of a file"):
        store.put_tree(small)
    assert [name for name in names(s3_server, prefix) if not name.startswith("probe/")] == []


# --- interrupted


def written_at(offset: int, path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"changed")


CHANGES = {
    "another content": partial(written_at, 11 * 2**20),
    "longer": partial(written_at, 12 * 2**20),
    "a part longer": partial(written_at, 15 * 2**20),
    "a part shorter": lambda path: os.truncate(path, 10 * 2**20),
    "shorter than a part": lambda path: os.truncate(path, 3),
    "removed": Path.unlink,
}


@pytest.mark.parametrize("digested", ["before", "while it is sent"])
@pytest.mark.parametrize("change", slow_but(list(CHANGES), "another content", "a part shorter", "shorter than a part"))
def test_a_file_that_changes_while_it_is_sent_is_refused(
    settings, store, s3_server, prefix, proxy, source, change, digested
):
    proxied = open_store(settings.model_copy(update={"endpoint_url": proxy.url}))
    before, weights = sha256_tree(source), source / "weights"
    known = None if digested == "before" else manifest(source)
    blob = f"blobs/{sha256_file(weights)}"
    proxy.faults = [Fault("500", "HEAD", blob, meanwhile=lambda: CHANGES[change](weights))]
    with pytest.raises(InputError, match="cannot read" if change == "removed" else "changed while it was stored"):
        proxied.put_tree(source, known)
    assert not store.has_tree(before)
    assert blob not in names(s3_server, prefix)


@pytest.mark.parametrize("size", [0, 1, 5 * 2**20, 5 * 2**20 + 1, 12 * 2**20])
def test_the_sums_of_a_file_are_those_of_the_parts_it_is_sent_in(tmp_path, size):
    data, part = np.random.default_rng(0).bytes(size), 5 * 2**20 + 3
    (tmp_path / "file").write_bytes(data)
    found = digest_file(tmp_path / "file", part)
    assert (found.sha256, found.size) == (sha256_bytes(data), size)
    expected = [zlib.crc32(data[start : start + part]) for start in range(0, size, part)]
    assert [found.crc32(number + 1) for number in range(len(expected))] == expected
    found.check(len(expected))
    with pytest.raises(InputError, match="changed"):
        found.crc32(len(expected) + 1)


def test_a_part_is_sent_in_blocks_that_cost_less_than_their_way():
    data = os.urandom(3 * BLOCK + 1)
    part = Blocks(BytesIO(data))
    blocks = list(iter(lambda: part.read(2**14), b""))
    assert b"".join(blocks) == data and [len(block) for block in blocks] == [BLOCK, BLOCK, BLOCK, 1]
    part.seek(0)
    assert part.read() == data


KILLS = [("PUT", "partNumber=3"), ("POST", "uploadId="), ("PUT", "/trees/"), ("PUT", "/blobs/[0-9a-f]* $")]


def killed_while(
    settings: RegistrySettings, proxy: FaultyProxy, call: str, *at: str, after: Callable[[], bool] = lambda: True
) -> None:
    """Run a call of the store in a process of its own, and kill it when it makes that request, and ``after`` holds."""
    code = (
        "import sys, pathlib; from components.config.registry import RegistrySettings as S\n"
        "from components.registry import open_store\n"
        f"store = open_store(S.model_validate_json(sys.argv[1])); store.{call}"
    )
    patient = settings.transfer.model_copy(update={"read_timeout": 30.0})  # not to repeat the request before the kill
    given = settings.model_copy(update={"endpoint_url": proxy.url, "transfer": patient}).model_dump_json()
    process = subprocess.Popen([sys.executable, "-c", code, given], cwd=ROOT)

    def kill() -> None:
        end = time.monotonic() + 10
        while not after() and time.monotonic() < end:
            time.sleep(0.01)
        process.kill()

    proxy.faults = [Fault("reset", *at, meanwhile=kill)]
    assert process.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.parametrize(("method", "path"), slow_but(KILLS, KILLS[0]))
def test_a_killed_writer_leaves_no_half_tree_and_is_resumed(settings, store, proxy, source, method, path):
    killed_while(settings, proxy, f"put_tree(pathlib.Path({str(source)!r}))", method, path)
    assert not store.has_tree(sha256_tree(source))
    proxy.seen.clear()
    digest = open_store(settings.model_copy(update={"endpoint_url": proxy.url})).put_tree(source)
    assert sha256_tree(store.tree(digest)) == digest
    if path == "/trees/":
        assert proxy.count("PUT", "partNumber=") == 0


@pytest.mark.slow
def test_a_killed_reader_leaves_no_half_tree_and_is_resumed(settings, store, proxy, source, tmp_path):
    digest = store.put_tree(source)
    weights, config = (sha256_file(source / name) for name in ("weights", "config.json"))
    small = tmp_path / "cache" / "incoming" / digest / "tree" / "config.json"  # fetched at the same time
    killed_while(settings, proxy, f"tree({digest!r})", "GET", f"{weights}.*bytes=10485760-", after=small.is_file)
    assert not (tmp_path / "cache" / digest).exists()
    proxy.seen.clear()
    proxy.faults.clear()
    assert sha256_tree(open_store(settings.model_copy(update={"endpoint_url": proxy.url})).tree(digest)) == digest
    assert proxy.count("GET", config) == 0
    assert list((tmp_path / "cache" / "incoming").iterdir()) == []


@pytest.mark.slow
def test_an_aborted_upload_is_started_again(settings, store, s3_server, prefix, proxy, source):
    key, client = f"{prefix}/blobs/{sha256_file(source / 'weights')}", s3_server.client

    def abort() -> None:
        (upload,) = client.list_multipart_uploads(Bucket=BUCKET, Prefix=key)["Uploads"]
        client.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload["UploadId"])

    proxy.faults = [Fault("500", "PUT", "partNumber=3", meanwhile=abort)]
    digest = open_store(settings.model_copy(update={"endpoint_url": proxy.url})).put_tree(source)
    assert sha256_tree(store.tree(digest)) == digest


# --- what the server must be able to do


@pytest.mark.parametrize(
    ("ignored", "said"),
    [
        ("if-none-match", "ignores If-None-Match and overwrites"),
        ("if-match", "ignores If-Match and overwrites"),
        ("metadata", "does not keep metadata"),
    ],
)
def test_nothing_is_written_to_a_server_that_ignores_conditions(
    store, s3_server, prefix, small, ignored, said, monkeypatch
):
    monkeypatch.setattr(probe, "_KNOWN", {})
    s3_server.app.ignores = {ignored}
    for write in (
        lambda: store.put_if_absent("key", b""),
        lambda: store.compare_and_swap("key", b"", None),
        lambda: store.put_tree(small),
    ):
        with pytest.raises(InputError, match=said):
            write()
    assert names(s3_server, prefix) == []


def test_a_server_is_asked_once_and_nothing_is_left_of_it(settings, proxy, s3_server, prefix):
    store = open_store(settings.model_copy(update={"endpoint_url": proxy.url}))
    store.put_if_absent("a", b"")
    asked = proxy.count("PUT", "/probe/")
    open_store(settings.model_copy(update={"endpoint_url": proxy.url})).put_if_absent("b", b"")
    assert asked == proxy.count("PUT", "/probe/") > 0
    assert names(s3_server, prefix) == ["objects/a", "objects/b"]


def test_a_server_that_cannot_be_asked_gets_nothing_and_is_asked_again(settings, proxy, s3_server, prefix):
    store = open_store(settings.model_copy(update={"endpoint_url": proxy.url}))
    proxy.faults = [Fault("telling", "PUT", "/probe/", times=1)]
    with pytest.raises(InputError, match="AccessDenied"):
        store.put_if_absent("key", b"")
    assert names(s3_server, prefix) == []
    assert store.put_if_absent("key", b"")


def test_reading_needs_no_right_to_write(settings, store, proxy, small):
    store.put_if_absent("key", b"1")
    digest = store.put_tree(small)
    proxy.faults = [Fault("telling", method, times=99) for method in ("PUT", "POST", "DELETE")]
    reader = open_store(settings.model_copy(update={"endpoint_url": proxy.url}))
    assert reader.get("key")[0] == b"1" and reader.keys("") == ["key"]
    assert reader.has_tree(digest) and sha256_tree(reader.tree(digest)) == digest


def test_without_the_right_to_delete_it_works_and_says_so(settings, proxy):
    proxy.faults = [Fault("telling", "DELETE", times=99)]
    given = settings.model_copy(update={"endpoint_url": proxy.url})
    assert open_store(given).put_if_absent("key", b"")
    assert "probe/" in probe.capabilities(Bucket(given)).left


SENT_WITH = [("config.json", "SHA256"), ("weights", "CRC32")]


@pytest.mark.parametrize(("name", "ignored"), slow_but(SENT_WITH, SENT_WITH[1]))
def test_where_one_kind_of_checksum_is_ignored_what_was_sent_is_read_again(
    settings, store, s3_server, proxy, source, name, ignored
):
    s3_server.app.ignores = {ignored}
    proxied = open_store(settings.model_copy(update={"endpoint_url": proxy.url}))
    path = sha256_file(source / name)
    proxy.faults = [Fault("flipped upload", "PUT", f"{path}.*partNumber=2" if name == "weights" else path)]
    with pytest.raises(Unavailable, match="arrived damaged"):
        proxied.put_tree(source)
    assert not store.has_tree(sha256_tree(source))
    digest = proxied.put_tree(source)
    assert sha256_tree(store.tree(digest)) == digest


@pytest.mark.parametrize(("times", "refused"), [(1, False), (99, True)])
def test_what_was_there_already_is_never_removed_however_it_is_read_back(
    settings, store, s3_server, prefix, proxy, small, times, refused
):
    s3_server.app.ignores = {"checksums"}
    digest = store.put_tree(small)
    proxied = open_store(settings.model_copy(update={"endpoint_url": proxy.url}))
    proxy.faults = [Fault("flipped response", "GET", f"blobs/{ONE}", times=times)]
    if refused:
        with pytest.raises(InputError, match="no longer has the digest"):
            proxied.put_tree(small)
    else:
        assert proxied.put_tree(small) == digest
    assert proxy.count("DELETE", "blobs/") == 0
    assert sha256_tree(store.tree(digest)) == digest


def test_what_arrived_damaged_and_cannot_be_removed_is_said(settings, s3_server, proxy, small):
    s3_server.app.ignores = {"checksums"}
    proxy.faults = [Fault("flipped upload", "PUT", f"blobs/{ONE}"), Fault("telling", "DELETE", "blobs/")]
    with pytest.raises(Unavailable, match=r"arrived damaged[\s\S]*remove it, which failed here.*AccessDenied"):
        open_store(settings.model_copy(update={"endpoint_url": proxy.url})).put_tree(small)


# --- secrets


def error_text(use) -> str:
    """The traceback, ``repr`` and ``str`` of the error."""
    with pytest.raises(EvenkeelError) as caught:
        use()
    return "".join(traceback.format_exception(caught.value)) + repr(caught.value) + str(caught.value)


def test_no_secret_is_in_an_error_or_a_log(settings, proxy, small, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    for name in ("botocore", "s3transfer"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
    store = open_store(settings.model_copy(update={"endpoint_url": proxy.url}))
    store.put_if_absent("key", b"1")
    proxy.faults = [Fault("telling", "GET", "objects/key")]
    seen = error_text(lambda: store.get("key"))
    proxy.faults = [Fault("telling", "PUT", "blobs/")]
    seen += error_text(lambda: store.put_tree(small))
    proxy.faults = [Fault("reset", times=99)]
    seen += error_text(lambda: store.keys(""))
    log = "\n".join(record.getMessage() + str(record.exc_info or "") for record in caplog.records)
    for secret in (*SECRETS, "X-Amz-Signature", "Signature="):
        assert secret not in seen + log
    assert "AccessDenied" in seen


def test_without_credentials_the_error_says_where_they_belong(settings, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    with pytest.raises(InputError, match="no credentials for S3") as caught:
        open_store(settings).get("key")
    assert "AWS_ACCESS_KEY_ID" in str(caught.value)


def test_an_endpoint_in_the_environment_holds_no_password_either(settings, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:hunter2@127.0.0.1:9000")
    said = error_text(lambda: open_store(settings.model_copy(update={"endpoint_url": None})))
    assert "hunter2" not in said and "AWS_ENDPOINT_URL" in said


def test_a_server_that_is_not_there_is_one_clear_error(settings):
    store = open_store(settings.model_copy(update={"endpoint_url": "http://127.0.0.1:9"}))
    with pytest.raises(Unavailable, match="no whole answer"):
        store.get("key")
