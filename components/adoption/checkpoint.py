"""The folder that a trainer left. Only what a checkpoint consists of is read; optimizer states, which are pickles, and
other files of a trainer are not opened."""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from components.config import Settings
from components.errors import InputError
from components.files import os_errors, read_json
from components.policy import Policy, load_policy

ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
PREFIX = "base_model.model."
"""What `peft` puts before the names of a model's modules."""
MATRIX = re.compile(re.escape(PREFIX) + r"(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
TAKEN = (
    "config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer*", "vocab.json",
    "merges.txt", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
)  # fmt: skip
"""What a checkpoint consists of."""
PLAIN: Mapping[str, Sequence[Any]] = {
    "peft_type": ("LORA",),
    "init_lora_weights": (None, True, False, "gaussian", "orthogonal", "eva"),
    **dict.fromkeys(("use_dora", "use_qalora", "use_bdlora"), (None, False)),
    **dict.fromkeys(("alora_invocation_tokens", "arrow_config", "kasa_config", "monteclora_config"), (None,)),
    "bias": (None, "none"),
    "modules_to_save": (None, []),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "layer_replication": (None,),
    "megatron_config": (None,),
}
"""What an adapter may say of itself: anything else is more than W + scaling * B @ A. Other ways to begin (PiSSA, OLoRA,
CorDA, LoftQ) take what A and B begin with out of the base, so that W is not the base's."""


def adopt_checkpoint(path: Path, base: Path, settings: Settings) -> tuple[Policy, list[str]]:
    """The policy of a folder that another trainer left, and the names of files there that were not taken.

    Args:
        path: a whole checkpoint, or an adapter of `peft`, which is merged.
        base: the checkpoint that its training began with.

    Raises:
        InputError: not a safe, complete checkpoint; weights of other names or shapes than the base has; or an adapter
            that is not a plain LoRA of it.
    """
    began = load_policy(base, settings.policy)
    if (path / ADAPTER_CONFIG).is_file():
        began.load_weights(_merged(path, began))
        left_out = [file.name for file in _files(path) if file.name not in (ADAPTER, ADAPTER_CONFIG)]
        return began, left_out
    taken = [file for file in _files(path) if any(file.match(pattern) for pattern in TAKEN)]
    with tempfile.TemporaryDirectory() as folder, os_errors("copy", path):
        for file in taken:
            shutil.copyfile(file, Path(folder) / file.name)
        policy = _load(Path(folder), path, settings)
    _check_shapes(policy, began, path)
    return policy, [file.name for file in _files(path) if file not in taken]


def _files(path: Path) -> list[Path]:
    with os_errors("read", path):
        return sorted(file for file in path.iterdir() if file.is_file())


def _load(copy: Path, path: Path, settings: Settings) -> Policy:
    """The policy in a copy of ``path``; errors name the original.

    Raises:
        InputError: as `load_policy`.
    """
    try:
        return load_policy(copy, settings.policy)
    except InputError as error:
        raise InputError(error.what, where=path, how=error.how) from error


def _check_shapes(policy: Policy, base: Policy, path: Path) -> None:
    """Refuse a checkpoint that did not begin as this base: its weights have other names or shapes."""
    own, other = ({name: tuple(w.shape) for name, w in one.weights().items()} for one in (policy, base))
    odd = sorted(name for name in own.keys() | other.keys() if own.get(name) != other.get(name))
    if odd:
        raise InputError(
            f"its training did not begin with this base: {len(odd)} weights have other names or shapes, "
            f"{odd[0]} is {own.get(odd[0], 'missing')} and in the base {other.get(odd[0], 'missing')}",
            where=path,
            how="name the base that it came from in policy.model.path",
        )


def _merged(path: Path, base: Policy) -> dict[str, Tensor]:
    """The weights of the base with the adapter added.

    Raises:
        InputError: the adapter is no plain LoRA, is incomplete, has no finite values, or does not fit the base.
    """
    how = "merge it where it was trained (merge_and_unload) and adopt the whole checkpoint"
    scaling, transposed = _scaling(path / ADAPTER_CONFIG, how)
    try:
        with os_errors("read", path / ADAPTER):
            tensors = load_file(path / ADAPTER)
    except SafetensorError as error:
        raise InputError(f"the adapter cannot be read: {error}", where=path / ADAPTER, how="copy it again") from error
    pairs: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        match = MATRIX.fullmatch(name)
        if match is None:
            raise InputError(f"{name} belongs to no plain LoRA", where=path / ADAPTER, how=how)
        pairs.setdefault(f"{match['module']}.weight", {})[match["side"]] = tensor.float()
    if not pairs:
        raise InputError("the adapter holds no weights", where=path / ADAPTER, how="copy it again")
    weights = dict(base.weights())
    for name, sides in pairs.items():
        weight = weights.get(name)
        if weight is None or sides.keys() != {"A", "B"}:
            what = f"the adapter has {' and '.join(sorted(sides))} for {name}, and the base "
            raise InputError(what + ("has it" if weight is not None else "has no such weight"), where=path, how=how)
        weights[name] = _added(weight, sides["A"], sides["B"], scaling, transposed, name, path)
    return weights


def _added(weight: Tensor, down: Tensor, up: Tensor, scaling: float, transposed: bool, name: str, path: Path) -> Tensor:
    """W + scaling * B @ A, in the precision of W; ``down`` is A ``[rank, in]``, ``up`` is B ``[out, rank]``."""
    if up.dim() != 2 or down.dim() != 2 or up.shape[1] != down.shape[0]:
        raise InputError(f"A {list(down.shape)} and B {list(up.shape)} of {name} are not of one rank", where=path)
    delta = up @ down * scaling
    delta = delta.T if transposed else delta
    if delta.shape != weight.shape or not bool(torch.isfinite(delta).all()):
        what = f"B @ A of {name} is {list(delta.shape)} or not finite, and the base's weight is {list(weight.shape)}"
        raise InputError(what, where=path, how="name the base that the adapter was trained on in policy.model.path")
    return weight + delta.to(weight.device, weight.dtype)


def _scaling(path: Path, how: str) -> tuple[float, bool]:
    """alpha / rank (alpha / sqrt(rank) for rsLoRA, 2312.03732), and whether weights are stored ``[in, out]``.

    Raises:
        InputError: the adapter is more than a plain LoRA, or says no rank.
    """
    config = read_json(path)
    odd = [f"{name}: {config.get(name)!r}" for name, allowed in PLAIN.items() if config.get(name) not in allowed]
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if odd or not isinstance(rank, int) or rank < 1 or not isinstance(alpha, int | float):
        raise InputError(f"no plain LoRA: {', '.join(odd) or f'r is {rank!r}'}", where=path, how=how)
    divisor = math.sqrt(rank) if config.get("use_rslora") else rank
    return alpha / divisor, bool(config.get("fan_in_fan_out"))
