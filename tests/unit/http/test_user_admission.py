"""Admission that users bring: webhooks over HTTPS, and policies in CEL."""

import base64
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import trustme
from aiohttp import web

from kubemini.serving import ServedCluster

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Hooks:
    """A server of webhooks that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.oddly: dict[str, Any] = {}
        self.url = ""
        self.bundle = ""

    async def mutate(self, request: web.Request) -> web.Response:
        """Add a key."""
        patch = [{"op": "add", "path": "/data/added", "value": "yes"}]
        return self._answer(
            await request.json(), patch=base64.b64encode(json.dumps(patch).encode()).decode(), patchType="JSONPatch", warnings=["careful"]
        )

    async def judge(self, request: web.Request) -> web.Response:
        """Refuse what holds the key ``bad``."""
        review = await request.json()
        bad = "bad" in ((review["request"]["object"] or {}).get("data") or {})
        return self._answer(review, allowed=not bad, status={"message": "no bad", "code": 403, "reason": "Forbidden"})

    async def odd(self, request: web.Request) -> web.Response:
        """Answer with what a test wants in place of what belongs there."""
        return self._answer(await request.json(), **self.oddly)

    def _answer(self, review: dict[str, Any], *, head: dict[str, Any] | None = None, **response: Any) -> web.Response:
        self.asked.append(review["request"])
        body = {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "response": {"allowed": True, "uid": review["request"]["uid"], **response},
        }
        return web.json_response({**body, **(head or {})})

    def configuration(self, kind: str, path: str, **more: Any) -> dict[str, Any]:
        """Return a configuration of one webhook for new ConfigMaps."""
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        client = {"url": f"{self.url}{path}", "caBundle": self.bundle}
        hook = {"name": "hook.example.com", "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule]}
        return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "x"}, "webhooks": [hook | more]}


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    """A server of webhooks on loopback, with a certificate authority of its own."""
    made, authority = Hooks(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    app = web.Application()
    app.router.add_post("/mutate", made.mutate)
    app.router.add_post("/judge", made.judge)
    app.router.add_post("/odd", made.odd)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    made.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    made.bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    yield made
    await runner.cleanup()


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


async def install(http: httpx.AsyncClient, tree: dict[str, Any]) -> None:
    """Create a configuration, a policy or a binding."""
    kind = tree["kind"].lower()
    plural = kind.removesuffix("y") + "ies" if kind.endswith("policy") else f"{kind}s"
    answer = await http.post(f"{GROUP}/{plural}", json=tree)
    assert answer.status_code == 201, answer.text


async def test_mutating(http: httpx.AsyncClient, hooks: Hooks) -> None:
    """A mutating webhook changes the object; its warnings reach the client."""
    await install(http, hooks.configuration("MutatingWebhookConfiguration", "/mutate"))
    answer = await http.post(CONFIG_MAPS, json=config_map("a", x="1"))
    assert answer.json()["data"] == {"x": "1", "added": "yes"}
    assert answer.headers["Warning"] == '299 - "careful"'
    asked = hooks.asked[0]
    assert (asked["operation"], asked["name"], asked["resource"]) == ("CREATE", "a", {"group": "", "version": "v1", "resource": "configmaps"})
    assert asked["userInfo"]["username"] == "system:admin"


async def test_validating(http: httpx.AsyncClient, hooks: Hooks) -> None:
    """A validating webhook refuses with its own words and code, and nothing is stored."""
    await install(http, hooks.configuration("ValidatingWebhookConfiguration", "/judge"))
    assert (await http.post(CONFIG_MAPS, json=config_map("a"))).status_code == 201
    answer = await http.post(CONFIG_MAPS, json=config_map("b", bad="1"))
    assert (answer.status_code, answer.json()["message"]) == (403, 'admission webhook "hook.example.com" denied the request: no bad')
    assert (await http.get(f"{CONFIG_MAPS}/b")).status_code == 404


@pytest.mark.parametrize(
    "kind,oddly,text",
    [
        ("Mutating", {"patch": "W10="}, "webhook returned response.patch but not response.patchType"),
        ("Mutating", {"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
        ("Validating", {"patch": "W10=", "patchType": "JSONPatch"}, "validating webhook may not return response.patch"),
        ("Validating", {"head": {"response": None}}, "webhook response was absent"),
        ("Validating", {"uid": "x"}, 'expected response.uid="'),
        (
            "Validating",
            {"head": {"apiVersion": "admission.k8s.io/v1beta1"}},
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview",
        ),
    ],
)
async def test_odd_answers(http: httpx.AsyncClient, hooks: Hooks, kind: str, oddly: dict[str, Any], text: str) -> None:
    """An answer that breaks the rules of AdmissionReview counts as a failed call, with what is wrong about it."""
    hooks.oddly = oddly
    await install(http, hooks.configuration(f"{kind}WebhookConfiguration", "/odd"))
    answer = await http.post(CONFIG_MAPS, json=config_map("a"))
    head = 'Internal error occurred: failed calling webhook "hook.example.com": received invalid webhook response: '
    assert (answer.status_code, answer.json()["message"].startswith(head + text)) == (500, True), answer.text


async def test_match_conditions(http: httpx.AsyncClient, hooks: Hooks) -> None:
    """A webhook is not asked about what its conditions leave out."""
    condition = [{"name": "n", "expression": "object.metadata.name != 'skip'"}]
    await install(http, hooks.configuration("ValidatingWebhookConfiguration", "/judge", matchConditions=condition))
    assert (await http.post(CONFIG_MAPS, json=config_map("skip", bad="1"))).status_code == 201
    assert hooks.asked == []


@pytest.mark.parametrize("policy, code", [("Fail", 500), ("Ignore", 201)])
async def test_unreachable(http: httpx.AsyncClient, hooks: Hooks, policy: str, code: int) -> None:
    """When a webhook cannot be reached its failure policy decides; the refusal names webhook, address and cause."""
    hooks.url = "https://127.0.0.1:1"
    await install(http, hooks.configuration("ValidatingWebhookConfiguration", "/judge", failurePolicy=policy))
    answer = await http.post(CONFIG_MAPS, json=config_map("a"))
    assert answer.status_code == code
    if code == 500:
        head = 'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://127.0.0.1:1/judge?timeout=10s": '
        assert answer.json()["message"] == f"{head}dial tcp 127.0.0.1:1: connect: connection refused"


# ------------------------------------------------------------------------------------------------ policies


def policy(*validations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a policy on new ConfigMaps."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": list(validations), **spec}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": spec}


def binding(*actions: str, **spec: Any) -> dict[str, Any]:
    """Return a binding of that policy."""
    spec = {"policyName": "p", "validationActions": list(actions), **spec}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"}, "spec": spec}


async def test_policy_needs_a_binding(http: httpx.AsyncClient) -> None:
    """A policy that nobody binds decides nothing; bound, it denies with its message."""
    await install(http, policy({"expression": "!('bad' in object.data)", "message": "no bad"}))
    assert (await http.post(CONFIG_MAPS, json=config_map("a", bad="1"))).status_code == 201
    await install(http, binding("Deny"))
    answer = await http.post(CONFIG_MAPS, json=config_map("b", bad="1"))
    text = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no bad"
    assert (answer.status_code, answer.json()["message"]) == (422, f'configmaps "b" is forbidden: {text}')
    assert (await http.post(CONFIG_MAPS, json=config_map("c", x="1"))).status_code == 201


async def test_policy_warns(http: httpx.AsyncClient) -> None:
    """A binding may only warn."""
    await install(http, policy({"expression": "false", "message": "never"}))
    await install(http, binding("Warn"))
    answer = await http.post(CONFIG_MAPS, json=config_map("a"))
    assert (answer.status_code, "Validation failed for ValidatingAdmissionPolicy 'p'" in answer.headers["Warning"]) == (201, True)


async def test_parameters_and_variables(http: httpx.AsyncClient) -> None:
    """A policy reads the parameters of its binding, and variables composed from them; a reason chooses the code."""
    await http.post(CONFIG_MAPS, json=config_map("limits", most="1"))
    rule = {"expression": "size(object.data) <= variables.most", "messageExpression": "'at most ' + string(variables.most)", "reason": "Forbidden"}
    await install(
        http, policy(rule, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, variables=[{"name": "most", "expression": "int(params.data.most)"}])
    )
    await install(http, binding("Deny", paramRef={"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}))
    assert (await http.post(CONFIG_MAPS, json=config_map("a", x="1"))).status_code == 201
    answer = await http.post(CONFIG_MAPS, json=config_map("b", x="1", y="2"))
    assert (answer.status_code, answer.json()["message"].endswith("denied request: at most 1")) == (403, True)


async def test_a_policy_asks_for_permissions(http: httpx.AsyncClient) -> None:
    """`authorizer` answers by RBAC for who asks, for a service account, and about the very object that is written."""
    special = "authorizer.group('example.com').resource('licenses').namespace('default').name('gold').check('use')"
    robot = "authorizer.serviceAccount('default', 'robot').group('').resource('secrets').namespace('default').check('list').allowed()"
    rules = [
        {"expression": f"{special}.allowed() || object.metadata.name != 'gold'", "message": "no license"},
        {"expression": "object.metadata.name != 'own' || authorizer.requestResource.check('own').allowed()", "message": "not an owner"},
        {"expression": f"object.metadata.name != 'robot' || {robot}", "message": "no robot"},
        {"expression": "object.metadata.name != 'path' || authorizer.path('/healthz').check('get').allowed()", "message": "no path"},
        {"expression": "object.metadata.name != 'bad' || authorizer.serviceAccount('default', 'A b').path('/').check('get').allowed()"},
    ]
    await install(http, policy(*rules))
    await install(http, binding("Deny"))
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    grants = [
        {"verbs": ["create", "own"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": []},
        {"verbs": ["use"], "apiGroups": ["example.com"], "resources": ["licenses"], "resourceNames": ["gold"]},
    ]

    async def grant(name: str, rules: list[dict[str, Any]], subject: dict[str, Any]) -> None:
        await http.post(f"{rbac}/roles", json={"metadata": {"name": name}, "rules": rules})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        await http.post(f"{rbac}/rolebindings", json={"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})

    async def create(user: str, name: str) -> str:
        answer = await http.post(CONFIG_MAPS, json=config_map(name), headers={"Impersonate-User": user})
        return str(answer.json().get("message", "made")).rpartition("denied request: ")[2]

    await grant("maker", grants[:1], {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"})
    assert [await create("ann", name) for name in ("gold", "own", "robot", "path")] == ["no license", "made", "no robot", "made"]
    await grant("license", grants[1:], {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"})
    reads = [{"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]}]
    await grant("robot", reads, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"})
    assert [await create("ann", name) for name in ("gold", "robot")] == ["made", "made"]
    assert (await create("ann", "bad")).endswith("resulted in error: Invalid service account name")


async def test_connections_into_pods_are_admitted(http: httpx.AsyncClient, hooks: Hooks) -> None:
    """Policies and webhooks may refuse exec and attach; they see the options, as an object of their own kind."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}
    await install(
        http,
        policy(
            {"expression": "object.command[0] != 'sh' || !object.tty", "messageExpression": "'no ' + request.kind.kind + ' of ' + request.name"},
            matchConstraints={"resourceRules": [rule]},
        ),
    )
    await install(http, binding("Deny"))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await http.post("/api/v1/namespaces/default/pods", json=pod)).status_code == 201
    refused = await http.get("/api/v1/namespaces/default/pods/p/exec?command=sh&tty=true&stdin=1&stdout=1")
    assert refused.json()["message"].endswith("denied request: no PodExecOptions of p")
    assert (await http.get("/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=1")).status_code == 400  # it has no node
    hook = hooks.configuration("ValidatingWebhookConfiguration", "/judge", rules=[{**rule, "resources": ["pods/attach"]}])
    await install(http, hook)
    await http.get("/api/v1/namespaces/default/pods/p/attach?stdin=true")
    asked = hooks.asked[0]
    assert (asked["operation"], asked["subResource"], asked["kind"]["kind"]) == ("CONNECT", "attach", "PodAttachOptions")
    assert asked["object"] == {"kind": "PodAttachOptions", "apiVersion": "v1", "stdin": True}


async def test_evictions_are_of_their_own_kind(http: httpx.AsyncClient) -> None:
    """What is posted to a subresource is seen as what it is."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
    says = "request.kind.group + '/' + request.kind.version + '/' + request.kind.kind"
    await install(http, policy({"expression": "false", "messageExpression": says}, matchConstraints={"resourceRules": [rule]}))
    await install(http, binding("Deny"))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await http.post("/api/v1/namespaces/default/pods", json=pod)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    answer = await http.post("/api/v1/namespaces/default/pods/p/eviction", json=eviction)
    assert answer.json()["message"].endswith("denied request: policy/v1/Eviction")


async def test_expression_that_does_not_compile(http: httpx.AsyncClient) -> None:
    """A policy whose expression is no CEL is refused when it is made."""
    answer = await http.post(f"{GROUP}/validatingadmissionpolicies", json=policy({"expression": "object.data ==="}))
    assert (answer.status_code, "spec.validations[0].expression" in answer.json()["message"]) == (422, True)
    assert "compilation failed" in answer.json()["message"]


async def test_service_without_a_network(served: ServedCluster, http: httpx.AsyncClient, hooks: Hooks) -> None:
    """A webhook behind a Service refuses the connection at once: there is no cluster network."""
    tree = hooks.configuration("ValidatingWebhookConfiguration", "/judge")
    tree["webhooks"][0]["clientConfig"] = {"service": {"name": "hook", "namespace": "default", "path": "/judge"}}
    await install(http, tree)
    missing = await http.post(CONFIG_MAPS, json=config_map("a"))
    assert 'service "hook" not found' in missing.json()["message"]
    await http.post("/api/v1/namespaces/default/services", json={"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}})
    refused = await http.post(CONFIG_MAPS, json=config_map("a"))
    assert "https://hook.default.svc:443/judge" in refused.json()["message"]
    assert "connection refused" in refused.json()["message"]
