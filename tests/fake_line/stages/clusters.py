from __future__ import annotations

from components.config import Settings
from components.files import write_json, write_jsonl
from components.layout import Layout


def run(settings: Settings, layout: Layout) -> None:
    write_jsonl(layout.clusters, [{"id": "train", "cluster": 0}])
    write_json(layout.clusters_metrics, {"k": 1})
