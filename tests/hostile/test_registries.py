"""The registry: candidates, records, aliases, statements, signatures and stored folders that were changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.hostile.cases import Case, End, chosen, seeded
from tests.hostile.mutations import broken, json_texts, replacements, reshaped

BY = ("--by", "ada", "--reason", "hostile")
COMMANDS = (
    ("history",),
    ("history", "--json"),
    ("show",),
    ("show", "challenger", "--json"),
    ("show", "{rejected}", "--page", "{}/page.html"),
    ("verify", "--all"),
    ("verify", "challenger", "--json"),
    ("pull", "champion", "--to", "{}/pulled"),
    ("pull", "{challenger}", "--to", "{}/pulled"),
    ("approve", "{challenger}", *BY),
    ("reject", "{challenger}", *BY),
    ("promote", "{challenger}"),
    ("rollback", *BY),
    ("adopt", *BY),
)
OBJECTS = (
    *(
        "aliases/challenger.json",
        "aliases/champion.json",
        "candidates/*",
        "promotions/000001.json",
        "promotions/*2.json",
    ),
    *("approvals/*/*", "attestations/evidence/*/*", "signatures/*/*", "policies/*", "registry.json"),
)
STORED = (
    *("config.json", "tokenizer.json", "model.safetensors", "params.yaml", "lineage.json", "dvc.lock", "omitted.json"),
    *(
        "out/evaluation.json",
        "out/gate.json",
        "out/train.json",
        "out/canaries.json",
        "out/audit.json",
        "out/triage.json",
    ),
    *("out/train/records.jsonl", "out/train/ledger.jsonl", "out/data/test.jsonl", "out/report.html"),
)


def spoiled(change: Callable[[Path], object], pattern: str, folder: Path) -> object:
    """Copy the project's registry, change what the pattern names last, and name the copy in a configuration."""
    shutil.copytree(folder.parent / "registry", folder / "registry")
    text = f"extends: [{folder.parent}/configs/demo.yaml]\nregistry: {{path: {folder}/registry}}\n"
    (folder / "at.yaml").write_text(text, encoding="utf-8")
    path = sorted((folder / "registry").glob(pattern))[-1] if pattern else folder / "registry"
    return path.name, change(path)


def in_a_tree(number: int, way: str, path: Path) -> object:
    """Change one value of a JSON object, or its shape."""
    tree, rng = json.loads(path.read_bytes()), seeded(path.name, number)
    made = list(reshaped(tree, rng, 40) if way == "shape" else replacements(tree, rng, 1))
    name, make = made[number % len(made)]
    path.write_text(json.dumps(make()), encoding="utf-8")
    return name


def in_bytes(number: int, path: Path) -> object:
    name, data = list(broken(path.read_bytes(), seeded(path.name, number), number + 1))[number]
    path.write_bytes(data)
    return name


def content(data: str | bytes, path: Path) -> object:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return data


def gone(path: Path) -> object:
    path.unlink() if path.is_file() else shutil.rmtree(path)
    return "gone"


def a_folder(path: Path) -> object:
    path.unlink()
    path.mkdir()
    return "a folder"


def a_pipe(path: Path) -> object:
    path.unlink()
    os.mkfifo(path)
    return "a pipe"


def a_link(target: str, path: Path) -> object:
    path.unlink()
    path.symlink_to(target)
    return f"a link to {target}"


def huge(path: Path) -> object:
    """Larger than memory, and nothing on the disk."""
    os.truncate(path, 40 * 2**30)
    return "40 GiB of zeros"


def another(pattern: str, path: Path) -> object:
    """Another one's content."""
    first = next(one for one in sorted(path.parent.glob(pattern)) if one != path)
    shutil.copy(first, path)
    return f"that of {first.name}"


def one_more(name: str, path: Path) -> object:
    shutil.copy(path, path.with_name(name))
    return f"one more: {name}"


KINDS: dict[str, Callable[[Path], object]] = {
    "gone": gone,
    "folder": a_folder,
    "pipe": a_pipe,
    "zero-device": partial(a_link, "/dev/zero"),
    "own-link": partial(a_link, "."),
    "dangling": partial(a_link, "nothing"),
}
EXTRA = (
    "000009.json",
    "x",
    "\n.json",
    "a b.json",
    "[red].json",
    "\udcff.json",
    "0" * 64 + ".json",
    "000003.json",
    ".hidden",
)
HUGE = ("aliases/champion.json", "candidates/*", "promotions/*2.json", "signatures/*/*", "registry.json")


def case(name: str, change: Callable[[Path], object], pattern: str, *commands: tuple[str, ...]) -> Iterator[Case]:
    for command in commands or (seeded(name).choice(COMMANDS),):
        said = f"{name}-{'-'.join(word for word in command[:3] if word not in BY and '{}' not in word)}"
        make = partial(spoiled, change, pattern)
        yield Case(said, (*command, "--config", "{}/at.yaml"), make, needs_registry=True)


def cases() -> Iterator[Case]:
    objects = [f"objects/{one}" for one in OBJECTS]
    for one, pattern in zip(OBJECTS, objects, strict=True):
        for number in range(10):
            yield from case(f"{one}-value-{number}", partial(in_a_tree, number, "value"), pattern)
        for number in range(7):
            yield from case(f"{one}-shape-{number}", partial(in_a_tree, number, "shape"), pattern)
            yield from case(f"{one}-bytes-{number}", partial(in_bytes, number), pattern)
        for name, text in list(json_texts().items())[seeded(one).randrange(2) :: 2]:
            yield from case(f"{one}-{name}", partial(content, text), pattern)
        for name, change in KINDS.items():
            yield from case(f"{one}-{name}", change, pattern)
    for kind in ("candidates", "promotions", "aliases", "approvals/*"):
        for name in EXTRA:
            yield from case(f"{kind}-more-{ascii(name)[1:9]}", partial(one_more, name), f"objects/{kind}/*")
    for kind in ("candidates", "promotions", "aliases"):
        yield from case(f"{kind}-of-another", partial(another, "*"), f"objects/{kind}/*", *COMMANDS[:3])
    for one in HUGE:
        yield from case(f"{one}-huge", huge, f"objects/{one}", ("verify", "--all"))
    for one in STORED:
        for number in range(3):
            yield from case(f"{one}-bytes-{number}", partial(in_bytes, number), f"trees/*/{one}")
        for name in ("gone", "folder", "zero-device"):
            yield from case(f"{one}-{name}", KINDS[name], f"trees/*/{one}")
    for pattern in ("", "objects", "trees", "objects/promotions", "trees/*"):
        yield from case(f"{pattern or 'all'}-gone", gone, pattern, *COMMANDS[:6])


@pytest.mark.parametrize("case", chosen(cases(), 8))
def test_a_changed_registry_is_refused_or_shown_as_it_is(case: Case, hostile: Callable[[Case], End]) -> None:
    hostile(case)
