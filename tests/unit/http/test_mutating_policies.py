"""Changes that users bind to resources: MutatingAdmissionPolicies."""

from typing import Any

import httpx
import pytest

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def applied(expression: str) -> dict[str, Any]:
    """Return a mutation by an apply configuration."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> dict[str, Any]:
    """Return a mutation by a JSON patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(*mutations: dict[str, Any], name: str = "p", resource: str = "configmaps", **spec: Any) -> dict[str, Any]:
    """Return a policy on new objects."""
    rule = {"apiGroups": ["", "jobset.x-k8s.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
    made = {"matchConstraints": {"resourceRules": [rule]}, "mutations": list(mutations), "reinvocationPolicy": "Never", **spec}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": made}


async def bind(http: httpx.AsyncClient, *policies: dict[str, Any], **spec: Any) -> None:
    """Create policies and a binding of each."""
    for each in policies:
        name = each["metadata"]["name"]
        answer = await http.post(f"{GROUP}/mutatingadmissionpolicies", json=each)
        assert answer.status_code == 201, answer.text
        answer = await http.post(f"{GROUP}/mutatingadmissionpolicybindings", json={"metadata": {"name": name}, "spec": {"policyName": name, **spec}})
        assert answer.status_code == 201, answer.text


async def create(http: httpx.AsyncClient, name: str = "a", **data: str) -> httpx.Response:
    """Create a ConfigMap."""
    return await http.post(CONFIG_MAPS, json={"metadata": {"name": name}, "data": data})


async def test_apply_configuration(http: httpx.AsyncClient) -> None:
    """An apply configuration is merged: maps by key, keyed lists by key; what it does not name stays."""
    expression = (
        "Object{metadata: Object.metadata{labels: {'by': 'policy'}}, spec: Object.spec{containers: "
        "[Object.spec.containers{name: 'c', imagePullPolicy: 'Always'}, Object.spec.containers{name: 'side', image: 's'}]}}"
    )
    await bind(http, policy(applied(expression), resource="pods"))
    pod = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = (await http.post(PODS, json=pod)).json()
    assert made["metadata"]["labels"] == {"a": "b", "by": "policy"}
    shown = [(each["name"], each["image"], each["imagePullPolicy"]) for each in made["spec"]["containers"]]
    assert shown == [("c", "i", "Always"), ("side", "s", "Always")]


async def test_json_patch(http: httpx.AsyncClient) -> None:
    """A JSON patch is made by an expression; one whose test does not hold changes nothing."""
    await bind(
        http,
        policy(
            patched(
                "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, "
                "JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a.b/c'), value: object.metadata.name}]"
            ),
            patched("[JSONPatch{op: 'test', path: '/data/x', value: 'no'}, JSONPatch{op: 'remove', path: '/data/x'}]"),
            patched("'move' in object.data ? [JSONPatch{op: 'move', from: '/data/move', path: '/data/moved'}] : []"),
        ),
    )
    answer = await create(http, x="1", move="m")
    made = answer.json()
    assert (made["data"], made["metadata"]["labels"]) == ({"x": "1", "moved": "m"}, {"a.b/c": "a"})


async def test_objects_of_our_own(http: httpx.AsyncClient) -> None:
    """A custom resource is changed by its schema, and defaulted afterwards."""
    await bind(http, policy(applied("Object{spec: Object.spec{suspend: true, network: Object.spec.network{subdomain: 'sub'}}}"), resource="jobsets"))
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "j"},
        "spec": {"replicatedJobs": [{"name": "a", "template": template}]},
    }
    made = (await http.post("/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", json=job_set)).json()
    assert (made["spec"]["suspend"], made["spec"]["network"]["subdomain"], made["spec"]["replicatedJobs"][0]["replicas"]) == (True, "sub", 1)


async def test_conditions_parameters_variables_and_updates(http: httpx.AsyncClient) -> None:
    """Match conditions leave writes out; parameters and variables are at hand; updates are changed as well."""
    await create(http, "limits", most="7")
    await bind(
        http,
        policy(
            applied("Object{data: {'most': variables.most, 'by': request.operation}}"),
            matchConditions=[{"name": "some", "expression": "object.metadata.name.startsWith('a')"}],
            variables=[{"name": "most", "expression": "params.data.most"}],
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        ),
        paramRef={"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"},
    )
    assert (await create(http, "b")).json().get("data") is None
    assert (await create(http, "a")).json()["data"] == {"most": "7", "by": "CREATE"}
    put = await http.put(f"{CONFIG_MAPS}/a", json={"metadata": {"name": "a"}, "data": {"x": "1"}})
    assert put.json()["data"] == {"x": "1", "most": "7", "by": "UPDATE"}


async def test_a_policy_is_asked_again_when_a_later_one_changed_something(http: httpx.AsyncClient) -> None:
    """Only where it wants to be."""
    count = "[JSONPatch{op: 'add', path: '/data/%s', value: string(size(object.data))}]"
    await bind(
        http,
        policy(patched(count % "again"), name="a", reinvocationPolicy="IfNeeded"),
        policy(patched(count % "once"), name="b"),
        policy(patched("[JSONPatch{op: 'add', path: '/data/late', value: 'x'}]"), name="c"),
    )
    assert (await create(http, x="1")).json()["data"] == {"x": "1", "again": "4", "once": "2", "late": "x"}


@pytest.mark.parametrize(
    "mutation,text",
    [
        (applied("Object{data: {'x': string(int('y'))}}"), "resulted in error: "),
        (applied("Object{metadata: Object.wrong{}}"), 'type mismatch: unexpected type name "Object.wrong", expected "Object.metadata"'),
        (applied("Object{nope: 1}"), "error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema"),
        (patched("[JSONPatch{op: 'remove', path: '/data/nope'}]"), "JSON Patch: "),
    ],
)
async def test_what_fails_is_refused(http: httpx.AsyncClient, mutation: dict[str, Any], text: str) -> None:
    """A mutation that cannot be made denies the write, with reason and cause; where its policy ignores failures, nothing changes."""
    await bind(http, policy(mutation))
    answer = await create(http, x="1")
    status = answer.json()
    assert (answer.status_code, status["reason"]) == (403, "Invalid")
    assert status["message"].startswith("policy 'p' with binding 'p' denied request: ")
    assert text in status["message"]
    assert status["details"]["causes"] == [{"message": status["message"]}]
    await http.patch(
        f"{GROUP}/mutatingadmissionpolicies/p", json={"spec": {"failurePolicy": "Ignore"}}, headers={"Content-Type": "application/merge-patch+json"}
    )
    assert (await create(http, x="1")).json()["data"] == {"x": "1"}


async def test_atomic_parts_are_not_replaced(http: httpx.AsyncClient) -> None:
    """An apply configuration may not set what a merge would replace as a whole."""
    await bind(http, policy(applied("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', args: ['x']}]}}"), resource="pods"))
    answer = await http.post(PODS, json={"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    text = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args"
    assert (answer.status_code, text in answer.json()["message"]) == (403, True)
