"""Which registry this is: a random number, made once, so that what was stated in one registry counts in no other.

A copy of the whole folder is the same registry, as a backup that is put back must be. Another registry starts empty.
"""

from __future__ import annotations

import json
import re
import secrets

from components.files import dump_json
from components.registry.base import Store, reading

KEY = "registry.json"
BYTES = 16
SHOWN = 8
"""Digits that distinguish one from another."""
_IDENTITY = re.compile(f"[0-9a-f]{{{2 * BYTES}}}")


def identity(store: Store) -> str:
    """Of a registry; "" where it has none yet, for nothing was proposed or stated since there are identities.

    Raises:
        InputError: what is stored is none.
    """
    stored = store.get(KEY)
    if stored is None:
        return ""
    how = "put it back as it was: what was stated in this registry names it"
    with reading("the identity of a registry", KEY, how):
        return check_identity(json.loads(stored[0])["identity"])


def identify(store: Store) -> str:
    """The `identity`, made now where there is none; of several who do so at once, all get that of the first."""
    if known := identity(store):
        return known
    store.put_if_absent(KEY, dump_json({"identity": secrets.token_hex(BYTES)}).encode())
    return identity(store)


def elsewhere(said: str | None, here: str | None) -> str:
    """A sentence for where a statement was made that names the registry ``said``, while this is ``here``."""
    if not said:
        return "made by an earlier version and names no registry"
    return f"made in the registry {said[:SHOWN]}, and this {f'is {here[:SHOWN]}' if here else f'has no {KEY}'}"


def check_identity(text: str) -> str:
    """``text`` itself.

    Raises:
        ValueError: it is no identity.
    """
    if not _IDENTITY.fullmatch(text):
        raise ValueError(f"{2 * BYTES} lower-case hexadecimal digits are expected")
    return text
