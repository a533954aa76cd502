"""What only the store in a folder promises; `test_registry_stores.py` has what every store does."""

import errno
import fcntl
import multiprocessing
import os
import threading
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import BinaryIO

import pytest

from components.config.registry import RegistrySettings
from components.errors import InputError, MachineError
from components.files import sha256_bytes
from components.registry import Conflict, open_store
from components.registry.directory import DirectoryStore, probe


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "registry")


def folder(path: Path, text: str = "one") -> Path:
    (path / "sub").mkdir(parents=True)
    (path / "a.txt").write_text(text)
    (path / "sub" / "b.txt").write_text("two")
    return path


@pytest.mark.parametrize(
    "damage",
    [
        lambda tree: (tree / "a.txt").write_text("changed"),
        lambda tree: (tree / "a.txt").unlink(),
        lambda tree: (tree / "extra.txt").write_text(""),
        lambda tree: (tree / "a.txt").rename(tree / "c.txt"),
    ],
)
def test_a_stored_folder_that_was_changed_is_refused(
    store: DirectoryStore, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    source = folder(tmp_path / "source")
    digest = store.put_tree(source)
    damage(store.tree(digest))
    with pytest.raises(InputError, match="no longer has the digest"):
        store.tree(digest)
    with pytest.raises(InputError, match="no longer has the digest"):
        store.put_tree(source)


def test_a_stored_folder_that_lies_elsewhere_is_refused(store: DirectoryStore, tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    digest = store.put_tree(source)
    stored = store.tree(digest)
    stored.rename(tmp_path / "elsewhere")
    stored.symlink_to(tmp_path / "elsewhere")
    for use in (lambda: store.tree(digest), lambda: store.put_tree(source)):
        with pytest.raises(InputError, match="is a symbolic link"):
            use()


def test_nothing_is_left_of_a_copy_that_failed(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("components.directories._flush_tree", full)
    with pytest.raises(MachineError, match="No space left"):
        store.put_tree(folder(tmp_path / "source"))
    assert list((tmp_path / "registry" / "trees").iterdir()) == []


def test_a_read_only_registry_is_one_clear_error(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("a file where the folder should be")
    with pytest.raises(InputError, match="cannot"):
        store.put_if_absent("key", b"")


def test_a_probe_leaves_nothing_behind(store: DirectoryStore, tmp_path: Path) -> None:
    probe(tmp_path)
    assert list(tmp_path.iterdir()) == []
    store.put_if_absent("key", b"")
    probe(tmp_path / "registry")
    assert store.keys("") == ["key"]


def test_what_is_no_key_is_not_listed(store: DirectoryStore, tmp_path: Path) -> None:
    store.put_if_absent("candidates/1.json", b"")
    for name in ("README.md~", "Notes.txt", ".1.json.abc", "b\xfc"):
        (tmp_path / "registry/objects/candidates" / name).touch()
    assert store.keys("candidates/") == store.keys("") == ["candidates/1.json"]


def test_what_cannot_be_read_does_not_count_as_absent(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put_if_absent("approvals/1/a.json", b"")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    for name, use in (
        ("scandir", lambda: store.keys("approvals/1/")),
        ("stat", lambda: store.get("approvals/1/a.json")),
    ):
        with monkeypatch.context() as patch, pytest.raises(InputError, match="Permission denied"):
            patch.setattr(os, name, refuse)
            use()
    assert store.keys("approvals/2/") == []


def test_a_file_system_without_locks_is_one_clear_error(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    version = store.compare_and_swap("alias", b"1", None)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(InputError, match="cannot lock the registry: No locks"):
        store.compare_and_swap("alias", b"2", version)


def test_settings_name_the_store(tmp_path: Path) -> None:
    store = open_store(RegistrySettings(path=tmp_path / "r"))
    store.put_if_absent("key", b"1")
    assert DirectoryStore(tmp_path / "r").get("key") is not None


def _swap(root: Path, name: str, version: str, together: Barrier, results: "Queue[str | None]") -> None:
    together.wait()
    try:
        DirectoryStore(root).compare_and_swap("alias", name.encode(), version)
        results.put(name)
    except Conflict:
        results.put(None)


def test_of_racing_processes_exactly_one_swaps(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    version = store.compare_and_swap("alias", b"start", None)
    context = multiprocessing.get_context("spawn")
    together, results = context.Barrier(4), context.Queue()
    racers = [context.Process(target=_swap, args=(tmp_path, f"p{i}", version, together, results)) for i in range(4)]
    for racer in racers:
        racer.start()
    winners = [name for name in (results.get(timeout=60) for _ in racers) if name]
    for racer in racers:
        racer.join()
    assert len(winners) == 1
    found = store.get("alias")
    assert found is not None and found[0] == winners[0].encode()


# --- a lock that somebody removes, and file systems that cannot do what this stands on


def test_of_two_writers_one_creates_also_where_the_lock_is_removed_between_them(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.compare_and_swap("alias", b"2", store.compare_and_swap("alias", b"1", None))  # there is a lock
    writing, go_on, flush = threading.Event(), threading.Event(), os.fsync

    def slow(handle: int) -> None:
        if threading.current_thread() is first:
            writing.set()
            go_on.wait(30)
        flush(handle)

    monkeypatch.setattr(os, "fsync", slow)
    created: dict[str, bool] = {}
    first = threading.Thread(target=lambda: created.update(first=store.put_if_absent("key", b"first")))
    first.start()
    writing.wait(30)
    (tmp_path / "registry" / ".lock").unlink()
    created["second"] = store.put_if_absent("key", b"second")
    go_on.set()
    first.join()
    assert created == {"first": False, "second": True}
    assert store.get("key") == (b"second", sha256_bytes(b"second"))


def test_a_lock_that_was_removed_while_it_was_waited_for_is_taken_again(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = store.compare_and_swap("alias", b"1", None)
    lock, files, take = tmp_path / "registry" / ".lock", list[int](), fcntl.flock

    def late(file: BinaryIO, how: int) -> None:
        take(file, how)
        files.append(os.fstat(file.fileno()).st_ino)
        if len(files) == 1:
            lock.rename(tmp_path / "removed")

    monkeypatch.setattr(fcntl, "flock", late)
    store.compare_and_swap("alias", b"2", version)
    assert files == [(tmp_path / "removed").stat().st_ino, lock.stat().st_ino]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_on_a_file_system_without_hard_links_nothing_is_written_and_it_says_so(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    probe(tmp_path / "registry" / "not yet")
    monkeypatch.setattr(os, "link", refuse)
    for use in (
        lambda: store.put_if_absent("key", b"1"),
        lambda: store.compare_and_swap("key", b"1", None),
        lambda: probe(tmp_path / "registry" / "not yet"),
    ):
        with pytest.raises(InputError, match="without hard links"):
            use()
    assert [path.name for path in tmp_path.rglob("*")] == ["registry", "objects"]


def test_a_link_whose_answer_was_lost_was_made_by_this_writer(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def repeated(source: str, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    assert store.put_if_absent("key", b"1")
    assert not store.put_if_absent("key", b"2")
