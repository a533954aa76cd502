"""The promotion records as a whole: read, held against one another, and folded into who is champion.

The records alone state who is champion, whatever the alias says. Each is checked against those before it: its number,
the hash chain, what it came to, and the statements in it; a log that contradicts itself is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from components.config.people import BETWEEN
from components.config.promotion import Action
from components.errors import InputError
from components.files import sha256_bytes
from components.registry.approvals import signature_holds
from components.registry.base import Store
from components.registry.clock import SKEW, parse, stamp
from components.registry.identity import elsewhere, identity
from components.registry.records import PREFIX, RESTORE, Outcome, PromotionRecord, parse_record, record_key


@dataclass(frozen=True, slots=True)
class ChampionEntry:
    """A checkpoint that is or was the champion, and the number and the sha256 of the record that made it so."""

    digest: str
    record: int
    sha256: str


class History:
    """The log so far. Folding is a matter of the records alone, one after the other."""

    def __init__(self) -> None:
        self.records: list[PromotionRecord] = []
        self.sha256s: list[str] = []
        """Of the records as they are stored, in their order."""
        self.registry = ""
        """Its identity; "" where it has none."""
        self.champions: list[ChampionEntry] = []
        self.line: list[ChampionEntry] = []
        self.newest: PromotionRecord | None = None
        self.in_force: str | None = None
        """Digest of the policy that the registry goes by: the one that was adopted last, or else the one of the newest
        record; None before the first."""
        self.names_gate = False
        """Whether statements of a record have named what the gate says: later ones must."""
        self.adopted = 0
        """Number of the record that adopted it; 0: none did."""
        self._decided: dict[tuple[str, str | None], PromotionRecord] = {}
        self._tried: dict[tuple[str, str, str | None, int], PromotionRecord] = {}

    @property
    def head(self) -> str | None:
        """The sha256 of the newest record."""
        return self.sha256s[-1] if self.sha256s else None

    @property
    def champion(self) -> ChampionEntry | None:
        return self.line[-1] if self.line else None

    @property
    def base(self) -> int:
        """Number of the record that the champion stands on; 0: there is no champion."""
        return self.line[-1].record if self.line else 0

    @property
    def stands_on(self) -> PromotionRecord | None:
        """The record that made the champion what it is."""
        return self.records[self.base - 1] if self.base else None

    def decision(self, digest: str, evidence: str | None) -> PromotionRecord | None:
        """The record that promoted or rejected a candidate on this evidence; that is final."""
        return self._decided.get((digest, evidence))

    def rejection(self, digest: str, before: int | None = None) -> PromotionRecord | None:
        """The newest record that rejected a checkpoint on whatever evidence, of those before record ``before``."""
        earlier = self.records if before is None else self.records[: before - 1]
        return next((one for one in reversed(earlier) if (one.action, one.digest) == ("reject", digest)), None)

    def tried(self, action: str, digest: str, evidence: str | None, base: int) -> PromotionRecord | None:
        """The record of this action on this base, whatever it came to."""
        return self._tried.get((action, digest, evidence, base))

    def champion_entry(self, digest: str) -> ChampionEntry | None:
        """The last time that a checkpoint became champion."""
        return next((entry for entry in reversed(self.champions) if entry.digest == digest), None)

    def add(self, data: bytes, key: str) -> PromotionRecord:
        """Take the next record in.

        Raises:
            InputError: it is none, or contradicts those before it.
        """
        record = parse_record(data, key)
        if problem := _contradiction(record, self):
            raise InputError(f"record {record.number} {problem}", where=key, how=RESTORE)
        self._fold(record, sha256_bytes(data))
        return record

    def _fold(self, record: PromotionRecord, sha256: str) -> None:
        self.records.append(record)
        self.sha256s.append(sha256)
        if self.newest is None or parse(record.at) > parse(self.newest.at):
            self.newest = record
        if record.action == "adopt":
            self.in_force, self.adopted = record.digest, record.number
        elif record.schema > 1:
            self.in_force = record.policy_sha256
        self.names_gate |= record.names_gate
        self._tried[record.action, record.digest, record.evidence, record.base] = record
        if record.outcome in ("promoted", "rejected"):
            self._decided[record.digest, record.evidence] = record
        if record.effective:
            entry = ChampionEntry(record.digest, record.number, sha256)
            self.champions.append(entry)
            self.line = [*_until(self.line, record), entry]

    def expected_outcome(self, action: Action, base: int) -> Outcome:
        """What an action decided against the champion of ``base`` comes to now."""
        if action in ("reject", "adopt"):
            return "rejected" if action == "reject" else "adopted"
        if base != self.base:
            return "superseded"
        return "promoted" if action == "promote" else "rolled back"

    def check_clock(self, now: datetime) -> None:
        """Refuse to go by a clock that is behind what was decided already: expired approvals would count again.

        Raises:
            InputError: one of two clocks is wrong, this one or that of the record; what to do about either.
        """
        if self.newest is not None and now < parse(self.newest.at) - SKEW:
            newest = self.newest
            what = f"this machine's clock says {stamp(now)}, and record {newest.number} was written at {newest.at}"
            how = (
                f"set it right; where it is right and the one of that record was ahead, move {newest.key}, all later "
                "records and aliases/champion.json out of the registry: that undoes them"
            )
            raise InputError(what, where="the clock", how=how)

    def read_on(self, store: Store) -> None:
        """Take in what was appended since."""
        while True:
            stored = store.get(key := record_key(len(self.records) + 1))
            self.registry = self.registry or identity(store)  # after the record: that is written after it
            if stored is None:
                return
            self.add(stored[0], key)


def _until(line: list[ChampionEntry], record: PromotionRecord) -> list[ChampionEntry]:
    """The champions before this one: a roll-back forgets those that it went back over."""
    if record.action == "rollback":
        for place, entry in enumerate(line):
            if entry.digest == record.digest:
                return line[:place]
    return line


def _contradiction(record: PromotionRecord, before: History) -> str:
    """What is impossible about the next record, "" where nothing is."""
    if record.number != len(before.records) + 1:
        return f"follows record {len(before.records)}"
    if record.previous != (before.champion.digest if before.champion else None):
        return "names another champion before it than the records do"
    if record.schema == 1:
        return "is of schema 1 after later ones" if before.records and before.records[-1].schema != 1 else ""
    if record.before != before.head:
        return "does not follow the record before it: one of the two was changed"
    if record.base and not any(entry.record == record.base for entry in before.champions):
        return f"was decided against record {record.base}, on which no champion stood"
    if record.outcome != before.expected_outcome(record.action, record.base):
        return f"says {record.outcome!r}, which cannot be"
    if record.action != "rollback" and before.decision(record.digest, record.evidence):
        return "decides again what was decided"
    if record.action == "rollback" and not before.champion_entry(record.digest):
        return "goes back to a checkpoint that never was the champion"
    return _policy(record, before) or _statements(record, before)


def _policy(record: PromotionRecord, before: History) -> str:
    """Once a policy was adopted, the next one takes its place by a record, and by nothing else."""
    if record.action == "adopt":
        if record.evidence != before.head:
            return "adopts a policy for other records than those before it"
        if record.digest == before.in_force:
            return "adopts the policy that is in force"
    if (before.adopted or record.action == "adopt") and record.policy_sha256 != before.in_force:
        return "was decided by another policy than the one in force"
    return ""


def _statements(record: PromotionRecord, before: History) -> str:
    """It rests on statements of its people about itself, and on a gate that let it pass."""
    if not record.approvals or record.by != BETWEEN.join(one.statement.by for one in record.approvals):
        return "names others than those who approved"
    if record.registry is None and before.records and before.records[-1].registry is not None:
        return "rests on statements that name no registry, after one that rests on such as do"
    if record.action == "promote" and not record.names_gate and before.names_gate:
        return "rests on statements that do not name what the gate says, after one that rests on such as do"
    for approval in record.approvals:
        said = approval.statement
        if (said.action, said.digest, said.evidence) != (record.action, record.digest, record.evidence):
            return f"rests on a statement of {said.by} about something else"
        if record.action != "reject" and (said.base, said.policy) != (record.base, record.policy_sha256):
            return f"rests on a statement of {said.by} about another champion or policy"
        if record.action == "promote" and said.gate != record.question.gate:
            return f"holds another answer of the gate than the one that {said.by} approved"
        if said.registry != record.registry:
            return "rests on statements of more than one registry"
        if said.registry not in (None, before.registry):
            return f"rests on a statement of {said.by} {elsewhere(said.registry, before.registry)}"
        if approval.signed and not signature_holds(approval):
            return f"rests on a statement whose signature by {said.by} does not hold"
    if record.action == "promote" and record.gate.get("result") not in ("pass", "inconclusive"):
        return "promotes what the gate did not let pass"
    return ""


def read_history(store: Store) -> History:
    """Every record, in order.

    Raises:
        InputError: a number is missing, or a record is damaged or contradicts the others.
    """
    listed = store.keys(PREFIX)  # first: a record is written after those before it, so all of these can be read now
    history = History()
    history.read_on(store)
    present = {record.key for record in history.records}
    if strange := [key for key in listed if key not in present]:
        missing = record_key(len(history.records) + 1)
        what = f"the promotion records are not numbered 1, 2, 3, ...: there is {strange[0]} and no {missing}"
        raise InputError(what, where=PREFIX, how=RESTORE)
    return history


def records(store: Store) -> list[PromotionRecord]:
    """Every decision, in order; see `read_history`."""
    return read_history(store).records
