"""Fabricated run folders for the tests of the report: passed, rescued by responses, stopped, refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from components.config import Settings, load
from components.files import write_json, write_jsonl, write_text
from components.layout import Layout

CONFIG = Path(__file__).parents[2] / "configs" / "demo.yaml"
FAMILIES = ("addition", "subtraction", "multiplication", "remainder", "comparison", "word_problem")
DIGEST = "3f9a0c17b2d4" + "e" * 52


def settings(*overrides: str) -> Settings:
    return load(CONFIG, overrides)


def healthy(root: Path) -> Layout:
    """Everything is there, the gate passed, one rule warned."""
    layout = start(root)
    write_json(layout.triage, triage(accept=True))
    train(layout, steps=60, verdicts=[verdict("entropy_halved", "warn", 42)])
    evaluation(layout)
    checks = [
        ("training health", "pass", "1 warning, nothing stopped the run"),
        ("held-out gain", "pass", "95 % interval +52.1 to +58.2 points, must exceed 0"),
    ]
    gate(layout, "pass", checks)
    return layout


def stopped(root: Path) -> Layout:
    """Triage refused, a person overrode it, the monitor stopped the run, the gate failed; nothing was evaluated."""
    layout = start(root)
    write_json(layout.triage, triage(accept=False))
    verdicts = [verdict("zero_variance", "warn", 19), verdict("advantage_collapse", "stop", 22)]
    train(layout, steps=23, verdicts=verdicts, override="to see <b>what</b> happens")
    gate(layout, "fail", [("training health", "fail", "advantage_collapse stopped the run at step 22")])
    return layout


def refused(root: Path) -> Layout:
    """Triage refused and nothing after it ran."""
    layout = start(root)
    write_json(layout.triage, triage(accept=False))
    return layout


def start(root: Path) -> Layout:
    """The stages that every run finishes."""
    layout = Layout(root)
    write_text(layout.data / "validation.html", "<!doctype html>")
    expectations = [
        ("id is unique", "id", 0),
        ("answer is not empty", "answer", 3),
        ("text has a sane length", "text", 0),
    ]
    write_json(layout.validation, {
        "rows": 16000, "quarantined": 3, "success": True, "codes": {"empty_answer": 3},
        "families": dict.fromkeys(FAMILIES, 2666),
        "splits": {"sft": 11997, "train": 2000, "dev": 400, "test": 1600},
        "expectations": [
            {"name": name, "column": column, "success": not bad, "checked": 16000, "unexpected": bad, "detail": ""}
            for name, column, bad in expectations
        ],
    })  # fmt: skip
    write_json(layout.audit, audit())
    write_text(layout.audit_page, "<!doctype html>")
    write_json(layout.admission, {"verdict": "clear", "withheld": [], "flagged": [], "planned": {"prompts": 2000}})
    write_json(layout.sft_metrics, {"steps": 400, "loss": 0.312, "parameters": 1032448, "checkpoint_sha256": "a" * 64})
    rows = [
        {
            "cluster": k,
            "size": 250 - 9 * k,
            "nll_mean": 0.21 + 0.11 * k,
            "families": {FAMILIES[k % 6]: 180, FAMILIES[1]: 40},
        }
        for k in range(8)
    ]
    bins = ("0", "0 to 1/5", "1/5 to 2/5", "2/5 to 3/5", "3/5 to 4/5", "4/5 to 1", "1")
    difficulty = {
        "measured": 128, "warning": "",
        "histogram": [{"success": n, "prompts": c} for n, c in zip(bins, (31, 20, 24, 19, 16, 11, 7), strict=True)],
        "nll": {"rho": -0.31, "low": -0.46, "high": -0.14}, "rank": {"rho": -0.24, "low": -0.4, "high": -0.07},
    }  # fmt: skip
    summary = {
        "k": 8,
        "silhouette": 0.41,
        "clusters": rows,
        "merged": [{"cluster": 9, "size": 3, "into": 2}],
        "difficulty": difficulty,
    }
    write_json(layout.clusters_metrics, summary)
    return layout


def audit() -> dict[str, Any]:
    share = {"count": 0, "n": 3400, "rate": 0.0, "low": 0.0, "high": 0.0011}
    return {
        "verdict": "pass", "reasons": [], "prompts": 200, "false_positive": share,
        "false_negative": share | {"n": 400, "high": 0.0095}, "repeated": 200, "unstable": 0, "unscorable": {},
        "kinds": [], "limits": {"max_false_positive": 0.02, "max_false_negative": 0.01},
    }  # fmt: skip


def triage(accept: bool) -> dict[str, Any]:
    wrong = 0.21 if accept else 0.961
    reason = (
        "0.62 of the 16 groups of a step would carry a gradient, fewer than triage.min_teaching (1): of groups of 8 "
        "96.1% are all wrong and 0.0% all right"
    )
    return {
        "verdict": "accept" if accept else "refuse", "reasons": [] if accept else [reason], "prompts": 128, "k": 16,
        "entropy": 0.442, "pass_at_1": 0.33 if accept else 0.004, "pass_at_k": 0.81 if accept else 0.03,
        "zero_variance_share": wrong + 0.04 * accept, "all_right_share": 0.04 * accept, "all_wrong_share": wrong,
        "truncated_share": 0.012, "families": {name: 0.2 + 0.05 * i for i, name in enumerate(FAMILIES)},
        "step": {"group_size": 8, "prompts": 16, "attempts": 1}, "teaching": 12.0 if accept else 0.624,
        "limits": {"min_teaching": 1.0, "min_headroom": 0.05, "min_passk_gap": 0.1, "min_entropy": 0.18},
    }  # fmt: skip


def verdict(rule: str, level: str, step: int) -> dict[str, Any]:
    evidence = {"zero_variance_share": [0.96, 0.97, None, 0.99, 1.0, 1.0]}
    return {
        "rule": rule,
        "level": level,
        "step": step,
        "reason": f"{rule} held for 20 steps",
        "evidence": evidence,
        "clean": step - 1,
    }


def rescued(root: Path) -> Layout:
    """Like `healthy`, but entropy collapsed once: an intervention did not help, a roll-back did."""
    layout = healthy(root)
    fired = [verdict("entropy_collapse", level, step) for level, step in (("intervene", 20), ("rollback", 31))]
    train(layout, steps=60, verdicts=[*fired, verdict("zero_variance", "warn", 52)], ledger=ledger())
    return layout


def ledger() -> list[dict[str, Any]]:
    """The ledger of `rescued`."""
    common = {"kind": "response", "rule": "entropy_collapse", "reason": "entropy is low and held-out pass@k falls"}
    saw = {"entropy": [0.31, 0.26, 0.22], "dev_pass_at_k": [0.8, None, 0.6]}
    halved = [{"knob": "learner.lr", "before": 0.0002, "after": 0.0001}]
    return [
        {**common, "number": 1, "step": 20, "asked": "intervene", "level": "intervene", "saw": saw,
         "changes": halved, "back_to": None, "quarantined": [], "did": ""},
        {"kind": "outcome", "of": 1, "step": 30, "recovered": False, "signals": {"entropy": [0.22, 0.2]},
         "cost_steps": 0},
        {**common, "number": 2, "step": 31, "asked": "intervene", "level": "rollback", "saw": saw,
         "changes": halved, "back_to": 16, "quarantined": ["p012"],
         "did": "back to step 16, with other seeds"},
        {"kind": "outcome", "of": 2, "step": 41, "recovered": True, "signals": {"entropy": [0.2, 0.35]},
         "cost_steps": 16},
    ]  # fmt: skip


def train(
    layout: Layout,
    steps: int,
    verdicts: list[dict[str, Any]],
    override: str = "",
    ledger: list[dict[str, Any]] | None = None,
) -> None:
    records = [{"step": step, "signals": signals(step, learns=not override), "notes": {}} for step in range(steps)]
    stop = next((row for row in verdicts if row["level"] == "stop"), None)
    write_jsonl(layout.records, records)
    write_jsonl(layout.train / "verdicts.jsonl", verdicts)
    write_jsonl(layout.ledger, ledger or [])
    write_json(layout.train_metrics, {
        "outcome": "stopped" if stop else "completed", "steps": steps, "stopped_by": stop and stop["rule"],
        "reason": stop["reason"] if stop else "", "triage": "overridden" if override else "accept",
        "override": override, "checkpoint_step": steps, "checkpoint_sha256": DIGEST, "final": records[-1]["signals"],
    })  # fmt: skip


def signals(step: int, learns: bool) -> dict[str, float]:
    """A curve that rises, or one on which almost every group is all wrong."""
    level = 1 / (1 + math.exp(-(step - 22) / 7)) if learns else 0.0
    wave = 0.02 * math.sin(1.7 * step) + 0.015 * math.sin(0.6 * step + 1)
    wrong, right = (0.25 * (1 - level) + 0.02 + abs(wave), 0.45 * level + abs(wave)) if learns else (0.97, 0.0)
    found = {
        "accuracy": max(0.004, 0.33 + 0.5 * level + wave if learns else 0.004), "reward": 0.3 + 0.5 * level + wave,
        "all_wrong_share": wrong, "all_right_share": right, "zero_variance_share": wrong + right,
        "groups_sampled": 32.0 + 32 * (step % 3 == 2), "groups_trained": 32.0 if learns else 1.0, "attempts": 1.0,
        "loss": 0.01, "entropy": 0.44 - 0.25 * level + wave / 3, "length_mean": 14.2 + 4 * level + 10 * wave,
        "length_p95": 24.0 + 5 * level, "length_right": 15.0, "length_wrong": 13.0, "ess": 1.0, "tis_truncated": 0.0,
        "truncated_share": 0.012 * (1 - level), "unscorable_share": 0.0, "mismatch_mean": 2.1e-7,
        "mismatch_max": 3.4e-6 * (1.1 + math.sin(step)), "mismatch_k3": 1e-12, "clip_low": 0.0, "clip_high": 0.0,
        "ratio_max": 1.0, "grad_norm": 0.6 + 5 * abs(wave) + (2.5 if step == 17 else 0), "nonfinite": 0.0, "lr": 1e-4,
        "second_compared": 13.0, "second_disagreement": 0.02 * abs(wave), "second_doubted": 0.0,
        "schedule_coverage": min(1.0, 0.016 * (step + 1)), "schedule_in_band": 0.5 + 0.2 * math.sin(step / 5),
    }  # fmt: skip
    found |= {
        "ratio_max": 1.4 + abs(wave), "ratio_mean": 1.0 + wave / 50, "ratio_min": 0.7 - abs(wave), "kl_old": 2e-4,
        "unique_share": 0.8 - 0.3 * level, "repetition_share": 0.1 + abs(wave), "top_completion_share": 0.02,
        "top_prompt_share": 0.031, "accuracy_jump": 0.25 + wave, "zero_variance_cluster_max": min(1.0, wrong + 0.3),
    }  # fmt: skip
    if step % 20 == 0:
        found |= {"train_dev_gap": -0.04 + abs(wave), "canary_fairness": 0.9, "canary_medicine": 0.8 - 0.1 * level,
                  "likelihood_medicine": 0.8}  # fmt: skip
        found |= {
            "dev_pass_at_1": 0.33 + 0.55 * level,
            "dev_pass_at_k": 0.75 + 0.2 * level,
            "kl_ref": 0.001 * step,
            "fall_evidence": -2.0,
        }
    return found


def side(level: float) -> dict[str, Any]:
    """One policy's half of `evaluation.json`; comparison gets worse while the rest improves."""
    rates = {name: min(1.0, level + 0.03 * i) for i, name in enumerate(FAMILIES)} | {"comparison": 0.72 - 0.1 * level}
    rows = {name: {"prompts": 85, "pass_at_1": rate, "greedy": min(1.0, rate + 0.02)} for name, rate in rates.items()}
    levels = {f"{i}.0": {"prompts": 170, "pass_at_1": level - 0.08 * i, "greedy": level - 0.06 * i} for i in range(3)}
    return {
        "pass_at_1": level, "pass_at_k": min(1.0, level + 0.1), "greedy": level + 0.02, "truncated_share": 0.01,
        "unscorable_share": 0.0, "length_mean": 14.2 + 4 * level, "families": rows, "difficulty": levels,
    }  # fmt: skip


def evaluation(layout: Layout) -> None:
    gain = {"mean": 0.553, "low": 0.521, "high": 0.582, "confidence": 0.95}
    write_json(layout.evaluation, {
        "prompts": 512, "samples": 4, "k": 4, "sft": side(0.331), "trained": side(0.884), "gain": gain,
        "greedy_gain": gain, "checkpoint_sha256": DIGEST,
    })  # fmt: skip
    write_jsonl(layout.samples, [sample(number) for number in range(60)])


def sample(number: int) -> dict[str, Any]:
    before, after = float(number % 3 == 0), float(number % 7 != 0)
    return {
        "id": f"p{number:03d}", "family": FAMILIES[number % 6], "prompt": f"What is {47 + number} + 85?",
        "answer": str(132 + number),
        "sft": {"text": f"7+5=12\n4+8=12\n# {132 + number if before else 122}", "accuracy": before},
        "trained": {"text": f"7+5=12, carry 1\n4+8+1=13\n# {132 + number if after else 31}", "accuracy": after},
    }  # fmt: skip


def gate(layout: Layout, result: str, checks: list[tuple[str, str, str]]) -> None:
    rows = [{"name": name, "result": verdict, "evidence": evidence} for name, verdict, evidence in checks]
    write_json(layout.gate, {"result": result, "checks": rows, "checkpoint_sha256": DIGEST, "policy_sha256": "b" * 64})
