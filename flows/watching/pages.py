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
    return addresses(workspace.layout, f"runs/{workspace.run_id}")


def addresses(layout: Layout, folder: str) -> dict[str, str]:
    """Title -> address of every page that there is; ``folder`` is the layout's own on the server of pages."""
    pages = {
        "Report": layout.report,
        "Data validation": layout.data / "validation.html",
        "Verifier audit": layout.audit_page,
    }
    return {title: _address(layout, path, folder) for title, path in pages.items() if path.is_file()}


def _address(layout: Layout, path: Path, folder: str) -> str:
    base = os.environ.get(PAGES_VARIABLE, "").rstrip("/")
    if not base:
        return path.resolve().as_uri()
    return f"{base}/{quote(folder)}/{quote(path.relative_to(layout.root).as_posix())}"
