"""Loads a policy from a safetensors folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from components.checkpoints.checks import check_checkpoint
from components.config.policy import PolicySettings
from components.device import own_device
from components.errors import InputError
from components.policy.checking import LOAD_ERRORS, check_finite, check_policy, check_report, tokenizers_errors
from components.policy.policy import Policy, quiet
from components.processes.memory import check_weights
from components.working import working

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_policy(path: Path, settings: PolicySettings) -> Policy:
    """Load a checkpoint folder from disk to `own_device`. Never runs code from it and never unpickles.

    Raises:
        InputError: larger than memory, not a safe, complete checkpoint, weights that are not finite, or the tokenizer
            lacks what the settings need or does not fit the model; or there is no such device.
    """
    device = own_device()
    check_weights(path, settings.dtype)
    check_checkpoint(path)
    try:
        with quiet(), working("loading the policy"):
            config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                path,
                config=config,
                dtype=DTYPES[settings.dtype],
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
            with tokenizers_errors():
                tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except LOAD_ERRORS as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"transformers {transformers.__version__} cannot load this checkpoint: {first}",
            where=path,
            how="use a causal language model saved by save_pretrained with its tokenizer",
        ) from error
    model, report = loaded
    check_report(report, path)
    check_finite(dict(model.named_parameters()), path)
    return check_policy(Policy(model.eval().to(device), tokenizer, settings.chat, settings.instruction), path)
