"""The audit as one offline page: no script, no network, the same bytes for the same verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from components.config import Settings


def render(audit: Mapping[str, Any], settings: Settings) -> str:
    """HTML text of the page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    return environment.get_template("page.jinja").render(
        audit=audit,
        verifier=_as_yaml(settings.reward.verifier.model_dump(mode="json")),
        second=_as_yaml(settings.audit.second.model_dump(mode="json")) if settings.audit.second else None,
    )


def visible(text: str) -> str:
    """The text with characters that cannot be seen written out: what fooled a verifier must not fool a reader."""
    shown = (c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)
    return "".join(shown) or "(empty)"


def _as_yaml(settings: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(settings), sort_keys=False, default_flow_style=True, width=1000).strip()
