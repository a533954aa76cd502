"""Combinations of settings that are refused: which, why, and that the way out is one.

Every row is a configuration that is refused, the words that its message must hold, and the way out that it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from components.config import Settings
from components.config.combinations import RULES, problems
from components.config.reading import merge

Tree = dict[str, Any]

FOUR = {"learner": {"updates_per_step": 4}}
BY_SEQUENCE = {"aggregation": {"kind": "sequence_mean"}}
MASK = {"kind": "mask_sequence_geometric", "low": 0.98, "high": 1.02}
GYM_SOURCE = {"kind": "reasoning_gym", "rows": 100, "datasets": {"chain_sum": {}}}
GYM_SCORER = {"kind": "reasoning_gym"}
SUMS = {"kind": "generated", "source": {"task": "arithmetic"}}
CONSISTENCY = {"reward": {"consistency": {"kind": "embedded"}}}


def objective(**sections: Any) -> Tree:
    return {"objective": sections}


class Unchecked(Settings):
    """Sections without a look at how they go together."""

    def conflicts(self) -> Iterator[str]:
        yield from ()


def refusal(tree: Tree) -> str:
    """What is said of a configuration that is refused."""
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(tree)
    (error,) = caught.value.errors()
    return error["msg"]


RATIO = [
    *(
        pytest.param(
            objective(ratio={"kind": kind}, aggregation=aggregation),
            [f"objective.ratio.kind {kind}", f"objective.aggregation.kind {aggregation['kind']}", paper],
            objective(**BY_SEQUENCE),
            id=f"{kind} and {aggregation['kind']}",
        )
        for kind, paper in (("gspo", "2507.18071"), ("gspo_token", "2507.18071"), ("gmpo", "2507.20673"))
        for aggregation in (
            {"kind": "token_mean"},
            {"kind": "prompt_mean"},
            {"kind": "fixed", "tokens": 40, "allow_std": True},
        )
    ),
    *(
        pytest.param(
            objective(ratio={"kind": kind}, **BY_SEQUENCE, **part),
            [f"objective.ratio.kind {kind}", *words],
            objective(ratio={"kind": "gspo_token"}),
            id=f"{kind} and {words[0]}",
        )
        for kind in ("gspo", "gmpo")  # and luspo, below
        for part, words in (
            ({"correction": {"kind": "icepop"}}, ["objective.correction.kind icepop", "mask_sequence_geometric"]),
            ({"selection": {"kind": "clip_cov"}}, ["objective.selection.kind clip_cov", "gspo_token"]),
            ({"selection": {"kind": "top_entropy"}}, ["objective.selection.kind top_entropy", "gspo_token"]),
            ({"redistribution": {"kind": "rredcot"}}, ["objective.redistribution", "gspo_token"]),
            ({"advantage": {"kind": "gae"}}, ["objective.advantage.kind gae", "gspo_token"]),
        )
    ),
    *(
        pytest.param(
            objective(ratio=ratio, correction=correction),
            [
                f"objective.ratio.kind {ratio['kind']}",
                f"objective.correction.kind {correction['kind']}",
                "2602.04879",
                "to null",
            ],
            objective(correction=None),
            id=f"{ratio['kind']} and {correction['kind']}",
        )
        for ratio in ({"kind": "cispo", "anchor": "rollout"}, {"kind": "dppo_tv"}, {"kind": "dppo_kl"})
        for correction in ({"kind": "tis_token"}, {"kind": "icepop"}, MASK)
    ),
    pytest.param(
        objective(ratio={"kind": "luspo"}, **BY_SEQUENCE),
        ["objective.ratio.kind luspo", "objective.aggregation.kind sequence_mean", "2602.05261"],
        objective(aggregation={"kind": "token_mean"}),
        id="luspo and sequence_mean",
    ),
    pytest.param(
        objective(ratio={"kind": "luspo"}, correction={"kind": "icepop"}),
        ["objective.ratio.kind luspo", "objective.correction.kind icepop"],
        objective(correction=MASK),
        id="luspo and icepop",
    ),
    *(
        pytest.param(
            objective(ratio={"kind": "vespo"}, correction=correction),
            ["objective.ratio.kind vespo", f"objective.correction.kind {correction['kind']}", "2602.10693"],
            objective(correction={"kind": "tis_token"}),
            id=f"vespo and {correction['kind']}",
        )
        for correction in ({"kind": "tis_sequence_product"}, {"kind": "tis_sequence_geometric"}, MASK)
    ),
    pytest.param(
        objective(selection={"kind": "kl_cov"}),
        ["objective.selection.kind kl_cov", "learner.updates_per_step 1", "2505.22617"],
        FOUR,
        id="kl_cov and one update",
    ),
]

ADVANTAGE = [
    *(
        pytest.param(
            merge(extra, objective(aggregation={"kind": "fixed", "tokens": 40}, advantage=advantage)),
            ["objective.aggregation.kind fixed", f"objective.advantage.kind {advantage['kind']}", "2503.20783"],
            way_out,
            id=f"fixed and the std of {advantage['kind']}, {name}",
        )
        for advantage, extra in (
            ({"kind": "grpo", "std": "population"}, {}),
            ({"kind": "leave_one_out", "std": "unbiased"}, {}),
            ({"kind": "gdpo"}, {}),
            ({"kind": "hras"}, CONSISTENCY),
        )
        for name, way_out in (
            ("no std", objective(advantage={"kind": "grpo", "std": "none"})),
            ("meant so", objective(aggregation={"allow_std": True})),
        )
    ),
    pytest.param(
        objective(aggregation={"kind": "fixed", "tokens": 39}, advantage={"kind": "grpo", "std": "none"}),
        ["objective.aggregation.tokens (39)", "rollout.max_new_tokens (40)", "2503.20783"],
        objective(aggregation={"tokens": 40}),
        id="a constant below the budget",
    ),
    *(
        pytest.param(
            objective(advantage={"kind": kind, "std": "none"}, **BY_SEQUENCE),
            ["objective.advantage.std none", "objective.aggregation.kind sequence_mean", "2503.20783"],
            objective(aggregation={"kind": "token_mean"}),
            id=f"{kind} without std and sequence_mean",
        )
        for kind in ("grpo", "leave_one_out")
    ),
    *(
        pytest.param(
            merge(extra, objective(kl={"kind": "k1_reward"}, advantage=advantage)),
            ["objective.kl.kind k1_reward", f"objective.advantage.kind {advantage['kind']}", "KL noise"],
            objective(**way_out),
            id=f"k1_reward and the std of {advantage['kind']}, {name}",
        )
        for advantage, extra in (
            ({"kind": "grpo"}, {}),
            ({"kind": "leave_one_out", "std": "population"}, {}),
            ({"kind": "gdpo"}, {}),
            ({"kind": "hras"}, CONSISTENCY),
        )
        for name, way_out in (
            ("in the loss", {"kl": {"kind": "k2"}}),
            ("no std", {"advantage": {"kind": "grpo", "std": "none"}}),
            ("std of the batch", {"advantage": {"kind": "batch_std"}}),
            ("a critic", {"advantage": {"kind": "gae"}}),
        )
    ),
    pytest.param(
        merge(objective(advantage={"kind": "maxrl"}), {"reward": {"soft_overlong": {"limit": 40, "cache": 2}}}),
        ["objective.advantage.kind maxrl", "reward.soft_overlong", "2602.02710"],
        {"reward": {"soft_overlong": None}},
        id="maxrl and soft_overlong",
    ),
    pytest.param(
        objective(advantage={"kind": "maxrl"}, kl={"kind": "k1_reward"}),
        ["objective.advantage.kind maxrl", "objective.kl.kind k1_reward", "2602.02710"],
        objective(kl=None),
        id="maxrl and k1_reward",
    ),
    pytest.param(
        objective(advantage={"kind": "hras"}),
        ["objective.advantage.kind hras", "no reward.consistency", "2606.14691"],
        CONSISTENCY,
        id="hras without consistency",
    ),
    *(
        pytest.param(
            merge(
                CONSISTENCY, {**objective(advantage={"kind": "hras"}), "reward": {"weights": {"consistency": weight}}}
            ),
            ["reward.weights.consistency", "objective.advantage.kind hras", "objective.advantage.beta", "2606.14691"],
            {"reward": {"weights": {"consistency": 1.0}}},
            id=f"hras and a consistency of weight {weight}",
        )
        for weight in (5.0, 0.0)
    ),
    pytest.param(
        {**objective(advantage={"kind": "gdpo"}), "reward": {"weights": {"accuracy": 2.0}}},
        ["reward.weights.accuracy", "objective.advantage.kind gdpo", "objective.advantage.weights", "2601.05242"],
        {"reward": {"weights": {"accuracy": 1.0}}, **objective(advantage={"weights": {"accuracy": 2.0}})},
        id="gdpo and a scaled reward",
    ),
    pytest.param(
        {**objective(advantage={"kind": "gdpo"}), "reward": {"functions": {"brief": {"target": "m:f", "weight": 0.2}}}},
        ["reward.functions.brief.weight cancels", "objective.advantage.weights"],
        {"reward": {"functions": {"brief": {"weight": -1.0}}}, **objective(advantage={"weights": {"brief": 0.2}})},
        id="gdpo and a scaled function",
    ),
    pytest.param(
        {**objective(advantage={"kind": "maxrl"}), "reward": {"functions": {"brief": {"target": "m:f", "weight": -1}}}},
        ["objective.advantage.kind maxrl", "reward.functions.brief.weight"],
        {"reward": {"functions": {"brief": {"weight": 1}}}},
        id="maxrl and a penalty",
    ),
    pytest.param(
        objective(advantage={"kind": "gdpo", "weights": {"style": 1.0}}),
        ["objective.advantage.weights names style", "reward"],
        objective(advantage={"kind": "grpo"}),
        id="gdpo and a part that is not there",
    ),
    pytest.param(
        {
            **objective(advantage={"kind": "gdpo", "weights": {"overlong": 0.5}}),
            "reward": {"soft_overlong": {"limit": 30, "cache": 8}, "weights": {"overlong": 0.0}},
        },
        ["objective.advantage.weights names overlong", "weight is not 0"],
        {"reward": {"weights": {"overlong": 1.0}}},
        id="gdpo and a part that is only measured",
    ),
    pytest.param(
        {"rollout": {"two_stage": {"first": 2}}, **objective(advantage={"kind": "gae"})},
        ["rollout.two_stage", "objective.advantage.kind gae"],
        {"rollout": {"two_stage": None}},
        id="gae and groups that are ended early",
    ),
    pytest.param(
        objective(advantage={"kind": "gae"}, advantage_cap=4.0),
        ["objective.advantage_cap", "objective.advantage.kind gae"],
        objective(advantage_cap=None),
        id="gae and a cap",
    ),
    pytest.param(
        objective(advantage={"kind": "gae"}, redistribution={"kind": "rredcot"}),
        ["objective.redistribution", "objective.advantage.kind gae"],
        objective(redistribution=None),
        id="gae and redistribution",
    ),
    *(
        pytest.param(
            {"rollout": {"group_size": 1}, **objective(advantage={"kind": kind})},
            ["rollout.group_size 1", f"objective.advantage.kind {kind}", "only zeros"],
            objective(advantage={"kind": "gae"}),
            id=f"a group of one and {kind}",
        )
        for kind in ("grpo", "batch_std", "leave_one_out", "maxrl", "gdpo")
    ),
    pytest.param(
        {"rollout": {"group_size": 1, "dynamic_sampling": {}}, **objective(advantage={"kind": "gae"})},
        ["rollout.dynamic_sampling", "rollout.group_size 1", "2503.14476"],
        {"rollout": {"dynamic_sampling": None}},
        id="a group of one and dynamic sampling",
    ),
    pytest.param(
        {"reward": {"soft_overlong": {"limit": 100, "cache": 10}}, "rollout": {"max_new_tokens": 40}},
        ["reward.soft_overlong.limit (100)", "rollout.max_new_tokens (40)"],
        {"rollout": {"max_new_tokens": 100}},
        id="a penalty beyond the budget",
    ),
    *(
        pytest.param(
            {**objective(overlong_filter=True), "reward": {"soft_overlong": {"limit": 40, "cache": 2}}},
            ["reward.soft_overlong", "objective.overlong_filter", "2503.14476"],
            way_out,
            id=f"overlong filter and soft overlong, {name}",
        )
        for name, way_out in (
            ("no filter", objective(overlong_filter=False)),
            ("no penalty", {"reward": {"soft_overlong": None}}),
        )
    ),
]

LOOP = [
    pytest.param(
        {"schedule": {"kind": "ads", "window": 3, "active": 4}, "train": {"prompts_per_step": 8}},
        ["schedule.active x schedule.window (4 x 3)", "train.prompts_per_step (8)"],
        {"train": {"prompts_per_step": 12}},
        id="ads and another number of prompts",
    ),
    pytest.param(
        {"schedule": {"kind": "ads", "window": 8, "active": 4}, "clusters": {"k": 3}},
        ["schedule.active (4)", "clusters.k (3)"],
        {"clusters": {"k": 4}},
        id="ads and too few clusters",
    ),
    pytest.param(
        {"schedule": {"kind": "ads", "window": 8, "active": 4, "alpha": 1.0}},
        ["schedule.alpha 1", "schedule.min_prob 0"],
        {"schedule": {"min_prob": 0.1}},
        id="ads without a floor",
    ),
    pytest.param(
        {"triage": {"samples": 4}, "rollout": {"group_size": 8}},
        ["triage.samples (4)", "rollout.group_size (8)"],
        {"triage": {"samples": 8}},
        id="triage of smaller groups",
    ),
    pytest.param(
        {"train": {"prompts_per_step": 7}, "schedule": {"kind": "uniform"}},
        ["train.prompts_per_step (7)", "admission.min_distinct (8)"],
        {"train": {"prompts_per_step": 8}},
        id="steps of too few prompts",
    ),
    pytest.param(
        {"learner": {"updates_per_step": 9}, "train": {"prompts_per_step": 8}},
        ["learner.updates_per_step", "train.prompts_per_step"],
        {"learner": {"updates_per_step": 8}},
        id="an update without a group",
    ),
    pytest.param(
        {"dpo": {"steps": 1}, "train": {"keep_pairs": 0}},
        ["dpo.steps", "train.keep_pairs", "dpo.pairs"],
        {"dpo": {"pairs": {"path": "pairs.jsonl"}}},
        id="dpo without pairs",
    ),
    pytest.param(
        {"sft": {"steps": 0}},
        ["sft.steps 0", "policy.model.kind tiny"],
        {"policy": {"model": {"kind": "checkpoint", "path": "x"}}},
        id="random weights and RL",
    ),
    pytest.param(
        {"data": {"splits": {"sft": 0, "train": 0.8, "dev": 0.1, "test": 0.1}}},
        ["data.splits.sft 0", "policy.model.kind tiny"],
        {"policy": {"model": {"kind": "checkpoint", "path": "x"}}},
        id="no text for the tokenizer",
    ),
    pytest.param(
        {"learner": {"routing_replay": True}},
        ["learner.routing_replay", "rollout.engine.record_routes"],
        {"rollout": {"engine": {"record_routes": True}}},
        id="replay of routes that were not kept",
    ),
    pytest.param(
        {"learner": {"routing_replay": True}, "rollout": {"engine": {"kind": "vllm", "processes": 1}}},
        ["learner.routing_replay", "rollout.engine.kind vllm", "kind: torch"],
        {"rollout": {"engine": {"kind": "torch", "record_routes": True}}},
        id="replay of routes that servers do not tell",
    ),
    pytest.param(
        {"data": {"source": {"kind": "generated", "task": "calculator"}}},
        ["data.source.task calculator", "rollout.tool"],
        {"rollout": {"tool": {"kind": "calculator"}}},
        id="a task without its tool",
    ),
    pytest.param(
        {**objective(advantage={"kind": "gae"}), "learner": {"critic": {"pretrain_steps": 100}}},
        ["learner.critic.pretrain_steps (100)", "train.steps (100)"],
        {"learner": {"critic": {"pretrain_steps": 99}}},
        id="a critic that learns for the whole run",
    ),
    pytest.param(
        {**objective(advantage={"kind": "gae", "fallback": "group"}), "rollout": {"group_size": 1}},
        ["objective.advantage.fallback group", "rollout.group_size 1"],
        objective(advantage={"fallback": "batch"}),
        id="a fallback on a group of one",
    ),
    pytest.param(
        {"audit": {"second": {"kind": "code", "seconds": 60}}},
        ["audit.second.seconds (60)", "sandbox.timeout (10)"],
        {"audit": {"second": {"kind": "code", "seconds": 9}}},
        id="a second verifier whose code outlives the worker",
    ),
    pytest.param(
        {"reward": {"verifier": GYM_SCORER}},
        ["reward.verifier.kind reasoning_gym", "data.source.kind reasoning_gym", "the source is generated"],
        {"data": {"source": GYM_SOURCE}},
        id="scorers of reasoning-gym, and other problems",
    ),
    pytest.param(
        {"audit": {"second": GYM_SCORER}},
        ["audit.second.kind reasoning_gym"],
        {"audit": {"second": {"kind": "exact"}}},
        id="a second verifier that knows nothing of the problems",
    ),
    pytest.param(
        {
            "data": {"source": GYM_SOURCE},
            "reward": {"verifier": GYM_SCORER},
            "evaluation": {"suites": {"sums": SUMS}},
        },
        ["evaluation.suites.sums", "reward.verifier.kind reasoning_gym"],
        {"evaluation": {"suites": {"sums": {"verifier": {"kind": "exact"}}}}},
        id="a suite that the scorers of reasoning-gym know nothing of",
    ),
    pytest.param(
        {
            "data": {"source": GYM_SOURCE},
            "reward": {"verifier": GYM_SCORER},
            "health": {"canaries": {"carries": {"generated": "carries", "by": ["generation"]}}},
        },
        ["health.canaries.carries", "reward.verifier.kind reasoning_gym"],
        {"health": {"canaries": {"carries": {"by": ["likelihood"]}}}},
        id="a probe set whose answers the scorers of reasoning-gym would judge",
    ),
    pytest.param(
        {"data": {"source": GYM_SOURCE}},
        ["data.source.solution", "'#'", "reward.verifier"],
        {"data": {"source": {"solution": "#{answer}"}}},
        id="solutions without the marker",
    ),
    pytest.param(
        {**objective(correction=None), "rollout": {"asynchrony": {"max_staleness": 3}}},
        ["rollout.asynchrony", "3 steps old", "objective.correction"],
        objective(correction={"kind": "tis_token"}),
        id="rollouts of an older policy that nothing weighs",
    ),
    pytest.param(
        {**objective(ratio={"kind": "cispo"}, correction=None), "rollout": {"asynchrony": {}}},
        ["rollout.asynchrony", "anchor rollout"],
        objective(ratio={"anchor": "rollout"}),
        id="rollouts of an older policy and a ratio to the newer one",
    ),
    pytest.param(
        {"rollout": {"asynchrony": {"in_flight": True}}},
        ["rollout.asynchrony.in_flight", "rollout.engine.kind torch"],
        {"rollout": {"asynchrony": {"in_flight": False}}},
        id="weights in flight and the embedded engine",
    ),
    pytest.param(
        {
            "rollout": {
                "asynchrony": {"in_flight": True},
                "engine": {"kind": "sglang", "urls": ["http://127.0.0.1:30000"]},
            }
        },
        ["rollout.asynchrony.in_flight", "rollout.engine.kind sglang", "one label for a whole completion"],
        {"rollout": {"asynchrony": {"in_flight": False}}},
        id="weights in flight and labels of whole completions",
    ),
    pytest.param(
        {
            "rollout": {
                "asynchrony": {"in_flight": True},
                "tool": {"kind": "calculator"},
                "engine": {"kind": "vllm", "urls": ["http://127.0.0.1:8000"]},
            }
        },
        ["rollout.asynchrony.in_flight", "rollout.tool"],
        {"rollout": {"tool": None}},
        id="weights in flight and a tool",
    ),
    pytest.param(
        {
            "rollout": {
                "asynchrony": {"in_flight": True},
                "engine": {"kind": "vllm", "urls": ["http://127.0.0.1:8000"]},
            },
            "data": {"source": {"kind": "verifiers", "target": "games", "rows": 100}},
            "reward": {"verifier": {"kind": "environment", "accuracy": "found"}},
        },
        ["rollout.asynchrony.in_flight", "an environment"],
        {"rollout": {"asynchrony": {"in_flight": False}}},
        id="weights in flight and an environment",
    ),
]

IMAGE = f"example.com/image@sha256:{'0' * 64}"


def on_kubernetes(shared: Tree | None = None, images: Tree | None = None, pod: int = 1, **sections: Tree) -> Tree:
    """``sections`` as part of a run on a cluster, with so many ranks in a ``pod``."""
    shared = {"kind": "volume", "claim": "data"} if shared is None else shared
    how = {"images": {"learner": IMAGE, **(images or {})}, "shared": shared, "learner": {"processes": pod}}
    return {**sections, "launch": {"kind": "kubernetes", "kubernetes": how}}


CLUSTER = [
    pytest.param(
        {"launch": {"kind": "kubernetes"}},
        ["launch.kind kubernetes", "launch.kubernetes"],
        {"launch": {"kind": "inline"}},
        id="a cluster that nothing is known of",
    ),
    pytest.param(
        on_kubernetes(rollout={"engine": {"kind": "vllm", "processes": 1}}),
        ["rollout.engine.processes", "launch.kubernetes.images.rollout"],
        on_kubernetes(images={"rollout": IMAGE}),
        id="servers without an image",
    ),
    pytest.param(
        on_kubernetes(pod=3, learner={"kind": "fsdp2", "ranks": {"processes": 4}}),
        ["learner.ranks.processes (4)", "launch.kubernetes.learner.processes (3)"],
        {"launch": {"kubernetes": {"learner": {"processes": 2}}}},
        id="ranks that do not fill their pods",
    ),
    pytest.param(
        on_kubernetes(pod=3, learner={"kind": "torch"}),
        ["launch.kubernetes.learner.processes (3)", "learner.kind"],
        {"launch": {"kubernetes": {"learner": {"processes": 1}}}},
        id="a pod for several ranks of a learner that has one",
    ),
    pytest.param(
        on_kubernetes(
            {"kind": "s3", "uri": "s3://bucket/runs"},
            rollout={"engine": {"kind": "sglang", "urls": ["http://sglang:30000"]}},
        ),
        ["rollout.engine.kind sglang", "launch.kubernetes.shared.kind volume"],
        {"rollout": {"engine": {"kind": "vllm", "urls": ["http://vllm:8000"], "transfer": "broadcast"}}},
        id="weights as files without a volume",
    ),
]
RANKS = [
    pytest.param(
        {"learner": {"kind": "fsdp2"}},
        ["learner.ranks.processes 2", "launch.kind processes"],
        {"launch": {"kind": "processes"}},
        id="ranks that nothing starts",
    ),
]
ASLEEP = {"kind": "vllm", "processes": 1, "sleep": True}
SHARING = [
    pytest.param(
        {"rollout": {"engine": ASLEEP, "asynchrony": {"max_staleness": 1}}},
        ["rollout.asynchrony", "rollout.engine.sleep"],
        {"rollout": {"engine": {"sleep": False}}},
        id="servers that sleep while they sample",
    ),
    pytest.param(
        {
            "rollout": {"engine": ASLEEP},
            "learner": {"kind": "deepspeed"},
            "launch": {"kind": "processes"},
        },
        ["rollout.engine.sleep", "learner.kind deepspeed"],
        {"learner": {"kind": "fsdp2"}},
        id="servers that sleep and moments that stay",
    ),
    pytest.param(
        {"rollout": {"engine": {**ASLEEP, "transfer": "broadcast"}}},
        ["rollout.engine.transfer broadcast", "rollout.engine.sleep"],
        {"rollout": {"engine": {"transfer": "files"}}},
        id="a broadcast on one gpu",
    ),
    pytest.param(
        {"rollout": {"engine": {**ASLEEP, "transfer": "adapter"}}, "policy": {"lora": {}}},
        ["rollout.engine.transfer adapter", "rollout.engine.sleep"],
        {"rollout": {"engine": {"transfer": "files"}}},
        id="a base that is given up",
    ),
    pytest.param(
        on_kubernetes(images={"rollout": IMAGE}, rollout={"engine": ASLEEP}),
        ["launch.kind kubernetes", "rollout.engine.sleep"],
        {"rollout": {"engine": {"sleep": False}}},
        id="a server that sleeps in a pod of its own",
    ),
]
ALONE = {"kind": "vllm", "processes": 1, "transfer": "adapter"}
ADAPTER = [
    pytest.param(
        {"rollout": {"engine": ALONE}},
        ["rollout.engine.transfer adapter", "policy.lora"],
        {"policy": {"lora": {}}},
        id="an adapter that is none",
    ),
    pytest.param(
        {"rollout": {"engine": ALONE}, "policy": {"lora": {"rank": 600}}},
        ["rollout.engine.transfer adapter", "policy.lora.rank"],
        {"policy": {"lora": {"rank": 512}}},
        id="an adapter that is too large for the server",
    ),
    pytest.param(
        on_kubernetes(images={"rollout": IMAGE}, rollout={"engine": ALONE}, policy={"lora": {}}),
        ["rollout.engine.transfer adapter", "Kubernetes"],
        {"rollout": {"engine": {"transfer": "files"}}},
        id="an adapter for pods",
    ),
]
ENVIRONMENT = [
    pytest.param(
        {"data": {"source": {"kind": "verifiers", "target": "game", "rows": 9}}},
        ["data.source.kind verifiers", "reward.verifier.kind environment"],
        {
            "reward": {"verifier": {"kind": "environment", "accuracy": "solved"}},
            "evaluation": {"suites": {}},
            "health": {"canaries": {}},
        },
        id="an environment without its judge",
    ),
    pytest.param(
        {"audit": {"second": {"kind": "environment", "accuracy": "solved"}}},
        ["audit.second.kind environment", "no texts"],
        {"audit": {"second": None}},
        id="a second verifier that judges no texts",
    ),
    pytest.param(
        {"evaluation": {"suites": {"sums": {**SUMS, "verifier": {"kind": "environment", "accuracy": "solved"}}}}},
        ["evaluation.suites.sums is not played in the environment", "evaluation.suites.sums.verifier.kind environment"],
        {"evaluation": {"suites": {"sums": {"verifier": {"kind": "exact"}}}}},
        id="a suite that an environment would judge",
    ),
]
FORBIDDEN = [*RATIO, *ADVANTAGE, *LOOP, *RANKS, *CLUSTER, *SHARING, *ADAPTER, *ENVIRONMENT]
forbidden = pytest.mark.parametrize(("tree", "words", "way_out"), FORBIDDEN)


@forbidden
def test_one_refusal_names_both_settings_and_the_reason(tree, words, way_out):
    """Every row is about its own pair, and no rule speaks of another's."""
    (problem,) = problems(Unchecked.model_validate(tree))
    assert refusal(tree) == f"Value error, {problem}"
    assert [word for word in words if word not in problem] == []


@forbidden
def test_the_way_out_is_one(tree, words, way_out):
    Settings.model_validate(merge(defaults(tree), way_out))


def defaults(tree: Tree) -> Tree:
    """Over the defaults, as `load` does, so that a part of a section can be changed without naming its kind."""
    return merge(Settings().model_dump(mode="json"), tree)


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param({}, id="the defaults"),
        pytest.param(objective(ratio={"kind": "cispo"}), id="cispo of the old policy, and tis"),
        pytest.param(objective(ratio={"kind": "gspo"}, **BY_SEQUENCE), id="gspo and tis"),
        pytest.param(
            objective(ratio={"kind": "gspo"}, **BY_SEQUENCE, advantage={"kind": "grpo", "std": "none"}),
            id="gspo has no other mean",
        ),
        pytest.param(objective(selection={"kind": "clip_cov"}), id="clip_cov with one update"),
        pytest.param(
            objective(advantage={"kind": "batch_std"}, aggregation={"kind": "fixed", "tokens": 40}), id="fixed"
        ),
        pytest.param({"rollout": {"group_size": 1}, **objective(advantage={"kind": "gae"})}, id="ppo"),
        pytest.param({"reward": {"soft_overlong": {"limit": 40, "cache": 10}}}, id="a penalty within the budget"),
        pytest.param(
            {"reward": {"soft_overlong": {"limit": 40, "cache": 10}, "weights": {"overlong": 0.0}}}
            | objective(advantage={"kind": "maxrl"}),
            id="a penalty that is only measured",
        ),
        pytest.param(objective(overlong_filter=True), id="overlong filter alone"),
        pytest.param({"rollout": {"asynchrony": {"max_staleness": 4}}}, id="older rollouts and a correction"),
        pytest.param(
            {**objective(ratio={"kind": "dppo_tv"}, correction=None), "rollout": {"asynchrony": {}}},
            id="older rollouts and a ratio to the sampler",
        ),
    ],
)
def test_settings_close_to_a_forbidden_pair_are_accepted(tree):
    Settings.model_validate(tree)


def test_every_rule_has_a_row_that_it_refuses():
    silent = set(RULES)
    for row in FORBIDDEN:
        sections = Unchecked.model_validate(row.values[0])
        silent -= {rule for rule in RULES if list(rule(sections))}
    assert silent == set()


def test_all_that_is_wrong_is_said_at_once():
    message = refusal({"rollout": {"group_size": 1}, "sft": {"steps": 0}, **objective(ratio={"kind": "gspo"})})
    assert all(key in message for key in ("rollout.group_size", "sft.steps", "objective.ratio.kind gspo"))


# Pairs that cannot be written


@pytest.mark.parametrize(
    ("tree", "where"),
    [
        pytest.param(objective(kl={"kind": "k3_reward"}), "objective.kl", id="k3 in the reward"),
        pytest.param(objective(kl={"kind": "k1"}), "objective.kl", id="k1 in the loss"),
        pytest.param(
            objective(ratio={"kind": "cispo", "cap": 0.28}), "objective.ratio.cispo.cap", id="cispo and a range"
        ),
        pytest.param(
            objective(ratio={"kind": "cispo", "high": 0.28}), "objective.ratio.cispo.high", id="cispo and clip"
        ),
        pytest.param(objective(ratio=[{"kind": "gspo"}, {"kind": "gmpo"}]), "objective.ratio", id="gspo and gmpo"),
        pytest.param(objective(target={"value": 0.1}), "objective.target", id="an adaptive kl without a kl"),
        pytest.param(
            objective(advantage={"kind": "grpo", "std": ["population", "unbiased"]}),
            "objective.advantage.grpo.std",
            id="two stds",
        ),
        pytest.param(
            {"rollout": {"dynamic_sampling": {"on": "reward"}}}, "rollout.dynamic_sampling.on", id="shaped reward"
        ),
        pytest.param(
            {"rollout": {"dynamic_sampling": {"source": "x"}}},
            "rollout.dynamic_sampling.source",
            id="a refill of its own",
        ),
        pytest.param(objective(old_logp="rollout"), "objective.old_logp", id="bypass mode"),
    ],
)
def test_there_is_no_setting_for_what_is_never_right(tree, where):
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(tree)
    assert ".".join(str(part) for part in caught.value.errors()[0]["loc"]).startswith(where)
