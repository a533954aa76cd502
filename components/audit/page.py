"""The audit as one offline page: no script, no network, the same bytes for the same verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from components.config import Settings
from components.pages import render_page

TEMPLATE = Path(__file__).with_name("page.jinja")
SHOWN = ("outbids", "prefers", "failed", "unstable")
"""Of functions only the sorts are shown of which something of this was found."""


def render(audit: Mapping[str, Any], settings: Settings) -> str:
    """HTML text of the page."""
    return render_page(
        TEMPLATE,
        audit=audit,
        functions=[one for one in audit["functions"] if any(one[key] for key in SHOWN)],
        verifier=_as_yaml(settings.reward.verifier.model_dump(mode="json")),
        second=_as_yaml(settings.audit.second.model_dump(mode="json")) if settings.audit.second else None,
    )


def _as_yaml(settings: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(settings), sort_keys=False, default_flow_style=True, width=1000).strip()
