"""Copies of trees: what arrives is what was digested, and a large copy leaves the memory of the system to others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components.errors import InputError
from components.files import sha256_tree
from components.registry import copying
from components.registry.copying import copy_tree
from components.registry.directory import DirectoryStore

SIZE = 100


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """One file of several stretches and a bit, one in a folder, one of nothing."""
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "large").write_bytes(bytes(range(SIZE)))
    (folder / "sub" / "small").write_text("small")
    (folder / "nothing").touch()
    return folder


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "BLOCK", 10)
    monkeypatch.setattr(copying, "STRETCH", 30)


@pytest.fixture
def system_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Calls to the operating system about files, in order: flushed at a length, or a stretch not needed soon."""
    calls: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "fdatasync", lambda file: calls.append(("flushed", 0, os.fstat(file).st_size)))
    monkeypatch.setattr(
        os, "posix_fadvise", lambda file, start, length, _: calls.append(("let go", start, start + length))
    )
    return calls


@pytest.mark.parametrize("soon", [True, False])
def test_a_copy_is_what_was_digested(source: Path, tmp_path: Path, soon: bool) -> None:
    digest = sha256_tree(source)
    copy_tree(source, tmp_path / "copy", digest, soon=soon)
    assert sha256_tree(tmp_path / "copy") == digest
    assert (tmp_path / "copy" / "large").read_bytes() == bytes(range(SIZE))


@pytest.mark.parametrize("name", ["sub/small", "late"])
def test_a_file_that_changed_or_came_since_it_was_digested_is_refused(source: Path, tmp_path: Path, name: str) -> None:
    digest = sha256_tree(source)
    (source / name).write_text("other")
    with pytest.raises(InputError, match="changed while it was copied"):
        copy_tree(source, tmp_path / "copy", digest)


def test_a_link_is_not_followed(source: Path, tmp_path: Path) -> None:
    digest = sha256_tree(source)
    (source / "sub" / "small").unlink()
    (source / "sub" / "small").symlink_to(source / "large")
    with pytest.raises(InputError, match="symbolic link"):
        copy_tree(source, tmp_path / "copy", digest)


def test_every_stretch_is_on_the_disk_before_it_is_let_go(
    source: Path, tmp_path: Path, system_calls: list[tuple[str, int, int]]
) -> None:
    copy_tree(source, tmp_path / "copy", sha256_tree(source), soon=False)
    stretches = [("let go", 0, 30), ("let go", 30, 60), ("let go", 60, 90)]
    assert system_calls == [one for stretch in stretches for one in (("flushed", 0, stretch[2]), stretch)]


def test_what_is_read_soon_stays_in_memory(
    source: Path, tmp_path: Path, system_calls: list[tuple[str, int, int]]
) -> None:
    copy_tree(source, tmp_path / "copy", sha256_tree(source))
    assert system_calls == []


def test_a_system_that_takes_no_advice_copies_too(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system_calls: list[tuple[str, int, int]]
) -> None:
    monkeypatch.setattr(copying, "CAN_DROP_CACHE", False)
    digest = sha256_tree(source)
    copy_tree(source, tmp_path / "copy", digest, soon=False)
    assert (sha256_tree(tmp_path / "copy"), system_calls) == (digest, [])


def test_what_is_put_in_a_folder_is_let_go_and_what_is_pulled_stays(
    source: Path, tmp_path: Path, system_calls: list[tuple[str, int, int]]
) -> None:
    store = DirectoryStore(tmp_path / "registry")
    digest = store.put_tree(source)
    put = len(system_calls)
    store.fetch_tree(digest, tmp_path / "pulled")
    assert (put, len(system_calls)) == (6, 6)
