"""A witness: a second store with the sha256 of the newest record after every decision (`witness` in the policy).

The records of a registry prove each other, and nothing says that the newest ones are still there: an older state that
is put back as a whole is sound in itself. The witness has seen more. It helps where those who can write to the registry
cannot change it: another account, or a bucket whose objects are locked.

Stored as `registry.json`, the identity of the registry, and `heads/<number>.json`. As each record names the one before
it, the newest head speaks for all of them.
"""

from __future__ import annotations

from components.config.promotion import Policy
from components.errors import InputError
from components.files import dump_json, load_json
from components.registry.base import Store, check_digest, reading
from components.registry.candidates import PREFIX as CANDIDATES
from components.registry.history import History
from components.registry.identity import KEY, SHOWN, identity
from components.registry.stores import open_store

PREFIX = "heads/"
HOW = (
    "records were removed or replaced, or this is a copy of the registry: find out how, and restore the registry from "
    "a copy that has them"
)


def witness_of(policy: Policy) -> Store | None:
    """The store that the policy names; None where it names none.

    Raises:
        InputError: the policy was not read from a project, or the store cannot be reached.
    """
    settings = policy.settings.witness
    if settings is None:
        return None
    if policy.project is None:
        how = "decide in the project whose policy this is"
        raise InputError("the policy was not read from a project, so its witness is unknown", where="witness", how=how)
    return open_store(settings.under(policy.project))


def prepare(witness: Store, history: History) -> None:
    """Give the witness the identity of the registry, before a record is written that it must be able to see.

    Raises:
        InputError, Unavailable: it cannot be written.
    """
    witness.put_if_absent(KEY, dump_json({"identity": history.registry}).encode())


def check_seen(witness: Store, store: Store, history: History) -> int:
    """The number of the newest record that the witness has seen, which the registry has too.

    Args:
        history: the records of ``store`` so far; what was appended since is taken in, for the witness may have seen it.

    Raises:
        InputError: they lack it, or have another in its place; or the witness is one of another registry, or is itself
            a registry.
    """
    if witness.keys(CANDIDATES):
        how = "name another folder or bucket in the policy, which those who write to the registry cannot change"
        what = "the witness holds candidates, so it is a registry, perhaps this one"
        raise InputError(what, where="witness", how=how)
    if (registry := identity(witness)) and registry != history.registry:
        own = history.registry[:SHOWN] or "none"
        what = f"the witness is that of the registry {registry[:SHOWN]}, and this is {own}"
        raise InputError(what, where="witness", how=HOW)
    keys = witness.keys(PREFIX)
    stored = witness.get(keys[-1]) if keys else None
    if stored is None:
        return 0
    number, sha256 = _parse(stored[0], keys[-1])
    history.read_on(store)
    if number > len(history.records):
        what = f"the witness has seen record {number}, and this registry has {len(history.records)}"
        raise InputError(what, where="witness", how=HOW)
    if history.sha256s[number - 1] != sha256:
        raise InputError(f"record {number} is another one than the witness has seen", where="witness", how=HOW)
    return number


def note_seen(witness: Store, store: Store, history: History) -> None:
    """Give the witness the newest record.

    Raises:
        InputError: it has seen another one of this number, or cannot be written; the decision stands in the registry.
    """
    if not history.records:
        return
    head = {"number": len(history.records), "sha256": history.head}
    witness.put_if_absent(_key(len(history.records)), dump_json(head).encode())
    check_seen(witness, store, history)


def _key(number: int) -> str:
    return f"{PREFIX}{number:06d}.json"


def _parse(data: bytes, key: str) -> tuple[int, str]:
    """Number and sha256."""
    with reading("the head of a registry", f"witness: {key}", "find out who changed the witness"):
        tree = load_json(data)
        number, sha256 = tree["number"], check_digest(tree["sha256"])
        if type(number) is not int or number < 1 or _key(number) != key:
            raise ValueError(f"its number is {number!r}")
    return number, sha256
