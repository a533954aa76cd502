"""Which cluster is meant: the files that `KUBECONFIG` names, or the home directory's; inside a pod its own account."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.config.documents import foreign
from components.errors import InputError

DEFAULT = "~/.kube/config"
NONE = (
    "get a kubeconfig (aws eks update-kubeconfig --name CLUSTER, gcloud container clusters get-credentials CLUSTER, "
    "az aks get-credentials ...) and name it: export KUBECONFIG=FILE; then: kubectl cluster-info"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where credentials are: ``files`` as one string as kubectl takes it, or empty for a pod's own account."""

    files: str
    context: str
    command: str = ""
    """What is run to log in, where that is how it is done."""

    @property
    def account(self) -> str:
        """Who we are, for a person."""
        return f"context {self.context!r}" if self.files else "this pod's service account"


def find(context: str | None) -> Place:
    """The place of ``context``, or of the present one.

    Raises:
        InputError: there is none, it cannot be read, or it does not know this context.
    """
    named = os.environ.get("KUBECONFIG", "")
    paths = [Path(part).expanduser() for part in (named or DEFAULT).split(os.pathsep) if part]
    there = [path for path in paths if path.is_file()]
    if there:
        return _choose(there, context)
    if named:
        raise InputError(f"KUBECONFIG names no file that exists: {named}", where="KUBECONFIG", how=NONE)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        if context is not None:
            how = "leave launch.kubernetes.context out inside a pod, or mount a kubeconfig and set KUBECONFIG"
            raise InputError(f"there is no kubeconfig that has a context {context!r}", where=DEFAULT, how=how)
        return Place("", "")
    raise InputError("no cluster is configured: there is no kubeconfig", where=f"KUBECONFIG, {DEFAULT}", how=NONE)


def _choose(paths: list[Path], context: str | None) -> Place:
    files = os.pathsep.join(map(str, paths))
    read = [_read(path) for path in paths]
    contexts = _named(read, "contexts", "context")
    current = next((str(one["current-context"]) for one in read if one.get("current-context")), "")
    wanted = context or current
    known = ", ".join(sorted(contexts)) or "none"
    if not wanted:
        how = f"kubectl config use-context NAME, or set launch.kubernetes.context; there are: {known}"
        raise InputError("the kubeconfig has no current context", where=files, how=how)
    if wanted not in contexts:
        setting = "launch.kubernetes.context" if context else "kubectl config use-context NAME"
        raise InputError(f"there is no context {wanted!r}", where=files, how=f"{setting}: one of {known}")
    user = _named(read, "users", "user").get(str(contexts[wanted].get("user")), {})
    login = user.get("exec") or {}
    return Place(files, wanted, " ".join(map(str, [login.get("command", ""), *(login.get("args") or ())])).strip())


def _named(read: list[dict[str, Any]], kind: str, part: str) -> dict[str, dict[str, Any]]:
    """Entries of one kind by name, from all files; the first one of a name counts, as for kubectl."""
    entries = [entry for one in reversed(read) for entry in one.get(kind) or () if isinstance(entry, dict)]
    return {str(entry.get("name")): entry.get(part) or {} for entry in entries}


def _read(path: Path) -> dict[str, Any]:
    how = "fix it, or get a new one from whoever runs the cluster; kubectl config view shows what kubectl makes of it"
    try:
        found = foreign(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise InputError(f"the kubeconfig cannot be read: {error.strerror}", where=path, how=how) from None
    except (InputError, UnicodeDecodeError):
        raise InputError("the kubeconfig is no YAML", where=path, how=how) from None  # its lines may hold a token
    if not isinstance(found, dict):
        raise InputError("the kubeconfig is empty, or no kubeconfig", where=path, how=how)
    return found
