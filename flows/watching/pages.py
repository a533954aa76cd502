"""Where the pages of a run are found: on the server that `evenkeel serve` starts for them, else as files."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from components.layout import Layout
from flows.run.workspace import Workspace

PAGES_VARIABLE = "EVENKEEL_PAGES_URL"
"""Address below which ``runs/<run-id>/out/...`` is served: browsers follow no ``file:`` link from a server's page."""


def links(workspace: Workspace) -> dict[str, str]:
    """Title -> address of every page that the run has written."""
    layout: Layout = workspace.layout
    pages = {
        "Report": layout.report,
        "Data validation": layout.data / "validation.html",
        "Verifier audit": layout.audit_page,
    }
    return {title: address(workspace, path) for title, path in pages.items() if path.exists()}


def address(workspace: Workspace, path: Path) -> str:
    """The address of one file of the run's workspace."""
    base = os.environ.get(PAGES_VARIABLE, "").rstrip("/")
    if not base:
        return path.resolve().as_uri()
    return f"{base}/runs/{quote(workspace.run_id)}/{quote(path.relative_to(workspace.root).as_posix())}"
