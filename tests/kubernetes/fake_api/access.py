"""Kubeconfigs that lead to a server of a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def kubeconfig(path: Path, server: str, user: dict[str, Any] | None = None, **cluster: Any) -> Path:
    """Write one with the contexts ``test``, which is the current one, and ``other``."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "here", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": {"token": "good"} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": "here", "user": "me"}} for name in ("test", "other")],
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path
