"""Which registry a flow run is about, as one text: a folder of the project, or settings as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from components.config.registry import RegistrySettings
from components.errors import InputError
from components.files import dump_line
from components.registry import Store, open_store

DEFAULT = str(RegistrySettings().path)


def name_of(settings: RegistrySettings) -> str:
    """The text for these settings. They hold no secret."""
    given = settings.model_dump(mode="json", exclude_defaults=True)
    return str(settings.path) if set(given) <= {"path"} else dump_line(given).strip()


def named_store(project: Path, text: str) -> Store:
    """The store that the text names.

    Raises:
        InputError: it names none.
    """
    try:
        # Not from JSON at once: pydantic would then refuse the paths that are there by default.
        given = RegistrySettings.model_validate(json.loads(text) if text.startswith("{") else {"path": text})
    except (ValueError, RecursionError) as error:
        how = "give a folder of the project, or the section `registry` of the run's params.yaml as JSON"
        raise InputError(f"not a registry: {_said(error)}", where="registry", how=how) from error
    return open_store(given.under(project))


def _said(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
