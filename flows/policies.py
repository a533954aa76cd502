"""The policies that a project has had, by Git's history of what is checked out.

A record says by the digest of which policy it was decided. Whoever can write to the registry could name one that asks
for nothing, or one that was replaced long ago; what the project's own history did not have then is no policy of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from components.config.promotion import FILE, Policy, load_policy
from components.errors import InputError
from components.registry import History, PromotionRecord
from components.registry.clock import parse
from components.registry.records import record_key
from components.registry.warrant import unapproved
from flows.git import git, succeeds

PATHS = (FILE.parent.as_posix(), "configs/health")
"""What a policy is read from."""
LAG = timedelta(days=1)
"""So long after a policy was replaced a clone that has not heard of it may still go by it."""
HOW = (
    "where this is a shallow clone or is behind, fetch the rest of the history; else find out who decided that. A new "
    "record by the present policy mends it: approve another candidate, or roll back"
)


@dataclass(frozen=True)
class Past:
    """A policy that the project had, and when another took its place; None: it is the newest. ``policy`` is None where
    this version cannot read it."""

    policy: Policy | None
    until: datetime | None

    def held(self, record: PromotionRecord) -> bool:
        """Whether this was the policy that the record names, when it was made."""
        if self.policy is None or self.policy.sha256 != record.policy_sha256:
            return False
        return self.until is None or parse(record.at) <= self.until + LAG


def policies_of(project: Path, wanted: Collection[str]) -> dict[str, Policy]:
    """Digest -> policy, of the wanted ones that the project has had.

    Raises:
        InputError: Git cannot say.
    """
    found = (one.policy for one in (past(project) if wanted else ()) if one.policy is not None)
    return {policy.sha256: policy for policy in found if policy.sha256 in wanted}


def problems(project: Path, history: History) -> dict[int, str]:
    """Number -> why a record cannot be shown to rest on the approvals that the policy of its time asked for.

    Records go forward in the history of the policy: after one by a newer policy none by an older one is taken. One of
    the first schema, which kept no approvals, is let be unless the champion stands on it.
    """
    had, at, said = past(project) if history.records else [], 0, dict[int, str]()
    for record in history.records:
        if record.schema == 1:
            if record.number == history.base:
                said[record.number] = "an earlier version made it, which kept no approvals"
            continue
        place = next((i for i in range(at, len(had)) if had[i].held(record)), None)
        if place is None:
            said[record.number] = _foreign(record, had)
            continue
        at, policy = place, had[place].policy
        if policy is not None and (problem := unapproved(record, policy)):
            said[record.number] = problem
    return said


def _foreign(record: PromotionRecord, had: Collection[Past]) -> str:
    named = f"it names the policy {record.policy_sha256[:12]}"
    if any(one.policy is not None and one.policy.sha256 == record.policy_sha256 for one in had):
        return f"{named}, which had been replaced by then"
    return f"{named}, which this project's history does not have"


def check_champion(project: Path, history: History) -> None:
    """Refuse a champion that nobody can show to have been approved.

    Raises:
        InputError: its record names a policy that was not the project's, or lacks approvals.
    """
    if problem := problems(project, history).get(history.base):
        raise InputError(
            f"the champion cannot be shown to have been approved: {problem}", where=record_key(history.base), how=HOW
        )


def check_recorded(project: Path, policy: Policy) -> None:
    """Refuse to decide by a policy that nobody could hold the decision against later.

    Raises:
        InputError: it is not the policy of the commit that is checked out.
    """
    present = _at(project, "HEAD") if _committed(project) else None
    if present is None or policy.sha256 != present.sha256:
        raise InputError(
            "the promotion policy is not committed as it is, so nobody could check later what was decided by it",
            where=project / FILE,
            how=f"git add {' '.join(PATHS)} && git commit, or put it back: git checkout -- {' '.join(PATHS)}",
        )


def past(project: Path) -> list[Past]:
    """Every policy that the project has had, oldest first; one that came back is there again.

    Raises:
        InputError: Git cannot say.
    """
    states: list[tuple[datetime, Policy | None]] = []
    for since, policy in _states(project):
        before = states[-1][1] if states else None
        if not states or (policy and policy.sha256) != (before and before.sha256):
            states.append((since, policy))
    ends = [*(since for since, _ in states[1:]), None]
    return [Past(policy, until) for (_, policy), until in zip(states, ends, strict=False)]  # no states, no ends


def _states(project: Path) -> Iterator[tuple[datetime, Policy | None]]:
    """When something was committed that a policy is read from, and the policy then."""
    if not _committed(project):
        return
    listing = ("rev-list", "--full-history", "--topo-order", "--reverse", "--timestamp", "HEAD", "--", *PATHS)
    for line in git(project, *listing).splitlines():
        since, commit = line.split()
        yield datetime.fromtimestamp(int(since), UTC), _at(project, commit)


def _committed(project: Path) -> bool:
    return succeeds(project, "rev-parse", "--verify", "--quiet", "HEAD")


def _at(project: Path, commit: str) -> Policy | None:
    """The policy of a commit; None where it had none, or none that this version can read."""
    listed = git(project, "ls-tree", "-r", "-z", commit, "--", *PATHS).split("\0")
    blobs = {path: about.split()[2] for about, _, path in (row.partition("\t") for row in listed if row)}
    if FILE.as_posix() not in blobs:
        return None
    with tempfile.TemporaryDirectory(prefix="evenkeel-policy-") as folder:
        for path, blob in blobs.items():
            if path.endswith(".yaml"):
                target = Path(folder) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(git(project, "cat-file", "blob", blob).encode(errors="surrogateescape"))
        try:
            return load_policy(Path(folder))
        except InputError:
            return None
