"""``python -m tests.benchmarks.mutations [PACKAGE ...] [--jobs N] [--out FILE]``: apply each mutation, run its tests.

Exit code 1 where a mutation survives, or where the tests of a package fail without one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from components.files import write_jsonl
from tests.benchmarks.mutations.table import MUTATIONS, TESTS, Mutation
from tests.code_graph import ROOT

SECONDS = 600
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def main() -> int:
    """Apply the mutations of the packages named, all of them by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.mutations")
    parser.add_argument("packages", nargs="*", help="of " + ", ".join(TESTS))
    parser.add_argument("--jobs", type=int, default=1, help="copies of the project that are tested at once")
    parser.add_argument("--out", type=Path, help="JSON lines, one a mutation")
    options = parser.parse_args()
    wanted = options.packages or list(TESTS)
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(copy_project(Path(folder) / str(number)))
        for package in wanted:
            if (failed := first_failure(package, copies)) is not None:
                print(f"without a mutation, a test of {package} fails: {failed}", file=sys.stderr)
                return 1
        chosen = [one for one in MUTATIONS if package_of(one) in wanted]
        with ThreadPoolExecutor(options.jobs) as pool:
            found = list(pool.map(lambda one: report(one, first_failure(package_of(one), copies, one)), chosen))
    if options.out:
        write_jsonl(
            options.out, [{**one._asdict(), "caught_by": test} for one, test in zip(chosen, found, strict=True)]
        )
    survived = sum(test is None for test in found)
    print(f"{len(found) - survived} of {len(found)} mutations caught")
    return 1 if survived else 0


def package_of(mutation: Mutation) -> str:
    return mutation.file.partition("/")[0]


def copy_project(to: Path) -> Path:
    """The files that Git knows, and new ones that it does not ignore."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def first_failure(package: str, copies: SimpleQueue[Path], mutation: Mutation | None = None) -> str | None:
    """The first test of the package that fails; None where all pass."""
    project = copies.get()
    try:
        if mutation is None:
            return run_tests(project, package)
        path = project / "components" / mutation.file
        original = path.read_text(encoding="utf-8")
        path.write_text(mutated(original, mutation), encoding="utf-8")
        try:
            return run_tests(project, package)
        finally:
            path.write_text(original, encoding="utf-8")
    finally:
        copies.put(project)


def mutated(text: str, mutation: Mutation) -> str:
    """The text with the one replacement.

    Raises:
        ValueError: the text to replace does not occur in it exactly once.
    """
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.file} has {mutation.old!r} {text.count(mutation.old)} times, not once")
    return text.replace(mutation.old, mutation.new)


def run_tests(project: Path, package: str) -> str | None:
    files = files_of(project, package)
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-n", "0"]
    environment = {"PYTHONPATH": str(project), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(project)}
    command = [sys.executable, "-B", "-m", "pytest", *options, *files]
    try:
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    if done.returncode == 0:
        return None
    named = FAILED.search(done.stdout)
    return named[1] if named else f"pytest ended with {done.returncode}"


def files_of(project: Path, package: str) -> list[str]:
    """The test files of a package, each once, in the order of `TESTS`."""
    found = [path for name in TESTS[package] for path in sorted((project / "tests/unit").glob(f"test_{name}.py"))]
    return [str(path.relative_to(project)) for path in dict.fromkeys(found)]


def report(mutation: Mutation, test: str | None) -> str | None:
    """Print one result, and return it."""
    shown: Sequence[str] = ("survived" if test is None else "caught", mutation.file, repr(mutation.new), test or "")
    print(*shown, flush=True)
    return test


if __name__ == "__main__":
    sys.exit(main())
