"""What a setting counts for, stated at its field: ``ranks: Annotated[RankSettings, LOGISTICS]``.

A field of a section states it for all fields below it, unless one of them states its own. A section whose fields differ
has no statement from above, except where most of them agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from components.config.base import Section


@dataclass(frozen=True)
class Identity:
    """Which results are other results when the setting changes."""

    run: bool = False
    """The run: it starts again under another name."""
    train: bool = False
    """The bytes of stage `train`: its checkpoints are discarded."""
    judgement: bool = False
    """The judgement of a run's health."""


LOGISTICS = Identity()
"""Where a run works, how long it waits and what it shows; of what it computes only the rounding."""
RUN = Identity(run=True)
TRAINED = Identity(run=True, train=True)
JUDGED = Identity(run=True, train=True, judgement=True)
Choice = dict[str, Any]
"""Names of fields, for ``model_dump``: True for a whole field, a mapping for a part of a section."""


def chosen(section: type[Section], wanted: Callable[[Identity], bool]) -> Choice:
    """The fields below ``section`` whose identity is wanted; a part of a section is a mapping, a whole one is True.

    Raises:
        TypeError: a field has no statement; or two sections that are alternatives differ about a field of one name.
    """
    return {name: value for name, value in _fields(section, wanted, None).items() if value}


def _fields(section: type[Section], wanted: Callable[[Identity], bool], stated: Identity | None) -> Choice:
    """Every field: True, False, or of a section of which only a part is wanted that part."""
    found: Choice = {}
    for name, field in section.model_fields.items():
        where = f"{section.__name__}.{name}"
        own = _stated(field.metadata) or stated
        below = list(_sections(field.annotation, own))
        if below:
            found[name] = _whole(_merged([_fields(part, wanted, inner) for part, inner in below], where))
        elif own is None:
            raise TypeError(f"{where}: state what it counts for, see components.config.identity")
        else:
            found[name] = wanted(own)
    return found


def _whole(choice: Choice) -> bool | Choice:
    if all(value is True for value in choice.values()):
        return True
    return {name: value for name, value in choice.items() if value} or False


def _merged(alternatives: list[Choice], where: str) -> Choice:
    merged: Choice = {}
    for choice in alternatives:
        for name, value in choice.items():
            if merged.setdefault(name, value) != value:
                raise TypeError(f"{where}: alternatives differ about what {name} counts for")
    return merged


def _stated(metadata: Iterable[Any]) -> Identity | None:
    return next((one for one in metadata if isinstance(one, Identity)), None)


def _sections(annotation: Any, stated: Identity | None) -> Iterator[tuple[type[Section], Identity | None]]:
    """The sections that a field may hold, each with the statement for its fields; none for a plain value."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _sections(inner, _stated(metadata) or stated)
    elif isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation, stated
    elif get_origin(annotation) is not None and all(_is_section(one) for one in get_args(annotation)):
        for one in get_args(annotation):
            yield from _sections(one, stated)


def _is_section(annotation: Any) -> bool:
    inner = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if inner is NoneType:
        return True
    return (isinstance(inner, type) and issubclass(inner, Section)) or len(list(_sections(inner, None))) > 1
