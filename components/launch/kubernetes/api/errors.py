"""A request that failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from components.errors import CorrectableError

LATER = frozenset({429, 500, 502, 503, 504})
"""Statuses that say nothing about the request itself."""
OUTCOME_UNKNOWN = frozenset({500, 502, 503, 504})
"""Statuses that a server, or what stands before it, may give although the request was carried out."""


class ClusterError(CorrectableError):
    """A request to the cluster failed (exit code 2)."""


class Unreachable(ClusterError):
    """The server did not answer, or not usefully, for as long as we were ready to wait. It may do so later."""


class Refused(ClusterError):
    """The server said no, for a reason that remains."""

    status = 0


class Exists(Refused):
    """There is an object of this name already, and it is another one than was to be created."""


@dataclass(eq=False)
class Failure(Exception):
    """One failed attempt, before it becomes an error for the user."""

    text: str
    """What happened, by us or by the server."""
    _: KW_ONLY
    status: int | None = None
    """The HTTP status; None where there was no whole answer."""
    sent: bool = True
    """Whether the server may have received the request."""
    permanent: bool = False
    """The same attempt cannot succeed later, although there was no answer."""
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    after: float | None = None
    """Seconds that the server wants us to wait."""

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return not self.permanent if self.status is None else self.status in LATER

    @property
    def contended(self) -> bool:
        """A creation that lost a race, such as that of two writers at one quota; nothing was created."""
        return self.status == 409 and self.reason == "Conflict"

    @property
    def may_have_succeeded(self) -> bool:
        """Whether the request may have succeeded although no answer confirmed it."""
        return self.sent if self.status is None else self.status in OUTCOME_UNKNOWN

    @property
    def exists(self) -> bool:
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def no_such_path(self) -> bool:
        """The server does not know the kind of object, whatever its name."""
        return self.status == 404 and not self.reason

    @property
    def absent(self) -> bool:
        """There is no object of this name."""
        return self.status == 404 and not self.no_such_path


def refusal(status: int, body: str, headers: Mapping[str, str]) -> Failure:
    """An answer that is not a success."""
    found: dict[str, Any] = {}
    try:
        parsed = json.loads(body)
        found = parsed if isinstance(parsed, dict) and parsed.get("kind") == "Status" else {}
    except ValueError:
        pass  # proxies and unknown paths answer with text
    text = found.get("message") or body[:300].strip() or f"status {status}"
    failure = of_status({**found, "code": status, "message": text})
    failure.after = _seconds(headers.get("Retry-After")) or failure.after
    return failure


def of_status(status: Mapping[str, Any]) -> Failure:
    """What a Status says, as an answer or as an event of a watch."""
    code, reason, details = status.get("code"), str(status.get("reason") or ""), status.get("details") or {}
    return Failure(
        str(status.get("message") or reason or "an error without a message"),
        status=code if isinstance(code, int) else 500,
        reason=reason,
        details=details,
        after=_seconds(details.get("retryAfterSeconds")),
    )


def _seconds(text: object) -> float | None:
    """Seconds to wait by the server's `Retry-After`. The other form, a date, is used by none of them."""
    try:
        return max(0.0, float(str(text)))
    except ValueError:
        return None
