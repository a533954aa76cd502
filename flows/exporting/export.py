"""A checkpoint out of the registry, verified, in the form that another program loads."""

from __future__ import annotations

from pathlib import Path

from components.directories import write_directory
from components.errors import InputError
from components.files import write_text
from components.registry import sound_history
from flows.exporting.card import card
from flows.exporting.form import CARD, Form, write
from flows.governance.checkpoint import find_candidate, look_up
from flows.governance.policies import check_champion
from flows.governance.registry import RegistryContext
from flows.governance.signers import verified


def cleared(context: RegistryContext, which: str) -> tuple[str, Path]:
    """Digest and files of a checkpoint that may leave the registry: its signature holds, and the champion was approved.

    Raises:
        InputError: one of them does not hold, or there is no such checkpoint.
    """
    if which == "champion":
        check_champion(context, sound_history(context.store))
    digest = find_candidate(context, which).digest
    return digest, verified(context.project, context.store, digest)


def export(context: RegistryContext, which: str, target: Path, form: Form, base: str = "") -> str:
    """Write the new folder ``target``, whole or not at all; returns the digest of the checkpoint.

    Args:
        base: see `card`.

    Raises:
        InputError: as `cleared`; there is something at ``target``; or the checkpoint cannot be had in this form.
    """
    if target.exists() or target.is_symlink():
        raise InputError("there is something at this path", where=target, how="name a folder that is not there")
    digest, tree = cleared(context, which)
    text = card(context, look_up(context, digest), form, base)

    def fill(folder: Path) -> None:
        write(form, tree, digest, folder, title=digest[:12])
        write_text(folder / CARD, text)

    write_directory(target, fill)
    return digest
