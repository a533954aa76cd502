"""The states that flows and tasks end in, beyond Prefect's own: a named answer, and a failure without a stack."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from prefect.client.schemas import State
from prefect.states import Completed, Failed

from components.errors import EvenkeelError

P = ParamSpec("P")
R = TypeVar("R")


def expected_failures(body: Callable[P, R]) -> Callable[P, R]:
    """Put it under ``@flow`` or ``@task``. Who calls these in Python still gets the failure raised.

    Prefect would log the whole stack of a misspelt setting, and show its last line. A bug keeps its traceback.
    """

    @functools.wraps(body)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return body(*args, **kwargs)
        except EvenkeelError as failure:
            state: Any = Failed(name=getattr(failure, "state_name", "Failed"), message=str(failure), data=failure)
            return cast("R", state)

    # Prefect would look for the names of the annotations in this module.
    wrapped.__signature__ = inspect.signature(body, eval_str=True)  # type: ignore[attr-defined]
    return wrapped


def completed_as(outcome: R, name: str, message: str) -> R:
    """End with ``outcome`` in a state of type Completed that the UI shows under ``name``; return what this returns."""
    state: Any = Completed(name=name, message=message, data=outcome)
    return cast("R", state)


def value(returned: R) -> R:
    """What a call of a task returned, or its failure (`expected_failures`) raised. Unlike a flow, a task that ends with
    a state of its own returns that state."""
    return cast("R", returned.result()) if isinstance(returned, State) else returned
