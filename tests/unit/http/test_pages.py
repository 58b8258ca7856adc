"""Documents outside the resource space: health, metrics, version, discovery, OpenAPI; and what every request may be met with."""

import asyncio
import base64
import json

import httpx
import pytest
from aiohttp import web

from kubemini.api.resources import JOB_SETS, JOBS, LEADER_WORKER_SETS, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.machinery.aggregation import AggregatedApi, AggregatedRequest, AggregatedResource
from kubemini.machinery.errors import ApiStatus, TooManyRequests
from kubemini.machinery.openapi.protobuf import encode
from kubemini.server.options import Caller
from kubemini.serving import ServedCluster


def encoded(tree: Tree) -> str:
    """Return what a continue token is made of."""
    return base64.urlsafe_b64encode(json.dumps(tree).encode()).rstrip(b"=").decode()


async def test_health(http: httpx.AsyncClient) -> None:
    """Health is ok in a word, or check by check; checks can be left out, and asked one by one."""
    assert (await http.get("/readyz")).text == "ok"
    verbose = (await http.get("/readyz?verbose&exclude=etcd")).text.splitlines()
    assert verbose[0] == "[+]ping ok"
    assert "[+]etcd excluded: ok" in verbose
    assert verbose[-1] == "readyz check passed"
    assert (await http.get("/livez/ping")).text == "ok"
    assert (await http.get("/livez/nope")).status_code == 404


async def test_not_ready(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """Without its controllers the server lives but is not ready, and says which check fails."""
    managers, served.managers = served.managers, {}
    answer = await http.get("/readyz")
    assert (answer.status_code, "[-]informer-sync failed: reason withheld" in answer.text) == (500, True)
    assert (await http.get("/readyz?exclude=informer-sync&exclude=poststarthook/start-kubemini-controllers")).status_code == 200
    assert (await http.get("/livez")).status_code == 200
    served.managers = managers


async def test_metrics(http: httpx.AsyncClient) -> None:
    """Requests are counted under kube-apiserver's names and labels."""
    for _ in range(2):
        await http.get("/api/v1/namespaces/default/configmaps")
    page = (await http.get("/metrics")).text
    labels = 'code="200",component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="LIST",version="v1"'
    assert f"apiserver_request_total{{{labels}}} 2.0" in page
    assert 'apiserver_storage_objects{resource="namespaces"}' in page


async def test_metrics_of_controllers() -> None:
    """The page has what controllers count of themselves, their work queues, and for operators the outcomes of reconciles."""
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}}
    meta = {"name": "js", "namespace": "default"}
    async with ServedCluster(tls=False, controllers="namespaces,service-accounts,job,jobset", seed=1) as served:
        body = {"replicatedJobs": [{"name": "w", "replicas": 0, "template": {"spec": job}}]}
        await served.client.create(JOB_SETS, {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": body})
        await served.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {**job, "completions": 0}})
        await served.wait("job/js", "condition=Complete")
        await served.wait("jobset/js", "jsonpath={.status.restarts}=0")
        async with httpx.AsyncClient(base_url=served.listener.url) as client:
            page = (await client.get("/metrics")).text.splitlines()
    assert 'job_controller_jobs_finished_total{completion_mode="NonIndexed",reason="CompletionsReached",result="succeeded"} 1.0' in page
    bucket = 'job_controller_job_sync_duration_seconds_bucket{action="tracking",completion_mode="NonIndexed",le="+Inf",result="success"}'
    assert any(line.startswith(bucket) for line in page)
    assert "# TYPE jobset_failed_total counter" in page
    assert 'workqueue_depth{name="job"} 0.0' in page
    assert 'controller_runtime_reconcile_errors_total{controller="jobset"} 0.0' in page
    (done,) = (line for line in page if line.startswith('controller_runtime_reconcile_total{controller="jobset",result="success"}'))
    assert float(done.split()[-1]) >= 1
    (count,) = (line for line in page if line.startswith('controller_runtime_reconcile_time_seconds_count{controller="jobset"}'))
    assert float(count.split()[-1]) >= 1
    assert not any('controller="job"' in line for line in page)


async def test_metrics_of_stateful_sets() -> None:
    """Under upstream's names: the queues and operators too. More pods unavailable than the gate MaxUnavailableStatefulSet allows are a violation each time."""
    gates = {"MaxUnavailableStatefulSet": True}
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    sets = {"serviceName": "s", "replicas": 3, "podManagementPolicy": "Parallel", "selector": {"matchLabels": {"app": "s"}}}
    labelled = {**template, "metadata": {"labels": {"app": "s"}}}
    async with ServedCluster(tls=False, controllers="namespaces,service-accounts,stateful-set,lws,jobset", seed=1, feature_gates=gates) as served:
        await served.client.create(STATEFUL_SETS, {"metadata": {"name": "s", "namespace": "default"}, "spec": {**sets, "template": labelled}})
        spec = {"leaderWorkerTemplate": {"workerTemplate": template}}
        await served.client.create(LEADER_WORKER_SETS, {"metadata": {"name": "l", "namespace": "default"}, "spec": spec})
        await served.wait("pod/l-0", "jsonpath={.status.phase}=Pending")
        await served.wait("statefulset/s", "jsonpath={.status.replicas}=3")
        async with httpx.AsyncClient(base_url=served.listener.url) as client:
            page = (await client.get("/metrics")).text.splitlines()
    name = "statefulset_controller_statefulset_unavailability_violation"
    labels = 'pod_management_policy="Parallel",statefulset_name="s",statefulset_namespace="default"'
    (violations,) = (line for line in page if line.startswith(f"{name}{{{labels}}} "))
    assert float(violations.split()[-1]) >= 1
    assert "# TYPE statefulset_controller_stale_sync_skips_total counter" in page
    assert 'workqueue_depth{name="statefulset"} 0.0' in page
    for operator in ("leaderworkerset", "pod"):
        (done,) = (line for line in page if line.startswith(f'controller_runtime_reconcile_total{{controller="{operator}",result="success"}}'))
        assert float(done.split()[-1]) >= 1
        assert sum(line.startswith(f'workqueue_depth{{name="{operator}"}}') for line in page) == 1
        assert f'controller_runtime_active_workers{{controller="{operator}"}} 0.0' in page
        assert f'controller_runtime_reconcile_total{{controller="{operator}",result="requeue"}} 0.0' in page
    assert 'controller_runtime_max_concurrent_reconciles{controller="leaderworkerset"} 1.0' in page


async def test_retry_after(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """An interceptor can answer instead of the server; the time to wait is also a header."""

    async def busy(request: web.BaseRequest, caller: Caller) -> ApiStatus | None:
        return TooManyRequests("too many requests", details={"retryAfterSeconds": 3}) if request.method == "POST" else None

    served.facade.interceptors.append(busy)
    answer = await http.post("/api/v1/namespaces", json={"metadata": {"name": "a"}})
    assert (answer.status_code, answer.headers["Retry-After"], answer.json()["reason"]) == (429, "3", "TooManyRequests")
    assert (await http.get("/api/v1/namespaces")).status_code == 200


async def test_a_future_revision_is_waited_for(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """A read at a revision that is about to happen waits for it."""
    wanted = served.store.revision + 1
    read = asyncio.ensure_future(http.get("/api/v1/namespaces/default", params={"resourceVersion": str(wanted)}))
    while not served.store.awaited:  # noqa: ASYNC110  it waits inside the server, where no event tells
        await asyncio.sleep(0)
    await http.post("/api/v1/namespaces", json={"metadata": {"name": "a"}})
    assert (await read).status_code == 200


async def test_discovery_revalidates(http: httpx.AsyncClient) -> None:
    """Aggregated discovery has a tag under which it need not be sent again."""
    headers = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    first = await http.get("/apis", headers=headers)
    assert first.headers["Content-Type"].endswith("as=APIGroupDiscoveryList")
    assert (await http.get("/apis", headers={**headers, "If-None-Match": first.headers["ETag"]})).status_code == 304


async def test_head(http: httpx.AsyncClient) -> None:
    """HEAD is GET without the body."""
    answer = await http.head("/api/v1/namespaces/default")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    "query,agent,pretty",
    [
        ("", "", False),
        ("?pretty=true", "", True),
        ("?pretty=0", "curl/8", False),
        ("", "curl/8", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("", "kubectl", False),
    ],
)
async def test_pretty(http: httpx.AsyncClient, query: str, agent: str, pretty: bool) -> None:
    """JSON is indented where a parameter or a browser asks for it, refusals and documents included; otherwise it ends with a newline."""
    for path in ("/api/v1/namespaces/default", "/api/v1/namespaces", "/api/v1/namespaces/nope", "/apis/batch/v1"):
        text = (await http.get(f"{path}{query}", headers={"User-Agent": agent})).text
        assert (text.startswith('{\n  "'), text.endswith("\n")) == (pretty, not pretty), path


async def test_documents_for_people(http: httpx.AsyncClient) -> None:
    """The version and the list of paths are indented for everybody."""
    for path in ("/version", "/"):
        assert (await http.get(path)).text.startswith('{\n  "')


async def test_form_of_yaml(http: httpx.AsyncClient) -> None:
    """YAML has sorted keys, double quotes where a text needs some, and no references to equal parts."""
    await http.post(
        "/api/v1/namespaces/default/configmaps", json={"metadata": {"name": "y"}, "data": {"a": "1", "b": "plain", "c": "x\ny\n", "y": "n"}}
    )
    text = (await http.get("/api/v1/namespaces/default/configmaps/y", headers={"Accept": "application/yaml"})).text
    assert text.startswith('apiVersion: v1\ndata:\n  a: "1"\n  b: plain\n  c: |\n    x\n    y\n  "y": "n"\nkind: ConfigMap\nmetadata:\n')
    assert "&" not in text


async def test_headers_of_an_answer(http: httpx.AsyncClient) -> None:
    """Every answer has an id for the audit log, the one that a client sends; no library tells its name."""
    first, second = (await http.get("/readyz")).headers, (await http.get("/api/v1/namespaces/nope")).headers
    assert "Server" not in first
    assert first["Audit-Id"] != second["Audit-Id"]
    assert (await http.get("/api/v1/namespaces", headers={"Audit-ID": "mine"})).headers["Audit-Id"] == "mine"


async def test_deadlines(http: httpx.AsyncClient) -> None:
    """A deadline must be a duration, but for a watch, which has none."""
    answer = await http.get("/api/v1/namespaces?timeout=soon")
    text = 'invalid timeout specified in the request URL - time: invalid duration "soon"'
    assert (answer.status_code, answer.json()["message"]) == (400, text)
    assert (await http.get("/api/v1/namespaces?timeout=32s")).status_code == 200
    assert (await http.get("/api/v1/namespaces?timeout=soon&watch=1&timeoutSeconds=1")).status_code == 200


async def test_yaml(http: httpx.AsyncClient) -> None:
    """Who accepts YAML gets YAML, refusals too."""
    yaml = {"Accept": "application/yaml"}
    assert (await http.get("/api/v1/namespaces/default", headers=yaml)).text.startswith("apiVersion: v1\n")
    assert "reason: NotFound" in (await http.get("/api/v1/namespaces/nope", headers=yaml)).text


async def test_openapi_for_kubectl(http: httpx.AsyncClient) -> None:
    """Swagger is there in protobuf, for kubectl, which reads nothing else; another form is not acceptable."""
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = await http.get("/openapi/v2", headers={"Accept": accept}, timeout=60)
    assert answer.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert b"io.k8s.api.core.v1.Pod" in answer.content
    assert (await http.get("/openapi/v2", headers={"Accept": "text/html"})).status_code == 406


def test_swagger_fields() -> None:
    """A document's fields carry gnostic's numbers."""
    document = {"swagger": "2.0", "definitions": {"A": {"type": "string", "x-b": 1}}}
    schema = b"\xb2\x01\x08\x0a\x06string" + b"\xfa\x01\x0a\x0a\x03x-b\x12\x03\x12\x011"
    entry = b"\x0a\x01A\x12" + bytes([len(schema)]) + schema
    definitions = b"\x0a" + bytes([len(entry)]) + entry
    assert encode(document) == b"\x0a\x032.0" + b"\x4a" + bytes([len(definitions)]) + definitions


@pytest.mark.parametrize("path", ["/nope", "/api/v2", "/apis/nope", "/apis/apps/v7"])
async def test_no_page(http: httpx.AsyncClient, path: str) -> None:
    """What is not served is not found."""
    assert (await http.get(path)).status_code == 404


async def test_an_api_of_a_controller(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """What a controller serves of its own stands in discovery after everything else, and is answered in its group's name."""
    group = "visibility.kueue.x-k8s.io"

    def read(request: AggregatedRequest) -> Tree:
        return {"kind": "Summary", "name": request.name}

    known = AggregatedResource("queues", "queue", False, "Summary", subresources=("waiting",))
    before, served.facade.discovery.apis = served.facade.discovery.apis, lambda: (AggregatedApi(group, ("v1",), (known,), read),)
    try:
        assert (await http.get("/apis")).json()["groups"][-1]["name"] == group
        aggregated = await http.get("/apis", headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"})
        assert aggregated.json()["items"][-1]["versions"][0]["resources"][0]["subresources"][0]["subresource"] == "waiting"
        assert (await http.get(f"/apis/{group}/v1")).json()["resources"][0]["verbs"] == []
        assert (await http.get(f"/apis/{group}/v1/queues/q/waiting")).json() == {"kind": "Summary", "name": "q"}
        assert (await http.post(f"/apis/{group}/v1/queues/q/waiting")).status_code == 405
        assert (await http.get(f"/apis/{group}/v1/queues")).status_code == 404
    finally:
        served.facade.discovery.apis = before
    assert (await http.get(f"/apis/{group}/v1")).status_code == 404


@pytest.mark.parametrize(
    "token,text",
    [
        ("a b", "illegal base64 data at input byte 1"),
        ("abcde", "illegal base64 data at input byte 4"),
        ("abc", "invalid character 'i' looking for beginning of value"),
        ("e30", "server does not recognize this encoded version "),
        (encoded({"v": "v2"}), "server does not recognize this encoded version v2"),
        (encoded({"v": "meta.k8s.io/v1", "start": "a"}), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (encoded({"v": "meta.k8s.io/v1", "rv": 5}), "encoded start key empty (version meta.k8s.io/v1)"),
    ],
)
async def test_bad_continue_tokens(http: httpx.AsyncClient, token: str, text: str) -> None:
    """A token that the server did not make is refused with what is wrong about it."""
    answer = await http.get("/api/v1/namespaces", params={"limit": 1, "continue": token})
    assert (answer.status_code, answer.json()["message"]) == (400, f"continue key is not valid: {text}")


async def test_reviews(http: httpx.AsyncClient) -> None:
    """An answer names its kind, whether the question did or not; no question can be asked for as a Table."""
    path, spec = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    answer = await http.post(path, json={"spec": spec})
    head = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
    assert list(answer.json().items()) == [*head.items(), ("spec", spec), ("status", {"allowed": True})]
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    assert (await http.post(path, json={"spec": spec}, headers=table)).status_code == 406
    token = "/api/v1/namespaces/default/serviceaccounts/default/token"
    assert (await http.post(token, json={"spec": {}}, headers=table)).status_code == 406


async def test_table_of_a_scale(http: httpx.AsyncClient) -> None:
    """`kubectl get --subresource=scale` shows wanted and present replicas, and the age of the object."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await http.post("/apis/apps/v1/namespaces/default/replicasets", json={"metadata": {"name": "r"}, "spec": spec})
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = (await http.get("/apis/apps/v1/namespaces/default/replicasets/r/scale", headers=accept)).json()
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["r", 3, 0]
    assert table["rows"][0]["cells"][3].endswith("s")
