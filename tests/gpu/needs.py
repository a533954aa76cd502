"""What `make test-gpu` and section `gpu` of the benchmarks import besides torch and transformers, without importing it.

``python -m tests.gpu.needs`` names what is missing and how to bring it. The rest of the project's dependencies
(Prefect, DVC, Great Expectations, boto3, ...) is not needed: stages `sft` to `evaluate` do not import it.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

WHEELS = "build/gpu-wheels"
PACKAGES = {
    "torch": "torch",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "safetensors": "safetensors",
    "numpy": "numpy",
    "yaml": "pyyaml",
    "jinja2": "jinja2",
    "httpx": "httpx",
    "typer": "typer",
    "pydantic": "pydantic",
    "pydantic_core": "pydantic-core",
    "annotated_types": "annotated-types",
    "typing_inspection": "typing-inspection",
    "typing_extensions": "typing-extensions",
    "psutil": "psutil",
    "simpleeval": "simpleeval",
    "re2": "google-re2",
    "securesystemslib": "securesystemslib",
    "cryptography": "cryptography",
    "pandas": "pandas",
    "dateutil": "python-dateutil",
    "six": "six",
    "prometheus_client": "prometheus-client",
    "datasketch": "datasketch",
    "scipy": "scipy",
    "peft": "peft",
    "rapidfuzz": "rapidfuzz",
    "pytest": "pytest",
    "iniconfig": "iniconfig",
    "pluggy": "pluggy",
    "pygments": "pygments",
    "pytest_timeout": "pytest-timeout",
    "hypothesis": "hypothesis",
    "sortedcontainers": "sortedcontainers",
}
"""Packages by the name that is imported, with what the small ones depend on."""
FURTHER = {"trl": "trl", "deepspeed": "deepspeed", "gguf": "gguf"}
"""What some tests take; without it they are skipped."""


def missing(packages: dict[str, str]) -> list[str]:
    """Names of distributions that this Python lacks."""
    return [name for module, name in packages.items() if find_spec(module) is None]


def report(lacking: list[str]) -> str:
    """How to bring them to a machine without a network: some 60 MB at most."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    wheels = f"--only-binary :all: --python-version {python} --platform manylinux_2_28_x86_64 --no-deps"
    return "\n".join(
        [
            f"missing here: {', '.join(lacking)}",
            "where there is a package index:",
            f"  python -m pip download {wheels} --constraint constraints.txt --dest {WHEELS} {' '.join(lacking)}",
            "then, here, with that folder:",
            f"  python -m pip install --no-index --no-deps {WHEELS}/*.whl",
        ]
    )


def main() -> int:
    """Exit code 2 where something is missing."""
    if optional := missing(FURTHER):
        print(f"not here, so tests that take it are skipped: {', '.join(optional)}")
    if lacking := missing(PACKAGES):
        print(report(lacking), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
