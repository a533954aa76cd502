"""Bytes by part, with shapes small enough to count by hand."""

from __future__ import annotations

from typing import Any

import pytest

from components.config import Settings
from components.planning.held import BUCKET, learner_parts, loop_parts
from components.planning.passes import GIB, Load, Part, Process, activations, cache, going_back, logits
from components.planning.processes import CUDA, IMPORTED, processes_of, server_parts
from components.planning.shapes import Shape

P = 10_000
SHAPE = Shape("LlamaForCausalLM", {"embedding": 2000, "MLP": 8000}, P, 0, True, 4, 2000, 2000, 10, 2, 1, 5, 20, 200)
ADAPTED = Shape(
    "LlamaForCausalLM", {"embedding": 2000, "MLP": 8000}, 100, 6000, True, 4, 2000, 2000, 10, 2, 1, 5, 20, 200
)
LOAD = Load(tokens=8, wanted=6, rows=4, group=2, prompt=2, new=6)


def settings(kind: str = "torch", ranks: int = 4, **sections: Any) -> Settings:
    learner = {"kind": kind, **sections.pop("learner", {})}
    if kind != "torch":
        learner["ranks"] = {"processes": ranks}
        sections.setdefault("launch", {"kind": "processes"})
    return Settings.model_validate({"learner": learner, **sections})


def sizes(chosen: Settings, shape: Shape = SHAPE, on_gpu: bool = False) -> dict[str, float]:
    return {part.name: part.size for part in learner_parts(chosen, shape, LOAD, on_gpu)}


def test_adamw_in_one_process_takes_16_bytes_a_parameter():
    found = sizes(settings())
    assert (found["weights"], found["gradients"], found["moments"]) == (4 * P, 4 * P, 8 * P)
    half = sizes(settings(policy={"dtype": "bfloat16"}))
    assert (half["weights"], half["gradients"], half["moments"]) == (2 * P, 2 * P, 4 * P)


@pytest.mark.parametrize(
    ("stage", "weights", "gradients"), [(1, 4 * P, 4 * P), (2, 4 * P, 4 * P / 4), (3, 4 * P / 4, 4 * P / 4)]
)
def test_zero_spreads_what_its_stage_says_over_four_ranks(stage, weights, gradients):
    found = sizes(settings("deepspeed", learner={"zero": {"stage": stage}}))
    assert (found["weights"], found["gradients"]) == (weights, gradients)
    assert (found["AdamW's weights"], found["moments"]) == (4 * P / 4, 8 * P / 4)
    assert ("flat copy" in found) == (stage < 3)
    assert found["arriving tensor"] == 4 * 2000


def test_zero_computes_with_bf16_weights_in_addition_to_those_of_adamw():
    found = sizes(settings("deepspeed", learner={"compute_dtype": "bfloat16"}))
    assert (found["weights"], found["AdamW's weights"], found["gradients"]) == (2 * P, P, P)


def test_the_bucket_of_gradients_fills_while_activations_go_and_is_copied_when_it_is_full():
    chosen, how = settings("deepspeed"), (settings("deepspeed").learner, "float32")
    few = Load(1, 1, 4, 2, 2, 6)
    gone = activations(SHAPE, few, *how) + going_back(SHAPE, few, *how)
    assert bucket(chosen, few) == 2 * 4 * P - gone
    assert bucket(chosen, Load(100, 6, 4, 2, 2, 6)) == 4 * 2000  # the output layer's at least
    assert bucket(chosen, few, on_gpu=True) == 4 * BUCKET + 4 * P - gone
    assert bucket(settings("deepspeed", learner={"zero": {"stage": 3}}), few) == 4 * P - gone


def bucket(chosen: Settings, load: Load, on_gpu: bool = False) -> float:
    return next(part.size for part in learner_parts(chosen, SHAPE, load, on_gpu) if part.name == "gradient bucket")


def test_fsdp2_spreads_all_of_it_and_gathers_two_layers_and_what_is_outside():
    found = sizes(settings("fsdp2"))
    assert (found["weights"], found["gradients"], found["moments"]) == (P, P, 2 * P)
    assert found["gathered weights"] == 4 * (2000 + 2 * 2000)
    half = sizes(settings("fsdp2", learner={"compute_dtype": "bfloat16"}))
    assert half["gathered weights"] == found["gathered weights"] / 2
    assert half["weights"] == found["weights"]


def test_an_adapter_alone_has_gradients_and_moments():
    lora = {"policy": {"lora": {}}}
    assert sizes(settings(**lora), ADAPTED)["moments"] == 8 * 100
    found = sizes(settings("fsdp2", **lora), ADAPTED)
    assert (found["gradients"], found["moments"]) == (100, 200)
    assert found["weights"] == P + 100
    assert {"whole gradients", "newest gradient"} & {*found} == set()


def test_activations_of_the_models_own_pass():
    # Norms: input, divided input, output, 3 x 10 x 2; attention: 4 x 2 heads x 5, and 2 sums; MLP: 4 x 20. 4 layers.
    a_token = 4 * (4 * (60 + 40 + 80) + 4 * 2) + 4 * 4 * 10
    how = settings("fsdp2").learner, "float32"
    assert activations(SHAPE, LOAD, *how) == 8 * a_token
    again = settings("fsdp2", learner={"activation_checkpointing": True}).learner, "float32"
    assert activations(SHAPE, LOAD, *again) == 8 * (4 * 4 * 10 + 4 * 4 * 10)


def test_the_lean_pass_keeps_less_than_half_of_that():
    whole = activations(SHAPE, LOAD, settings("fsdp2").learner, "float32")
    lean = activations(SHAPE, Load(8, 6, 4, 2, 1, 1), settings().learner, "float32")
    assert lean == 4 * 8 * (4 * (2 * 10 + 2 * 10 + 2 * 5 + 2 * 20) + 4 * 2 * (2 + 2 * 5)) + 4 * 4 * 8 * 10
    assert lean < whole
    adapter = activations(ADAPTED, Load(8, 6, 4, 2, 1, 1), settings(policy={"lora": {}}).learner, "float32")
    assert adapter == lean


def test_logits_are_bounded_by_the_setting():
    few = settings("fsdp2", learner={"logits_at_once": 2 * 200}).learner
    assert logits(SHAPE, LOAD, settings("fsdp2").learner, "float32") == 3 * 4 * 6 * 200
    assert logits(SHAPE, LOAD, few, "float32") == 3 * 4 * 2 * 200
    assert logits(SHAPE, LOAD, settings().learner, "float32") == 4 * 6 * 200  # the lean pass


def test_the_cache_has_a_groups_prompt_once_where_its_rows_share_it():
    assert cache(SHAPE, LOAD, 4, shared=True) == 2 * 4 * 4 * (2 / 2 + 6) * 4 * 1 * 5
    assert cache(SHAPE, LOAD, 4, shared=False) == 2 * 4 * 4 * (2 + 6) * 4 * 1 * 5


def test_the_load_follows_the_settings():
    chosen = {
        "rollout": {"group_size": 4, "max_new_tokens": 300, "engine": {"kind": "torch", "batch_rows": 100}},
        "train": {"prompts_per_step": 4},
        "admission": {"min_distinct": 4},
    }
    small = Load.of(settings(learner={"micro_batch_tokens": 256}, **chosen), prompt=100)
    assert (small.tokens, small.wanted, small.rows) == (400, 300, 100)  # a row is a pass at least
    assert Load.of(settings(learner={"micro_batch_tokens": 2000}, **chosen), prompt=100).tokens == 5 * 400
    large = {"micro_batch_tokens": 2**20}
    assert Load.of(settings("fsdp2", ranks=8, learner=large, **chosen), prompt=100).tokens == 2 * 400
    assert Load.of(settings("fsdp2", ranks=8, learner={**large, "updates_per_step": 2}, **chosen), 100).tokens == 400


def loop(*chosen: Any, shape: Shape = SHAPE, **sections: Any) -> dict[str, float]:
    return {part.name: part.size for part in loop_parts(settings(*chosen, **sections), shape, LOAD)}


def test_the_embedded_engine_has_a_copy_in_rank_0_and_servers_have_it_elsewhere():
    first, others = processes_of(settings("fsdp2"), SHAPE, LOAD)
    assert (first.name, others.name, others.count) == ("rank 0", "ranks 1 to 3", 3)
    assert loop("fsdp2")["engine's copy"] == 4 * (
        P + 2000
    )  # packed, and the embedding that the output layer is tied to
    served = {"rollout": {"engine": {"kind": "vllm", "processes": 1}}}
    assert loop("fsdp2", **served).keys() == {"buckets"}
    assert loop("fsdp2", **served)["buckets"] == 2 * 4 * P + 4 * 2000
    assert first.at("start") - others.at("start") == pytest.approx(18e6)


def test_the_reference_is_shared_out_over_ranks_and_is_there_where_something_reads_it():
    kl, no_rules = {"objective": {"kl": {"kind": "k2"}}}, {"health": {"enabled": False}}
    assert loop(**kl)["reference"] == 4 * P and "reference" not in loop(**no_rules)
    assert sizes(settings("fsdp2", **kl))["reference"] == P
    assert "reference" not in loop("fsdp2", **kl) and "reference" not in sizes(settings("fsdp2", **no_rules))


def test_with_an_adapter_there_is_no_reference_and_checkpoints_hold_the_adapter_alone():
    own = loop("fsdp2", shape=ADAPTED, policy={"lora": {}})
    assert sizes(settings("fsdp2", policy={"lora": {}}), ADAPTED)["checkpoint"] == 12 * 100 / 4
    assert own.keys() & {"reference", "merged weights"} == set()
    assert "reference" not in own and "reference" not in sizes(settings("fsdp2", policy={"lora": {}}), ADAPTED)
    assert loop(shape=ADAPTED, policy={"lora": {}})["merged weights"] == 4 * 6000


def test_a_critic_trains_what_the_policy_trains():
    gae = {"objective": {"advantage": {"kind": "gae"}}}
    whole, adapter = (
        {part.name: part.size for part in loop_parts(settings(**gae, **more), shape, LOAD)}
        for more, shape in (({}, SHAPE), ({"policy": {"lora": {}}}, ADAPTED))
    )
    assert (whole["critic"], adapter["critic"]) == (16 * P, 16 * 100)
    assert (whole["critic's checkpoint"], adapter["critic's checkpoint"]) == (12 * P, 12 * 100)
    assert "critic's base" not in adapter


def test_every_rank_copies_its_share_of_a_checkpoint_in_the_machines_memory_and_only_where_the_loop_goes_on():
    first, others = processes_of(settings("fsdp2"), SHAPE, LOAD, gpu_memory=80 * GIB)
    assert first.of("checkpoint") == others.of("checkpoint") == 12 * P / 4
    (part,) = (part for part in others.parts if part.name == "checkpoint")
    assert not part.on_gpu and "1/4 of all" in part.why
    (alone,) = processes_of(settings(), SHAPE, LOAD)
    assert alone.of("checkpoint") == 12 * P
    for kind in ("torch", "fsdp2"):
        at_once = processes_of(settings(kind, train={"checkpoints": {"asynchronous": False}}), SHAPE, LOAD)
        assert not any(process.of("checkpoint") for process in at_once)


def test_a_gpu_holds_the_share_of_its_rank_and_the_first_one_what_the_loop_computes_with():
    first, others = processes_of(settings("fsdp2"), SHAPE, LOAD, gpu_memory=80 * GIB)
    assert others.at("sample") == pytest.approx(IMPORTED + 32e6 + 12 * P / 4)
    assert others.at("sample", on_gpu=True) == CUDA + 4 * P
    loops = ("engine's copy", "cache", "sampled logits")
    assert first.of("engine's copy") == 2 * P, "bfloat16, and not packed"
    assert first.at("sample", on_gpu=True) == CUDA + 4 * P + sum(map(first.of, loops))


def test_a_learner_of_one_process_takes_the_gpu_unless_the_settings_say_cpu():
    (alone,) = processes_of(settings(), SHAPE, LOAD, gpu_memory=80 * GIB)
    assert (alone.gpus, alone.at("forward", on_gpu=True) > 16 * P) == (1, True)
    assert alone.at("forward") == pytest.approx(IMPORTED + 50e6 + alone.of("checkpoint"))
    (held_back,) = processes_of(settings(device="cpu"), SHAPE, LOAD, gpu_memory=80 * GIB)
    assert (held_back.gpus, held_back.at("forward", on_gpu=True)) == (0, 0)


def test_a_server_shares_its_weights_out_and_takes_the_rest_for_its_cache():
    engine = {"kind": "vllm", "processes": 1, "tensor_parallel": 2, "dtype": "bfloat16"}
    weights, rest = server_parts(settings(rollout={"engine": engine}), SHAPE, 1000.0 * P)
    assert (weights.size, rest.size) == (2 * P / 2, 0.9 * 1000 * P - P)
    weights, rest = server_parts(settings(rollout={"engine": {**engine, "cpu_cache_gib": 3}}), SHAPE, None)
    assert rest.size == 3 * GIB


def test_a_process_peaks_at_the_moment_that_holds_most():
    parts = [Part("a", 1, "", ("start",)), Part("b", 2, "", ("sample", "forward")), Part("c", 2, "", ("forward",))]
    process = Process("one", 1, parts)
    assert process.peak() == ("forward", 4)
    assert process.of("b") == 2
