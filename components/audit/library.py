"""Which data sets of the installed reasoning-gym work, and what their scorers accept: a table in Markdown.

``python -m components.audit.library --rows 40 [data set ...]``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from components.audit.measure import Kind, measure
from components.audit.probes import make_probes
from components.config.reasoning_gym import ReasoningGymSource, ReasoningGymVerifier
from components.config.sandbox import SandboxSettings
from components.errors import EvenkeelError, InputError
from components.reasoning_gym.library import category, names
from components.rewards import build_verifier
from components.rewards.sandbox import Sandbox
from components.tasks.reasoning_gym import generate_each
from components.types import Prompt

VERIFIER = ReasoningGymVerifier(kind="reasoning_gym")
Row = tuple[str, str, str, str]
"""Data set, category, what was found, the details."""


def overview(wanted: Sequence[str], rows: int, seed: int = 0) -> Iterator[Row]:
    """One row per data set with the library's default settings: ``refused``, or what `judged` returns."""
    source = ReasoningGymSource.model_validate(
        {"kind": "reasoning_gym", "rows": rows * len(wanted), "datasets": {name: {} for name in wanted}}
    )
    made = generate_each(source, seed)
    with Sandbox(VERIFIER, SandboxSettings(workers=1)) as sandbox:
        for name in wanted:
            found = made[name]
            if isinstance(found, InputError):
                yield name, category(name), "refused", found.what
            else:
                yield name, category(name), *judged(found, sandbox)


def judged(prompts: Sequence[Prompt], sandbox: Sandbox) -> tuple[str, str]:
    """``gameable`` where the scorer accepts a wrong answer of the audit, ``misjudges`` where it only refuses a right
    one, else ``sound``; and the kinds of answers that it judges wrongly."""
    probes = make_probes(build_verifier(VERIFIER), prompts)
    audit = measure(probes, lambda: nullcontext(sandbox), repeats=1)
    wrong = [kind for kind in audit.kinds if kind.wrong.count]
    accepted = [kind for kind in wrong if not kind.right]
    verdict = "gameable" if accepted else "misjudges" if wrong else "sound"
    return verdict, "; ".join(map(_described, wrong))


def _described(kind: Kind) -> str:
    verb = "refused" if kind.right else "accepted"
    return f"{kind.name}: {kind.wrong.count} of {kind.wrong.n} {verb}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m components.audit.library", description=__doc__)
    parser.add_argument("datasets", nargs="*", help="data sets (default: all)")
    parser.add_argument("--rows", type=int, default=40, help="problems of each (default: 40)")
    options = parser.parse_args()
    print("| data set | category | | |\n| --- | --- | --- | --- |")
    try:
        for row in overview(options.datasets or names(), options.rows):
            print(f"| {' | '.join(row)} |", flush=True)
    except EvenkeelError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
