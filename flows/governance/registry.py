"""The project's registry: its store and policy, the key that signs checkpoints here, and those of the registry whose
signature holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from components.checkpoints.checks import check_stored
from components.config import Settings
from components.config.keys import own_key_file
from components.config.promotion import Policy, load_policy
from components.config.registry import RegistrySettings
from components.errors import InputError
from components.files import dump_line
from components.registry import PromotionRecord, Store, open_store, read_history
from components.registry.candidates import PREFIX as CANDIDATES
from components.registry.candidates import read_candidate
from components.registry.promotion import final
from components.registry.records import PREFIX as RECORDS
from components.registry.signing import fingerprint, verify
from flows.run.parameters import DEMO


@dataclass(frozen=True)
class RegistryContext:
    """What a decision needs: the project's folder, its store and its policy. ``config`` names the configuration of the
    store, for commands that are printed."""

    project: Path
    store: Store
    policy: Policy
    config: str = DEMO


def project_store(project: Path, settings: Settings) -> Store:
    """The store the settings name. A relative path starts at the project, so that all runs share it."""
    return open_store(settings.registry.under(project))


def missing_registry(project: Path, settings: Settings) -> Path | None:
    """The folder of a registry without any candidate or record: not created yet, named wrongly, or gone. Else None."""
    named = settings.registry.under(project)
    if named.kind != "directory":
        return None
    store = open_store(named)
    return None if store.keys(CANDIDATES) or store.keys(RECORDS) else named.path


def decision_on(store: Store, digest: str) -> PromotionRecord | None:
    """The final decision about a candidate, if there is one."""
    candidate = read_candidate(store, digest)
    return None if candidate is None else final(read_history(store), candidate)


DEFAULT = str(RegistrySettings().path)


def name_of(settings: RegistrySettings) -> str:
    """The text for these settings. They hold no secret."""
    given = settings.model_dump(mode="json", exclude_defaults=True)
    return str(settings.path) if set(given) <= {"path"} else dump_line(given).strip()


def named_store(project: Path, text: str) -> Store:
    """The store that the text names.

    Raises:
        InputError: it names none.
    """
    try:
        # Not from JSON at once: pydantic would then refuse the paths that are there by default.
        given = RegistrySettings.model_validate(json.loads(text) if text.startswith("{") else {"path": text})
    except (ValueError, RecursionError) as error:
        how = "give a folder of the project, or the section `registry` of the run's params.yaml as JSON"
        raise InputError(f"not a registry: {_said(error)}", where="registry", how=how) from error
    return open_store(given.under(project))


def _said(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def signing_key(project: Path, policy: Policy) -> Path | None:
    """The private key to sign with; made now where there is none and the policy lists no signers.

    Returns:
        None where the policy lists signers and none of their keys is here.

    Raises:
        InputError: the key cannot be read, others can read it, or it cannot be written.
    """
    from components.registry.keys import public_pem, read_key  # loads cryptography

    path, listed = own_key_file(project), policy.settings.signers.values()
    if not path.exists():
        if listed:
            return None
        _make(path)
    own = fingerprint(public_pem(read_key(path)))
    return path if not listed or own in map(fingerprint, listed) else None


def _make(path: Path) -> None:
    """Write a new key; one that another process has just written stays."""
    from components.registry.keys import new_key, write_key

    try:
        write_key(new_key("checkpoints"), path)
    except InputError:
        if not path.exists():
            raise


def verified(project: Path, store: Store, digest: str) -> Path:
    """The folder of a stored checkpoint that may be loaded: its files, its format and its signature hold.

    Raises:
        InputError: one of them does not, or it is not stored.
    """
    policy = load_policy(project)
    tree = store.tree(digest)
    check_stored(tree)
    verify(store, digest, policy.signers)
    return tree
