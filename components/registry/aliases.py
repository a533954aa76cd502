"""Movable names for checkpoints: `champion` is served, `challenger` is the newest candidate whose gate passed.

The alias `champion` is a pointer for those who serve. It follows the records by compare-and-swap, and never goes back
to an earlier record; where a crash kept it from following, the next command makes up for it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from components.errors import InputError
from components.files import dump_json, load_json
from components.registry.base import Store, check_digest, reading
from components.registry.history import History, read_history
from components.registry.records import PREFIX, RESTORE

CHAMPION = "aliases/champion.json"
CHALLENGER = "aliases/challenger.json"
REMOVE = "remove the alias, which the next decision, or the next candidate whose gate passes, puts back"


@dataclass(frozen=True, slots=True)
class Alias:
    """What a name points to.

    ``record`` is the promotion record that put it there, ``sha256`` that of the record itself; of a challenger,
    ``record`` is how many there were when it was proposed.
    """

    digest: str
    record: int
    sha256: str | None = None


def champion(store: Store) -> Alias | None:
    """The champion by the records, or None before the first promotion.

    Raises:
        InputError: the records contradict themselves, or the alias points elsewhere than any of them ever did.
    """
    entry = sound_history(store).champion
    return None if entry is None else Alias(entry.digest, entry.record, entry.sha256)


def sound_history(store: Store) -> History:
    """Every record, and an alias that one of them put there.

    Raises:
        InputError: see `champion`.
    """
    alias = read_alias(store, CHAMPION)  # before the records, which it follows
    history = read_history(store)
    check_alias(alias, history)
    return history


def challenger(store: Store) -> Alias | None:
    """The newest candidate whose gate passed."""
    return read_alias(store, CHALLENGER)


def challenge(store: Store, digest: str) -> None:
    """Make a candidate the challenger. It needs no sound log: a candidate can be proposed while that is fixed."""
    alias = Alias(check_digest(digest), len(store.keys(PREFIX)))

    def change(stored: bytes | None) -> bytes | None:
        return None if stored is not None and _parse(stored, CHALLENGER).digest == digest else _bytes(alias)

    store.update(CHALLENGER, change)


def follow(store: Store, history: History) -> None:
    """Bring the alias to the champion of the records, unless it stands there or on a later one.

    Raises:
        InputError: it points elsewhere than the records ever did.
    """

    def change(stored: bytes | None) -> bytes | None:
        current = None if stored is None else _parse(stored, CHAMPION)
        if current is not None and current.record > len(history.records):
            history.read_on(store)
        check_alias(current, history)
        entry = history.champion
        if entry is None or (current is not None and current.record >= entry.record):
            return None
        return _bytes(Alias(entry.digest, entry.record, entry.sha256))

    store.update(CHAMPION, change)


def check_alias(alias: Alias | None, history: History) -> None:
    """Refuse an alias that no record put there. One that stands on an earlier record merely has to follow.

    Raises:
        InputError: it points elsewhere than the records ever did.
    """
    if alias is None:
        return
    found = next((entry for entry in history.champions if entry.record == alias.record), None)
    if found is not None and alias.sha256 not in (None, found.sha256):
        what = f"record {found.record} was changed after the champion stood on it"
        raise InputError(what, where=CHAMPION, how=RESTORE)
    if found is None or found.digest != alias.digest:
        what = f"the alias points to {alias.digest[:12]} by record {alias.record}, and no such record made it champion"
        how = f"find out who changed the alias or the records; then restore the records, or {REMOVE}"
        raise InputError(what, where=CHAMPION, how=how)


def read_alias(store: Store, key: str) -> Alias | None:
    """An alias as it is stored."""
    stored = store.get(key)
    return None if stored is None else _parse(stored[0], key)


def _bytes(alias: Alias) -> bytes:
    return dump_json(asdict(alias)).encode()


def _parse(data: bytes, key: str) -> Alias:
    with reading("an alias", key, f"find out who changed it; then {REMOVE}"):
        alias = Alias(**load_json(data))
        check_digest(alias.digest)
        if isinstance(alias.record, bool) or not isinstance(alias.record, int):
            raise ValueError("the record is no number")
    return alias
