"""What the environment of a pod says, and whether this is the code and the image that the run was submitted with."""

from __future__ import annotations

from collections.abc import Mapping

from components.code_digest import code_digest
from components.errors import InputError

CODE, CONSTRAINTS, IMAGE = "EVENKEEL_CODE", "EVENKEEL_CONSTRAINTS", "EVENKEEL_IMAGE_CONSTRAINTS"
NODE = "JOB_COMPLETION_INDEX"


def check(environment: Mapping[str, str]) -> None:
    """Refuse to run other code than that of whoever submitted the run, or with other packages than its own.

    Raises:
        InputError: `EVENKEEL_CODE` is not the digest of the code that runs here, or the image was built with another
            constraints.txt than `EVENKEEL_CONSTRAINTS`. What is not set, or what the image does not declare, is not
            compared.
    """
    expected, found = environment.get(CODE), code_digest()
    if expected and expected != found:
        raise InputError(
            f"this is other code than that of the run: {expected[:12]} in the run, {found[:12]} here",
            where=CODE,
            how="start the pod in the run's own workspace, with its components/ as they were, or submit the run again",
        )
    constraints, image = environment.get(CONSTRAINTS), environment.get(IMAGE)
    if constraints and image and constraints != image:
        raise InputError(
            f"the image has other packages than the run: constraints.txt is {constraints[:12]} in the run, and was "
            f"{image[:12]} for the image",
            where=IMAGE,
            how="rebuild the image from the run's constraints.txt, and name it in launch.kubernetes",
        )


def number(environment: Mapping[str, str], name: str, otherwise: int | None = None) -> int:
    """A number that the environment holds.

    Raises:
        InputError: it is missing, and there is nothing to take ``otherwise``; or it is no number.
    """
    text = environment.get(name, "")
    if not text and otherwise is not None:
        return otherwise
    if not (text.isascii() and text.isdigit()):
        what = f"{name} is {text!r}, which is no number" if text else f"{name} is not set"
        raise InputError(what, where=name, how=f"let the pod's template set {name}")
    return int(text)
