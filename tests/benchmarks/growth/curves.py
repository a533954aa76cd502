"""All curves, by the names that cells and figures go by."""

from __future__ import annotations

from tests.benchmarks.growth import audits, bucket, clusters, data, folder, logs, manifests, monitor, pods, reports
from tests.benchmarks.growth.curve import Curve
from tests.benchmarks.growth.schedules import ads, curve, difficulty_pools, uniform

CURVES: dict[str, Curve] = {
    "uniform": curve(uniform),
    "difficulty_pools": curve(difficulty_pools),
    "ads": curve(ads),
    "data": data.CURVE,
    "embedding": clusters.FORWARD,
    "clusters": clusters.GROUP,
    "monitor": monitor.CURVE,
    "log": logs.CURVE,
    "audit": audits.CURVE,
    "report": reports.CURVE,
    "folder": folder.CURVE,
    "bucket": bucket.CURVE,
    "manifests": manifests.CURVE,
    "pods": pods.CURVE,
}
