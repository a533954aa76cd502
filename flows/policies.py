"""The policies that a project has had, by Git's history of what is checked out.

A record says by the digest of which policy it was decided. Whoever can write to the registry could name one that asks
for nothing; what the project's own history does not hold is no policy of the project.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from components.config.promotion import FILE, Policy, load_policy
from components.errors import InputError
from components.files import write_text
from components.registry import History
from components.registry.records import record_key
from components.registry.warrant import unwarranted
from flows.git import git, succeeds

PATHS = (FILE.parent.as_posix(), "configs/health")
"""What a policy is read from."""
SHALLOW = "if this is a shallow clone, `git fetch --unshallow`; if a colleague changed the policy, pull that change"


def policies_of(project: Path, wanted: Collection[str]) -> dict[str, Policy]:
    """Digest -> policy, of the wanted ones that the project has had. One that this version cannot read is left out.

    Raises:
        InputError: Git cannot say.
    """
    found, left = dict[str, Policy](), set(wanted)
    for tree in _trees(project) if left else ():
        policy = _read(project, tree)
        if policy is not None and policy.sha256 in left:
            found[policy.sha256] = policy
            left.discard(policy.sha256)
        if not left:
            break
    return found


def problems(project: Path, history: History) -> dict[int, str]:
    """Number -> why a record cannot be shown to rest on the approvals that a policy of this project asked for.

    One of the first schema, which kept none, is let be unless the champion stands on it.
    """
    held = [record for record in history.records if record.schema > 1 or record.number == history.base]
    policies = policies_of(project, {record.policy_sha256 for record in held if record.schema > 1})
    said = {record.number: unwarranted(record, policies) for record in held}
    return {number: problem for number, problem in said.items() if problem}


def check_champion(project: Path, history: History) -> None:
    """Refuse a champion that nobody can show to have been approved.

    Raises:
        InputError: its record names a policy that the project never had, or lacks approvals.
    """
    if problem := problems(project, history).get(history.base):
        raise InputError(
            f"the champion cannot be shown to have been approved: {problem}",
            where=record_key(history.base),
            how=f"{SHALLOW}; or name its digest, if you know whose it is",
        )


def check_recorded(project: Path, policy: Policy) -> None:
    """Refuse to decide by a policy that nobody could hold the decision against later.

    Raises:
        InputError: the policy is not in Git's history as it is.
    """
    if policy.sha256 not in policies_of(project, [policy.sha256]):
        raise InputError(
            "the promotion policy is not committed as it is, so nobody could check later what was decided by it",
            where=project / FILE,
            how=f"git add {' '.join(PATHS)} && git commit, or put it back: git checkout -- {FILE}",
        )


def _trees(project: Path) -> Iterator[Mapping[str, str]]:
    """Path -> blob of everything that a policy is read from, newest first; the same ones once."""
    seen = set[str]()
    if not succeeds(project, "rev-parse", "--verify", "--quiet", "HEAD"):
        return  # nothing was committed yet
    for commit in git(project, "log", "--full-history", "--format=%H", "--", *PATHS).splitlines():
        listed = git(project, "ls-tree", "-r", commit, "--", *PATHS)
        if listed in seen:
            continue
        seen.add(listed)
        rows = (line.partition("\t") for line in listed.splitlines())
        yield {path: about.split()[2] for about, _, path in rows if path.endswith(".yaml")}


def _read(project: Path, tree: Mapping[str, str]) -> Policy | None:
    if FILE.as_posix() not in tree:
        return None
    with tempfile.TemporaryDirectory(prefix="evenkeel-policy-") as folder:
        for path, blob in tree.items():
            write_text(Path(folder) / path, git(project, "cat-file", "blob", blob))
        try:
            return load_policy(Path(folder))
        except InputError:
            return None
