from __future__ import annotations

from components.config import Settings
from components.config.pins import check_digest
from components.files import sha256_tree, write_json, write_jsonl
from components.layout import Layout

GAIN = {"mean": 0.4, "low": 0.35, "high": 0.45, "confidence": 0.95, "n": 512}
SHARES = {"truncated_share": 0.01, "unscorable_share": 0.0}
CLEAN = {"worst_share": 0.0, "worst": "test"}
KEPT = {"drops": [{"mean": 0.0, "se": 0.0, "n": 200, "stratum": ""}]}
OVER = {"mean": 0.1, "low": 0.05, "high": 0.15, "confidence": 0.95, "n": 512}


def run(settings: Settings, layout: Layout) -> None:
    sides = {
        "sft": {"pass_at_1": 0.3, "greedy": 0.31, **SHARES},
        "trained": {"pass_at_1": 0.7, "greedy": 0.71, **SHARES},
    }
    digest = sha256_tree(layout.train_checkpoint)
    figures = {**sides, "gain": GAIN, "greedy_gain": GAIN, "contamination": CLEAN, "checkpoint_sha256": digest}
    if (champion := settings.evaluation.champion) is not None:
        check_digest(champion.path, champion.sha256)
        figures |= {
            "champion": {"pass_at_1": 0.6, "greedy": 0.61, **SHARES},
            "gain_over_champion": OVER,
            "greedy_gain_over_champion": OVER,
        }
    write_json(layout.evaluation, figures)
    write_jsonl(layout.samples, [])
    sets = {name: {"by": dict.fromkeys(one.by, KEPT)} for name, one in settings.health.canaries.items()}
    write_json(layout.canaries, {"said": "", "sets": sets, "checkpoint_sha256": digest})
