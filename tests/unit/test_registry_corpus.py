"""Registries as earlier versions left them are read and verified by whatever the code is now."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from components.checkpoints.checks import check_stored
from components.errors import InputError
from components.files import read_json, sha256_bytes, sha256_json
from components.registry import DirectoryStore, approvals_of, candidates, champion, find, read_history
from components.registry.approvals import signature_holds
from components.registry.signing import verify
from tests.corpus import ENTRIES, ROOT


class Entry:
    def __init__(self, name: str, folder: Path) -> None:
        self.root = ROOT / name
        self.about: dict[str, Any] = read_json(self.root / "entry.json")
        shutil.copytree(self.root / "registry", folder)
        self.store = DirectoryStore(folder)

    @property
    def signers(self) -> dict[str, str]:
        path = self.root / "signer.pem"
        return {"corpus": path.read_text()} if path.exists() else {}


@pytest.fixture(params=ENTRIES)
def entry(request: pytest.FixtureRequest, tmp_path: Path) -> Entry:
    return Entry(request.param, tmp_path / "registry")


def test_there_is_an_entry_of_every_schema() -> None:
    assert ENTRIES[:2] == ["schema-1", "schema-2"]


def test_its_records_are_read_and_say_who_is_champion(entry: Entry) -> None:
    history = read_history(entry.store)
    assert [record.outcome for record in history.records] == entry.about["outcomes"]
    found = champion(entry.store)
    assert found is not None and found.digest == entry.about["champion"]
    assert history.head == entry.about["head"]


def test_its_candidates_are_read_and_keep_their_bytes(entry: Entry) -> None:
    assert [candidate.digest for candidate in candidates(entry.store)] == entry.about["candidates"]
    for candidate in candidates(entry.store):
        stored = entry.store.get(candidate.key)
        assert stored is not None and candidate.to_bytes() == stored[0]
    assert find(entry.store, entry.about["champion"]).evidence == entry.about["evidence"]


def test_what_was_stated_is_read_keeps_its_bytes_and_its_signature(entry: Entry) -> None:
    stated = [one for digest in entry.about["candidates"] for one in approvals_of(entry.store, digest)]
    assert len(stated) == (len(entry.about["outcomes"]) if entry.about["signed"] else 0)
    recorded = [one for record in read_history(entry.store).records for one in record.approvals]
    assert all(signature_holds(one) for one in (*stated, *recorded))
    for record in read_history(entry.store).records:
        stored = entry.store.get(record.key)
        assert record.schema == 1 or (stored is not None and record.to_bytes() == stored[0])


def test_its_checkpoint_is_whole_and_of_a_format_that_may_be_loaded(entry: Entry) -> None:
    assert sha256_json(check_stored(entry.store.tree(entry.about["champion"]))) == entry.about["champion"]
    if entry.about["evidence"]:
        entry.store.tree(entry.about["evidence"])


def test_its_signature_holds_where_there_was_one_and_else_it_is_not_used(entry: Entry) -> None:
    digest = entry.about["champion"]
    if entry.about["signed"]:
        assert verify(entry.store, digest, entry.signers) == "corpus"
    else:
        with pytest.raises(InputError, match="there is none"):
            verify(entry.store, digest, Entry("schema-2", entry.store._root / "other").signers)


@pytest.mark.parametrize("name", [name for name in ENTRIES if read_json(ROOT / name / "entry.json")["signed"]])
def test_the_library_that_made_its_signature_verifies_it_without_this_project(name: str, tmp_path: Path) -> None:
    entry = Entry(name, tmp_path / "registry")
    digest = entry.about["champion"]
    (bundle,) = (entry.store._root / "objects/signatures" / digest).iterdir()
    tree = str(entry.store.tree(digest))
    command = ["verify", "key", tree, "--signature", str(bundle), "--public_key", str(entry.root / "signer.pem")]
    code = f"import sys; sys.argv = ['model_signing', *{command!r}]; from model_signing._cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verification succeeded" in done.stdout


def test_no_byte_of_the_corpus_was_converted() -> None:
    for name in ENTRIES:
        for tree in (ROOT / name / "registry/trees").iterdir():
            DirectoryStore(ROOT / name / "registry").tree(tree.name)
    assert sha256_bytes((ROOT / "schema-1/registry/objects/promotions/000001.json").read_bytes()).startswith("aee3b8d0")
