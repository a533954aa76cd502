"""`evenkeel keys new`: a key in a file, and the line that the policy needs. The private key is printed nowhere."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rich.console import Console

from components.config.people import check_by
from components.config.promotion import FILE
from components.errors import InputError
from components.registry.keys import Purpose, new_key, public_pem, public_text, write_key
from flows.host.git import succeeds

KEPT = Path(".config/evenkeel")
"""Folder of keys below a person's own."""


@dataclass(frozen=True)
class NewKey:
    """A new key: where it is, and what goes into the policy."""

    path: Path
    policy: str


def make(name: str, purpose: Purpose, out: Path | None) -> NewKey:
    """Make a key.

    Raises:
        InputError: the name cannot stand in a policy, the file is there already, or Git would take it for code.
    """
    try:
        name = check_by(name)
    except ValueError as error:
        raise InputError(str(error), where="NAME", how="give the name that the policy lists") from None
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "key"
    path = out or Path.home() / KEPT / f"{stem}{'' if purpose == 'approvals' else f'-{purpose}'}.pem"
    _refuse_as_code(path)
    key = new_key(purpose)
    write_key(key, path)
    if not isinstance(key, Ed25519PrivateKey):
        return NewKey(path, _section("signers", {name: public_pem(key)}))
    if purpose == "registry":
        return NewKey(path, f'registry_key: "{public_text(key)}"\n')
    return NewKey(path, _section("approvers", {name: {"key": public_text(key)}}))


def show(console: Console, made: NewKey) -> None:
    """Where the key is, and the line for the policy."""
    said = f"private key  {made.path}  (only you can read it; keep a copy)\nfor the policy, {FILE}:\n{made.policy}"
    console.print(said, end="", highlight=False, markup=False, soft_wrap=True)


def _section(name: str, entry: Mapping[str, object]) -> str:
    """A section of the policy, as YAML."""
    text = yaml.dump(dict(entry), Dumper=_Block, default_flow_style=None, allow_unicode=True, width=1000)
    return f"{name}:\n{textwrap.indent(text, '  ')}"


class _Block(yaml.SafeDumper):
    """Texts of several lines as blocks."""


TEXT = "tag:yaml.org,2002:str"
_Block.add_representer(str, lambda own, text: own.represent_scalar(TEXT, text, style="|" if "\n" in text else None))


def _refuse_as_code(path: Path) -> None:
    """A file that Git tracks or does not ignore would be recorded with the code of the next run."""
    real = Path(os.path.realpath(path))  # also of a link that leads to itself
    folder = real.parent
    while not folder.is_dir():
        folder = folder.parent
    inside = succeeds(folder, "rev-parse", "--is-inside-work-tree")
    if inside and not succeeds(folder, "check-ignore", "--quiet", str(real)):
        raise InputError(
            "this folder belongs to a Git repository, and the key would be recorded with the code",
            where=path,
            how="name a file elsewhere with --out",
        )
