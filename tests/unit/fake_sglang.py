"""An SGLang server that replays what its documentation (0.5) says it answers, over a policy of this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.policy.stored import Stored
from components.policy.weights import weights_of
from components.rollout.base import Sampling
from tests.unit.fake_vllm import FakeVllm


class FakeSglang(FakeVllm):
    """The same faults and the same policy, in the other dialect."""

    def __init__(self, policy: Any, **facts: Any) -> None:
        super().__init__(policy)
        self.version = "0.5.9"
        self.server_info = {
            "version": self.version,
            "dtype": "float32",
            "kv_cache_dtype": "auto",
            "context_length": 64,
            "max_running_requests": 256,
            **facts,
        }

    def _get_model_info(self, _: Any) -> Any:
        return {
            "model_path": "policy",
            "tokenizer_path": "policy",
            "is_generation": True,
            "model_type": self.facts["model_type"],
            "weight_version": self.label,
        }

    def _get_server_info(self, _: Any) -> Any:
        return self.server_info

    def _pause_generation(self, _: Any) -> Any:
        return {"status": "ok", "message": "Generation paused successfully."}

    def _update_weights_from_disk(self, body: Any) -> Any:
        self.engine.load_weights(Stored.folder(Path(body["model_path"])))
        return {"success": True, "message": "Succeeded to update model weights.", "num_paused_requests": 0}

    def _update_weight_version(self, body: Any) -> Any:
        self.label = body["new_version"]
        return {"success": True, "message": "", "new_version": self.label}

    def _continue_generation(self, _: Any) -> Any:
        return {"status": "ok", "message": "Generation continued successfully."}

    def _generate(self, body: Any) -> Any:
        if "logprob_start_len" in body:
            return self._scored(body["input_ids"])
        return [self._one(ids, p) for ids, p in zip(body["input_ids"], body["sampling_params"], strict=True)]

    def _scored(self, ids: list[int]) -> Any:
        values = weights_of(self.policy).scores([(tuple(ids[:1]), tuple(ids[1:]))], 1.0).tolist()
        entries = [[None, ids[0], None], *([v, i, None] for v, i in zip(values, ids[1:], strict=True))]
        return {"text": "", "meta_info": {"input_token_logprobs": entries, "weight_version": self.label}}

    def _one(self, prompt: list[int], params: Any) -> Any:
        _end, *stop = params["stop_token_ids"]
        sampling = Sampling(1, params["max_new_tokens"], params["temperature"], params["sampling_seed"], tuple(stop))
        with self._lock:
            ((one,),) = self.engine.generate([prompt], sampling)
        ended = one.finish_reason != "length"
        finish = {"type": "stop", "matched": one.token_ids[-1]} if ended else {"type": "length", "length": 6}
        return {
            "text": one.text,
            "output_ids": list(one.token_ids),
            "meta_info": {
                "id": "e2b0",
                "finish_reason": finish,
                "prompt_tokens": len(prompt),
                "weight_version": self.label,
                "completion_tokens": len(one.token_ids),
                "output_token_logprobs": [[v, i, None] for v, i in zip(one.logprobs, one.token_ids, strict=True)],
            },
        }
