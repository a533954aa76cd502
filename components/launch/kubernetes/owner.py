"""Whom a run belongs to, where its settings do not say it."""

from __future__ import annotations

import os
from getpass import getuser

from components.errors import InputError

OWNER = "EVENKEEL_RUN_OWNER"


def submitter() -> str:
    """Who submits a run from here.

    Raises:
        InputError: it is unknown, as in a container whose user has no name.
    """
    if named := os.environ.get(OWNER):
        return named
    try:
        return getuser()
    except (OSError, KeyError, ImportError):
        how = f"set launch.kubernetes.owner, or {OWNER} in the environment"
        raise InputError("the owner of the run is unknown: this user has no name", where=OWNER, how=how) from None
