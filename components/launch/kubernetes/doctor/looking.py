"""Checks that cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec

from components.checks import Check
from components.errors import CorrectableError
from components.launch.kubernetes.api import Examination, Refused

P = ParamSpec("P")
Found = Iterator[Check]
Looking = Callable[Concatenate[Examination, P], Found]
FORBIDDEN = 403


def looks_at(name: str) -> Callable[[Looking[P]], Looking[P]]:
    """A check of this name. Where we may not look, nothing is known: that is a warning, and no reason to stop."""

    def wrap(check: Looking[P]) -> Looking[P]:
        @wraps(check)
        def guarded(look: Examination, /, *args: P.args, **kwargs: P.kwargs) -> Found:
            try:
                yield from check(look, *args, **kwargs)
            except Refused as error:
                if error.status != FORBIDDEN:
                    yield failed(name, error)
                else:
                    fix = f"have somebody look who may, or let us: k8s/base/doctor.yaml; {error.how or ''}"
                    yield Check(name, "warn", f"it cannot be looked at: {error.what}", fix.rstrip("; "))
            except CorrectableError as error:
                yield failed(name, error)

        return guarded

    return wrap


def failed(name: str, error: CorrectableError) -> Check:
    where = f" ({error.where})" if error.where else ""
    return Check(name, "fail", f"{error.what}{where}", error.how or "")
