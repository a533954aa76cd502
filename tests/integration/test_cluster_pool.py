"""The deployments on a cluster, against a Prefect server: what it takes, and what it refuses before a pod is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import PrefectHTTPStatusError

from components.errors import InputError
from flows.serving import cluster
from tests.code_graph import ROOT

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

pytestmark = [pytest.mark.integration, pytest.mark.slow]
IMAGE = f"registry.example.com/evenkeel/orchestrator@sha256:{'a' * 64}"
TEMPLATE = json.loads((ROOT / "k8s/prefect/base-job-template.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def client() -> Iterator[SyncPrefectClient]:
    from prefect.client.orchestration import get_client
    from prefect.testing.utilities import prefect_test_harness  # seconds that the tests of `make test` need not wait

    with prefect_test_harness(server_startup_timeout=120), get_client(sync_client=True) as found:
        yield found


def test_the_deployments_of_the_project_wait_for_the_worker_s_pool_and_take_digests_only(
    client: SyncPrefectClient, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="no work pool kubernetes"):
        cluster.register(ROOT, IMAGE)
    assert client.read_deployments() == []

    client.create_work_pool(WorkPoolCreate(name=cluster.POOL, type="kubernetes", base_job_template=TEMPLATE))
    for _ in range(2):  # doing it again changes nothing
        cluster.register(ROOT, IMAGE)
        found = {one.name: one for one in client.read_deployments()}
        assert len(found) == 7 and {one.work_pool_name for one in found.values()} == {cluster.POOL}
        assert all(one.job_variables["image"] == IMAGE for one in found.values())
        assert found["nightly"].job_variables["env"] == {"EVENKEEL_START_WITHIN": "900"}
    assert capsys.readouterr().out.count("deployed") == 14

    run = client.create_flow_run_from_deployment(found["janitor"].id)
    assert run.deployment_id == found["janitor"].id
    for wrong in ({"image": "python:latest"}, {"memry": "1Gi"}, {"deadline_seconds": 0}):
        with pytest.raises(PrefectHTTPStatusError) as refused:
            client.create_flow_run_from_deployment(found["janitor"].id, job_variables=wrong)
        assert refused.value.response.status_code == 422, wrong
