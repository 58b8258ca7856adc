"""A refusal carries the warnings of the request as an answer does: they are headers that are written when the warning is found, not when the request succeeds."""

from typing import Any

import httpx

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
WARN = {"fieldValidation": "Warn"}
UNKNOWN = 'unknown field "bogus"'
OLD = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "containers": [{"name": "m", "image": "i"}]},
}


def texts(answer: httpx.Response) -> list[str]:
    """Return the warnings of an answer."""
    return [each.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for each in answer.headers.get_list("Warning")]


def config_map(name: str = "a", **more: Any) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


async def test_invalid_objects(http: httpx.AsyncClient) -> None:
    """What the decoder found is told whether validation refuses the object or not, by every verb."""
    await http.post(CONFIG_MAPS, json=config_map())
    bad = {"bogus": 1, "data": {"no key": "x"}}
    merge = {"Content-Type": "application/merge-patch+json"}
    for answer in (
        await http.post(CONFIG_MAPS, json=config_map("b", **bad), params=WARN),
        await http.put(f"{CONFIG_MAPS}/a", json=config_map("a", **bad), params=WARN),
        await http.patch(f"{CONFIG_MAPS}/a", json=bad, headers=merge, params=WARN),
    ):
        assert (answer.status_code, texts(answer)) == (422, [UNKNOWN])


async def test_keys_that_stand_twice_in_a_patch(http: httpx.AsyncClient) -> None:
    """The body of a patch is warned of too."""
    await http.post(CONFIG_MAPS, json=config_map())
    answer = await http.patch(
        f"{CONFIG_MAPS}/a",
        content='{"data": {"no key": "x"}, "data": {"no key": "x"}}',
        headers={"Content-Type": "application/merge-patch+json"},
        params=WARN,
    )
    assert (answer.status_code, texts(answer)) == (422, ['duplicate field "data"'])


async def test_names_that_are_taken(http: httpx.AsyncClient) -> None:
    """The strategy warns of a sound object before the store finds that its name is taken."""
    first, second = await http.post(PODS, json=POD), await http.post(PODS, json=POD)
    assert (first.status_code, second.status_code) == (201, 409)
    assert texts(first) == texts(second) != []


async def test_versions_that_go(http: httpx.AsyncClient) -> None:
    """Who uses an API that goes is told by every verb, whatever comes of it."""
    made = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"}}
    assert texts(await http.post(ENDPOINTS, json=made)) == [OLD]
    for method, path, code in [
        ("GET", f"{ENDPOINTS}/none", 404),
        ("DELETE", f"{ENDPOINTS}/none", 404),
        ("PUT", f"{ENDPOINTS}/none", 400),
        ("DELETE", f"{ENDPOINTS}/a", 200),
        ("DELETE", ENDPOINTS, 200),
        ("GET", ENDPOINTS, 200),
    ]:
        answer = await http.request(method, path, json={"kind": "Endpoints", "apiVersion": "v1"} if method == "PUT" else None)
        assert (answer.status_code, texts(answer)) == (code, [OLD]), (method, path)


async def test_jobs_that_are_not_there(http: httpx.AsyncClient) -> None:
    """Advice on a deletion is given before anybody looks for the object."""
    answer = await http.delete(f"{JOBS}/none")
    assert (answer.status_code, len(texts(answer))) == (404, 1)
    assert texts(await http.delete(f"{JOBS}/none", params={"propagationPolicy": "Orphan"})) == []


async def test_the_strategy_warns_before_policies(http: httpx.AsyncClient) -> None:
    """Validating admission comes after the strategy; a denial keeps what all have said."""
    group = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    for name, action in {"say": "Warn", "stop": "Deny"}.items():
        spec: dict[str, Any] = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": name}]}
        for kind, plural, each in (
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", spec),
            ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", {"policyName": name, "validationActions": [action]}),
        ):
            made = {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": each}
            assert (await http.post(f"/apis/{group}/{plural}", json=made)).status_code == 201
    answer = await http.post(PODS, params=WARN, json={**POD, "bogus": 1})
    assert answer.status_code == 422
    decoded, odd, policy = texts(answer)
    assert (decoded, "beta.kubernetes.io/os" in odd, "ValidatingAdmissionPolicy 'say'" in policy) == (UNKNOWN, True, True)
