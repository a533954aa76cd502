"""One thing that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from components.launch.kubernetes.observed import Object, Observed, about, containers, metadata, name_of, part, role_of

Hints = tuple[tuple[str, str], ...]
"""Patterns of what a cluster says, and what to do about it, with names such as ``{section}``."""
SHOWN = 3
"""Names of pods that are listed; of the others only how many they are."""

LONGEST = 600
"""Characters of a message that are shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``what`` is wrong, in one sentence without a full stop; ``where``, as names of objects; ``how`` to fix it."""

    what: str
    where: str
    how: str

    def __str__(self) -> str:
        return f"{self.what}\n{self.advice}"

    @property
    def advice(self) -> str:
        """Where it is and what to do, for whoever has said in other words what it is."""
        return f"  where: {self.where}\n  fix:   {self.how}"


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Equal findings as one, with all their places and the fix of the first."""
    same: dict[str, list[Finding]] = {}
    for one in findings:
        same.setdefault(one.what, []).append(one)
    return [Finding(what, _named(found), found[0].how) for what, found in same.items()]


def _named(findings: list[Finding]) -> str:
    names = list(dict.fromkeys(one.where for one in findings))
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def each(observed: Observed) -> Iterator[tuple[str, Object]]:
    """The present attempt's pods, with the section of the settings that they come from."""
    for pod in observed.present(observed.pods):
        role = role_of(pod)
        yield f"launch.kubernetes.{role}" if role else "launch.kubernetes", pod


def word(one: Object) -> str:
    """What a job or pod is for."""
    return role_of(one) or name_of(one)


def hint(hints: Hints, text: str, otherwise: str, **names: str) -> str:
    """What is advised for the first pattern that is found, with these names filled in."""
    return next((advice for pattern, advice in hints if re.search(pattern, text)), otherwise).format(**names)


def latest(observed: Observed, *reasons: str, about_what: str = "") -> dict[str, str]:
    """What was last reported for one of these reasons, by the name of the object."""
    events = [event for event in observed.events if event.get("reason") in reasons]
    return {about(one): sentence(one.get("message")) for one in events if about_what in str(one.get("message"))}


def waiting(pod: Object) -> Iterator[tuple[Object, str, str]]:
    """Containers that do not run yet, with the reason and the message."""
    for container in containers(pod):
        found = part(container, "state").get("waiting")
        if found:
            yield container, str(found.get("reason") or ""), sentence(found.get("message"))


def sentence(text: object) -> str:
    """A server's message on one line, not endlessly long, without a full stop."""
    one = " ".join(str(text or "").split()).rstrip(". ")
    return one if len(one) <= LONGEST else f"{one[: LONGEST - 1]}…"


def namespace(one: Object) -> str:
    return str(metadata(one).get("namespace", ""))


def logs_command(pod: Object, container: str) -> str:
    """The command that shows what a container has printed."""
    return f"kubectl -n {namespace(pod)} logs {name_of(pod)} -c {container}"
