"""What answers to deletions say beside the object."""

import httpx
import pytest

JOBS = "/apis/batch/v1/namespaces/default/jobs"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ADVICE = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)
SPEC = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}}


@pytest.mark.parametrize("path", [f"{JOBS}/a", JOBS])
@pytest.mark.parametrize(
    "options,warned",
    [({}, True), ({"propagationPolicy": "Orphan"}, False), ({"propagationPolicy": "Background"}, False), ({"orphanDependents": True}, False)],
)
async def test_who_deletes_jobs_without_a_policy_is_warned(http: httpx.AsyncClient, path: str, options: dict[str, str], *, warned: bool) -> None:
    """The pods of Jobs stay where nobody says what becomes of them: who deletes one, or all, is told; who says it is not."""
    await http.post(JOBS, json={"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": SPEC})
    body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
    answer = await http.request("DELETE", path, json=body)
    assert answer.status_code == 200
    assert answer.headers.get_list("Warning") == ([f'299 - "{ADVICE}"'] if warned else [])


async def test_other_deletions_are_not_warned_of(http: httpx.AsyncClient) -> None:
    """A kind without dependents that it leaves has nothing to warn of."""
    await http.post(CONFIG_MAPS, json={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert "Warning" not in (await http.delete(f"{CONFIG_MAPS}/a")).headers
