"""Private keys: in files of their owner alone, never overwritten, and never shown."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from components.errors import InputError, MachineError
from components.registry.keys import new_key, public_text, read_approver_key, read_key, verifies, write_key


def written(path: Path) -> tuple[Ed25519PrivateKey, Path]:
    key = new_key()
    assert isinstance(key, Ed25519PrivateKey)
    return key, write_key(key, path)


def test_a_key_is_read_as_it_was_written_and_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    key, path = written(tmp_path / "new" / "ada.pem")
    assert public_text(read_approver_key(path)) == public_text(key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    _, path = written(tmp_path / "ada.pem")
    before = path.read_bytes()
    with pytest.raises(InputError, match="there is a file already"):
        write_key(new_key(), path)
    assert path.read_bytes() == before


def test_of_a_key_that_could_not_be_written_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(MachineError, match="No space left"):
        patch.setattr(os, "fsync", full)
        write_key(new_key(), tmp_path / "ada.pem")
    assert list(tmp_path.iterdir()) == []
    read_key(write_key(new_key(), tmp_path / "ada.pem"))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "ada.pem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError):
        write_key(new_key(), tmp_path / "ada.pem")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_key_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    _, path = written(tmp_path / "ada.pem")
    path.chmod(mode)
    with pytest.raises(InputError, match="others can read"):
        read_key(path)


def private(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_what_is_no_key_is_refused_without_being_repeated(tmp_path: Path) -> None:
    path = private(tmp_path / "x", b"-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n")
    with pytest.raises(InputError, match="not a private key") as caught:
        read_key(path)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_locked_key_is_refused(tmp_path: Path) -> None:
    pem = new_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    with pytest.raises(InputError, match="password"):
        read_key(private(tmp_path / "x", pem))


def test_a_key_for_checkpoints_does_not_approve(tmp_path: Path) -> None:
    path = write_key(new_key("checkpoints"), tmp_path / "ci.pem")
    assert read_key(path)
    with pytest.raises(InputError, match="signs checkpoints"):
        read_approver_key(path)


def test_a_missing_key_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="file not found"):
        read_key(tmp_path / "none.pem")


@pytest.mark.parametrize("public", ["", "ed25519:", "ed25519:AAAA", "nonsense"])
def test_a_malformed_public_key_verifies_nothing(public: str) -> None:
    assert not verifies(public, b"", b"")
