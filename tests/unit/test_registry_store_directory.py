"""What only the store in a folder promises; `test_registry_stores.py` has what every store does."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from components.config.registry import RegistrySettings
from components.errors import InputError
from components.registry import Conflict, open_store
from components.registry.directory import DirectoryStore


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


def test_nothing_is_left_of_a_copy_that_failed(
    store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("components.directories._flush_tree", full)
    with pytest.raises(InputError, match="No space left"):
        store.put_tree(folder(tmp_path / "source"))
    assert list((tmp_path / "registry" / "trees").iterdir()) == []


def test_a_read_only_registry_is_one_clear_error(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("a file where the folder should be")
    with pytest.raises(InputError, match="cannot"):
        store.put_if_absent("key", b"")


def test_a_probe_leaves_nothing_behind(store: DirectoryStore, tmp_path: Path) -> None:
    store.probe()
    assert store.keys("") == []


def test_settings_name_the_store(tmp_path: Path) -> None:
    store = open_store(RegistrySettings(path=tmp_path / "r"))
    store.put_if_absent("key", b"1")
    assert DirectoryStore(tmp_path / "r").get("key") is not None


def _swap(root: Path, name: str, version: str, start: Event, results: "Queue[str | None]") -> None:
    start.wait()
    try:
        DirectoryStore(root).compare_and_swap("alias", name.encode(), version)
        results.put(name)
    except Conflict:
        results.put(None)


def test_of_racing_processes_exactly_one_swaps(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    version = store.compare_and_swap("alias", b"start", None)
    context = multiprocessing.get_context("fork")
    start, results = context.Event(), context.Queue()
    racers = [context.Process(target=_swap, args=(tmp_path, f"p{i}", version, start, results)) for i in range(4)]
    for racer in racers:
        racer.start()
    start.set()
    winners = [name for name in (results.get(timeout=30) for _ in racers) if name]
    for racer in racers:
        racer.join()
    assert len(winners) == 1
    found = store.get("alias")
    assert found is not None and found[0] == winners[0].encode()
