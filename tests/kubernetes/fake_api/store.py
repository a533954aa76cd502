"""Objects of a cluster, and who watches them."""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

Key = tuple[str, str, str]
"""Plural, namespace, name."""


class Store:
    """Every change has a number, and wakes whoever waits for one."""

    def __init__(self) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.history: list[tuple[int, str, Key, dict[str, Any]]] = []
        self.changed = threading.Condition()
        self.version = 100

    def put(self, plural: str, namespace: str, found: dict[str, Any]) -> dict[str, Any]:
        """Create or replace an object, as a controller would."""
        with self.changed:
            metadata = found.setdefault("metadata", {})
            key = (plural, namespace, metadata["name"])
            old = self.objects.get(key)
            metadata.setdefault("namespace", namespace)
            metadata.setdefault("uid", old["metadata"]["uid"] if old else str(uuid.uuid4()))
            metadata.setdefault("creationTimestamp", f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
            self._number("MODIFIED" if old else "ADDED", key, found)
            self.objects[key] = found
            return copy.deepcopy(found)

    def remove(self, key: Key) -> dict[str, Any]:
        with self.changed:
            found = self.objects.pop(key)
            self._number("DELETED", key, found)
            return found

    def _number(self, kind: str, key: Key, found: dict[str, Any]) -> None:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, kind, key, copy.deepcopy(found)))
        self.changed.notify_all()

    def get(self, key: Key) -> dict[str, Any] | None:
        with self.changed:
            return copy.deepcopy(self.objects.get(key))

    def list(self, plural: str, namespace: str) -> Iterator[dict[str, Any]]:
        with self.changed:
            found = sorted((key, value) for key, value in self.objects.items() if key[0] == plural)
            chosen = [copy.deepcopy(value) for key, value in found if namespace in ("", key[1])]
        return iter(chosen)


def selected(found: dict[str, Any], labels: str, fields: str) -> bool:
    """Whether an object is one of those that were asked for."""
    own = found["metadata"].get("labels") or {}
    wanted = [pair.split("=", 1) for pair in labels.split(",") if pair]
    if any(own.get(key) != value for key, value in wanted):
        return False
    for part in filter(None, fields.split(",")):
        unequal = "!=" in part
        name, value = part.split("!=" if unequal else "=", 1)
        here: Any = found
        for step in name.split("."):
            here = here.get(step, {}) if isinstance(here, dict) else {}
        if (here == value) == unequal:
            return False
    return True
