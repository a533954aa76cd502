"""Whom the pods of a run are, so that they may write what this side wrote, and the other way round."""

from __future__ import annotations

import os
from pathlib import Path

from components.config.kubernetes import KubernetesSettings, VolumeState
from components.errors import InputError
from components.launch.kubernetes.plan import USER

SETTING = "launch.kubernetes.user"


def user_of(how: KubernetesSettings, workspace: Path) -> int:
    """The number of the user that pods run as. Where they share the workspace it is its owner's, or whoever makes it.

    Raises:
        InputError: they could not write there.
    """
    if not isinstance(how.shared, VolumeState):
        return how.user or USER
    made = workspace.exists()
    owner = workspace.stat().st_uid if made else os.getuid()
    if how.user is None:
        if owner == 0:
            raise InputError(
                "the run's folder belongs to root, and pods never run as root: they could not write there",
                where=workspace,
                how=f"submit the run as another user, in a folder of theirs; or set {SETTING}, and let that user write",
            )
        return owner
    if made and how.user != owner and not _open(workspace):
        raise InputError(
            f"pods run as user {how.user} ({SETTING}), and the run's folder belongs to user {owner}: they could not "
            "write there",
            where=workspace,
            how=f"leave {SETTING} out, or submit the run as user {how.user}",
        )
    return how.user


def _open(workspace: Path) -> bool:
    """Whether it is writable for the group of all pods, or for everybody."""
    found = workspace.stat()
    return bool(found.st_mode & 0o002) or (found.st_gid == USER and bool(found.st_mode & 0o020))
