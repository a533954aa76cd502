"""From a GGUF file to a folder that a run can start from: safetensors in fp32, tokenizer, chat template.

transformers dequantises the weights. What it makes of them is written, loaded again the way every stage does it, and
has to give the same logits on some tokens. Nothing of the file is executed: its chat template is text, rendered in
jinja's sandbox like that of any checkpoint.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GgufConfig, PreTrainedModel
from transformers.integrations.gguf import GGUF_CONFIG_ARCHS
from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from components.config.policy import CheckpointModel, PolicySettings
from components.errors import CorrectableError, InputError, MachineError
from components.models import provenance
from components.models.header import Header, read_header
from components.policy import Policy, load_policy
from components.policy.loading import check_policy, check_report
from components.policy.policy import quiet
from components.processes.memory import check_room

FLOAT32 = 4
COPIES = 2
"""Of the weights in fp32 that memory holds at a time: transformers dequantises all before it fills the model."""
HOW = "free memory, or convert it on a larger machine and copy the folder"
PROBES = 16
"""Tokens whose logits are compared."""
ANYTHING = Exception
"""What the libraries raise for a file that they cannot use is of many types, one of them plain Exception."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Converted:
    """What came of it; ``no_chat`` states why prompts cannot be rendered by a chat template, or is empty."""

    header: Header
    no_chat: str


def convert(gguf: Path, target: Path, say: Say) -> Converted:
    """Convert a file that is there already, and record which one it was.

    Raises:
        InputError: see `convert_into`. Nothing is left at ``target``.
    """
    header = read_header(gguf)
    source = provenance.source_of(gguf)
    return provenance.write_recorded(target, source, lambda folder: convert_into(gguf, header, folder, say))


def convert_into(gguf: Path, header: Header, folder: Path, say: Say) -> Converted:
    """Convert into a folder that is there, as `Policy.save` would write it.

    Raises:
        InputError: an architecture, a tokenizer or a type of tensor that transformers does not know, weights that do
            not fit the metadata, not enough memory or disk; or the folder does not give what the file gives.
    """
    check_memory(gguf, header)
    _check_disk(header, folder)
    kinds = ", ".join(sorted(header.types))
    say(f"dequantising {header.parameters:,} parameters of architecture {header.architecture} ({kinds})")
    policy = dequantised(gguf, header)
    say(f"writing {_mib(header.parameters * FLOAT32)} of safetensors")
    with torch.no_grad():
        expected = logits(policy.model)
    policy.save(folder)
    del policy
    say("verifying what was written")
    return Converted(header, _verify(folder, expected))


def check_memory(gguf: Path, header: Header) -> None:
    """See that memory holds the weights while they are dequantised.

    Raises:
        InputError: with both figures.
    """
    size = header.parameters * FLOAT32 * COPIES
    check_room("converting it to float32", size, f"{header.parameters:,} parameters", gguf, HOW)


def _check_disk(header: Header, folder: Path) -> None:
    size, free = header.parameters * FLOAT32, shutil.disk_usage(folder).free
    if size > free:
        what = f"the safetensors take {_mib(size)}, and the disk has {_mib(free)} left"
        raise MachineError(what, where=folder, how="make room, or choose a folder on another disk with --to")


def dequantised(gguf: Path, header: Header) -> Policy:
    """Model in fp32 and tokenizer of a file; raises InputError as `convert_into`."""
    # A log file would hold every state of transformers' bar.
    bars: AbstractContextManager[Any] = nullcontext() if sys.stderr.isatty() else redirect_stderr(StringIO())
    try:
        with quiet(), warnings.catch_warnings(action="ignore"), bars, _alone(gguf) as folder:
            options: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True, "trust_remote_code": False}
            config = AutoConfig.from_pretrained(folder, **options)
            _add_head_size(config, header)
            _check_size(config, gguf, header)
            model, report = AutoModelForCausalLM.from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                quantization_config=GgufConfig(dequantize=True),
                output_loading_info=True,
                **options,
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, **options)
    except (CorrectableError, MemoryError):
        raise
    except ANYTHING as error:
        raise _not_convertible(error, gguf, header) from error
    check_report(report, gguf)
    return Policy(_as_if_never_quantised(model), tokenizer, chat=False)


@contextmanager
def _alone(gguf: Path) -> Iterator[Path]:
    """A folder with the file and nothing else: transformers takes a tokenizer or a chat template that lies next to it
    rather than the file's own."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / gguf.name).symlink_to(gguf.resolve())
        yield Path(folder)


def _as_if_never_quantised(model: PreTrainedModel) -> PreTrainedModel:
    """transformers refuses to save what it calls quantised, although nothing is any more."""
    model.hf_quantizer = None
    model.is_quantized = False
    vars(model.config).pop("quantization_config", None)
    return model.eval()


def _add_head_size(config: Any, header: Header) -> None:
    """transformers does not read the size of a head, which it takes for that of the model its class is named after."""
    size = header.metadata.get(f"{header.architecture}.attention.key_length")
    if isinstance(size, int) and hasattr(config, "head_dim"):
        config.head_dim = size


def _check_size(config: Any, gguf: Path, header: Header) -> None:
    """The metadata must not describe a model that the file cannot fill: transformers would make up the rest."""
    said = header.layers
    if said <= len(header.shapes):
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        said = sum(parameter.numel() for parameter in model.parameters())
        if said <= header.parameters:
            return
    what = f"the metadata describe a model of {said:,} {'layers' if said == header.layers else 'parameters'}"
    held = f"{len(header.shapes):,} tensors with {header.parameters:,} parameters"
    raise InputError(f"{what}, and the file holds {held}", where=gguf, how="get a file that is whole")


def _not_convertible(error: Exception, gguf: Path, header: Header) -> InputError:
    known, ggml = architectures(), header.architecture
    if not {ggml, ggml.replace("-", "_"), ggml.replace("moe", "_moe")} & known:  # it says ``qwen2moe`` and ``gpt-oss``
        what = f"transformers cannot dequantise the architecture {ggml!r}"
        return InputError(what, where=gguf, how=f"use a file of one of {', '.join(sorted(known))}")
    first = (str(error).splitlines() or [""])[0]
    what = f"transformers cannot convert this file: {type(error).__name__}: {first}"
    return InputError(what, where=gguf, how="use another file of the model, such as one in F16 or Q8_0")


def architectures() -> set[str]:
    """Those of causal language models that transformers dequantises, by its own names."""
    return {*GGUF_SUPPORTED_ARCHITECTURES, *GGUF_CONFIG_ARCHS} & {*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES}


def logits(model: PreTrainedModel) -> Tensor:
    """Of some tokens that are spread over the vocabulary, ``[1, PROBES, V]`` fp32."""
    ids = torch.linspace(0, model.config.vocab_size - 1, PROBES).long()
    found: Tensor = model(input_ids=ids[None]).logits
    return found


def _verify(folder: Path, expected: Tensor) -> str:
    """Load the folder as a stage would, and compare; returns why prompts cannot be rendered, or nothing."""
    settings = PolicySettings(model=CheckpointModel(kind="checkpoint", path=folder), chat=False)
    policy = load_policy(folder, settings)
    with torch.no_grad():
        found = logits(policy.model.cpu())  # where the file's were computed: a GPU adds up in another order
    if not torch.equal(found, expected):
        what = f"the folder gives other logits than the file, by up to {(found - expected).abs().max():.2g}"
        raise InputError(what, where=folder, how="this is a bug: report it with the name of the GGUF file")
    try:
        check_policy(Policy(policy.model, policy.tokenizer, chat=True), folder)
    except InputError as error:
        return f"{error.what}: {error.how}"
    return ""


def _mib(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"
