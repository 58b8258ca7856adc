"""Bad input is told apart, and told clearly: each with the code and the words of the real server."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from kubemini.machinery.errors import ConfigError
from kubemini.server.http.serving import check_kubeconfig, write_kubeconfig
from kubemini.serving import ServedCluster

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def status(answer: httpx.Response) -> dict[str, Any]:
    """Return a failure as a Status, which must say the code of its answer."""
    tree: dict[str, Any] = answer.json()
    assert (tree["kind"], tree["status"], tree["code"]) == ("Status", "Failure", answer.status_code)
    return tree


async def test_malformed_yaml(http: httpx.AsyncClient) -> None:
    """A body that is no YAML is a bad request."""
    answer = await http.post(CONFIG_MAPS, content="a: [", headers={"Content-Type": "application/yaml"})
    assert answer.status_code == 400
    assert status(answer)["reason"] == "BadRequest"


async def test_malformed_json(http: httpx.AsyncClient) -> None:
    """A body that is no JSON is a bad request."""
    answer = await http.post(CONFIG_MAPS, content="{", headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert status(answer)["reason"] == "BadRequest"


async def test_unknown_kind(http: httpx.AsyncClient) -> None:
    """A kind that the URL does not speak of is named."""
    answer = await http.post(CONFIG_MAPS, json={"apiVersion": "v1", "kind": "Gizmo", "metadata": {"name": "a"}})
    assert answer.status_code == 400
    assert "Gizmo" in status(answer)["message"]


async def test_unknown_resource(http: httpx.AsyncClient) -> None:
    """A resource that is not served is no page."""
    assert (await http.get("/apis/example.com/v1/gizmos")).status_code == 404


@pytest.mark.parametrize("validation, code, warned", [("Strict", 400, False), ("Warn", 201, True), ("Ignore", 201, False)])
async def test_unknown_field(http: httpx.AsyncClient, validation: str, code: int, *, warned: bool) -> None:
    """An unknown field is refused, warned of, or dropped, as fieldValidation says."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "bogus": 1}
    answer = await http.post(CONFIG_MAPS, params={"fieldValidation": validation}, json=body)
    assert answer.status_code == code
    assert ("Warning" in answer.headers) is warned
    text = answer.headers.get("Warning", "") if warned else answer.text
    assert ("bogus" in text) is (validation != "Ignore")


async def test_wrong_type(http: httpx.AsyncClient) -> None:
    """A value of the wrong type is told with the field and the type that it must have."""
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"activeDeadlineSeconds": "soon", "containers": []}}
    answer = await http.post(PODS, json=body)
    assert answer.status_code == 400
    assert "spec.activeDeadlineSeconds of type int64" in status(answer)["message"]


async def test_missing_field(http: httpx.AsyncClient) -> None:
    """A missing field is required by its path."""
    answer = await http.post(PODS, json={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}})
    assert answer.status_code == 422
    cause = status(answer)["details"]["causes"][0]
    assert cause == {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers[0].image"}


async def test_stale_resource_version(http: httpx.AsyncClient) -> None:
    """An update from an old state is a conflict, and changes nothing."""
    first = (await http.post(CONFIG_MAPS, json={"metadata": {"name": "a"}, "data": {"a": "1"}})).json()
    await http.put(f"{CONFIG_MAPS}/a", json={**first, "data": {"a": "2"}})
    answer = await http.put(f"{CONFIG_MAPS}/a", json={**first, "data": {"a": "3"}})
    assert answer.status_code == 409
    assert "the object has been modified" in status(answer)["message"]
    assert (await http.get(f"{CONFIG_MAPS}/a")).json()["data"] == {"a": "2"}


@pytest.mark.parametrize(
    "text, problem",
    [
        ("abc", "invalid syntax"),
        ("²", "invalid syntax"),
        ("１", "invalid syntax"),
        ("18446744073709551616", "value out of range"),
        ("9" * 5000, "value out of range"),
    ],
)
async def test_a_resource_version_is_a_number_of_64_bits(http: httpx.AsyncClient, text: str, problem: str) -> None:
    """A list answers 400, a watch and a read 500, in Go's words; no text of digits leads to another error."""
    words = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {problem}'
    await http.post(CONFIG_MAPS, json={"metadata": {"name": "a"}})
    listed = await http.get(CONFIG_MAPS, params={"resourceVersion": text})
    assert (listed.status_code, status(listed)["message"]) == (400, f"invalid resource version: {words}")
    for path, more in ((f"{CONFIG_MAPS}/a", {}), (CONFIG_MAPS, {"watch": "true"})):
        answer = await http.get(path, params={"resourceVersion": text, **more})
        assert (answer.status_code, status(answer)["message"]) == (500, words)


async def test_oversized_body(http: httpx.AsyncClient) -> None:
    """A body over three mebibytes is too large."""
    answer = await http.post(CONFIG_MAPS, content=b"x" * (3 * 1024 * 1024 + 1), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert status(answer)["message"] == "Request entity too large: limit is 3145728"


@pytest.mark.parametrize(
    "method, path, code",
    [
        ("POST", f"{PODS}/a", 405),
        ("PUT", PODS, 405),
        ("DELETE", "/api/v1/pods", 405),
        ("GET", "/api/v1/pods/a", 404),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
    ],
)
async def test_wrong_method_or_place(http: httpx.AsyncClient, method: str, path: str, code: int) -> None:
    """A method that a path does not have is not allowed; an object needs its namespace."""
    assert (await http.request(method, path)).status_code == code


async def test_port_in_use(served: ServedCluster) -> None:
    """A taken port is an error of the configuration that names the option and the way out."""
    second = ServedCluster(tls=False, port=served.listener.port)
    with pytest.raises(ConfigError, match=rf"--port {served.listener.port}: cannot listen on .*; choose another port, or 0 for a free one"):
        await second.start()


def test_unwritable_kubeconfig(tmp_path: Path) -> None:
    """A kubeconfig that cannot be written is an error that names it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--kubeconfig .*cannot be written"):
        write_kubeconfig(tmp_path / "file" / "config", {})


def test_kubeconfig_is_private(tmp_path: Path) -> None:
    """A kubeconfig holds a secret: its owner alone may read it."""
    write_kubeconfig(tmp_path / "config", {"kind": "Config"})
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o600


def test_devices_are_written_to(tmp_path: Path) -> None:
    """A kubeconfig that goes to a pipe or device does not replace it by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_kubeconfig(pipe, {"kind": "Config"})
        assert os.read(reading, 100) == b"kind: Config\n"
    finally:
        os.close(reading)
    assert pipe.is_fifo()


def test_links_are_followed(tmp_path: Path) -> None:
    """A kubeconfig behind a link is written where the link leads, and the link stays."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_kubeconfig(tmp_path / "link", {"kind": "Config"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "kind: Config\n"


@pytest.mark.parametrize(
    "text, words",
    [
        ("clusters: [{name: prod, cluster: {server: x}}]", "holds other clusters"),
        ("just notes", "is no kubeconfig"),
        ("a: [", "is no kubeconfig"),
        ("clusters: 5", "is no kubeconfig"),
    ],
)
def test_foreign_files_are_not_overwritten(tmp_path: Path, text: str, words: str) -> None:
    """A file that kubemini has not written is not taken for its kubeconfig."""
    (tmp_path / "config").write_text(text)
    with pytest.raises(ConfigError, match=words):
        check_kubeconfig(tmp_path / "config")


@pytest.mark.parametrize("text", ["", "clusters: []", "clusters: [{name: kubemini}]"])
def test_own_files_are_overwritten(tmp_path: Path, text: str) -> None:
    """What an earlier run left, an empty file and no file at all are fine."""
    (tmp_path / "config").write_text(text)
    check_kubeconfig(tmp_path / "config")
    check_kubeconfig(tmp_path / "missing")


@pytest.mark.parametrize(
    "body", ["[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, '{"metadata":{"name":"a"},"x":' + '{"a":' * 600 + "1" + "}" * 601]
)
async def test_too_deep(http: httpx.AsyncClient, body: str) -> None:
    """A body that nests without end is a bad request, not an internal error."""
    answer = await http.post(CONFIG_MAPS, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "exceeded max depth" in status(answer)["message"]


async def test_yaml_bomb(http: httpx.AsyncClient) -> None:
    """Aliases of aliases that would grow to a billion nodes are refused."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]", *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))]
    answer = await http.post(CONFIG_MAPS, content="\n".join(lines), headers={"Content-Type": "application/yaml"})
    assert answer.status_code == 400
    assert "document contains excessive aliasing" in status(answer)["message"]


async def test_long_selectors(http: httpx.AsyncClient) -> None:
    """A URL may be as long as with the real server: selectors of thousands of values are answered."""
    values = ",".join(f"v{n}" for n in range(8_000))
    answer = await http.get(CONFIG_MAPS, params={"labelSelector": f"x in ({values})"})
    assert answer.status_code == 200
    assert answer.json()["items"] == []


async def test_long_headers(http: httpx.AsyncClient) -> None:
    """So may a header: tokens of identity providers are longer than 8 KiB."""
    assert (await http.get(CONFIG_MAPS, headers={"X-Token": "a" * 100_000})).status_code == 200


async def raw(served: ServedCluster, request: str) -> bytes:
    """Send a text to the server; return all it answers."""
    reader, writer = await asyncio.open_connection(served.listener.host, served.listener.port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    return answer


async def test_watch_of_http_1_0(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """A client of HTTP/1.0 gets a watch without chunks, up to the end of the connection."""
    await http.post(CONFIG_MAPS, json={"metadata": {"name": "a"}})
    answer = await raw(served, f"GET {CONFIG_MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da HTTP/1.0\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200")
    assert b"chunked" not in head.lower()
    assert body.startswith(b'{"type":"ADDED","object":{')
    assert body.endswith(b"}}\n")


async def test_garbage(served: ServedCluster, caplog: pytest.LogCaptureFixture) -> None:
    """A client that speaks no HTTP is answered 400, and is no error of the server."""
    with caplog.at_level(logging.INFO):
        assert (await raw(served, "GARBAGE\r\n\r\n")).startswith(b"HTTP/1.0 400")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_unknown_pods() -> None:
    """What pods do is one of the two that there are."""
    with pytest.raises(ConfigError, match="pods: unknown 'sometimes'"):
        ServedCluster(pods="sometimes")


async def test_patterns_that_could_be_read_in_many_ways() -> None:
    """A schema's pattern or a rule's on which a back-tracking matcher would never end is answered at once."""
    properties = {
        "a": {"type": "string", "pattern": "^(a+)+$"},
        "b": {"type": "string", "maxLength": 100, "x-kubernetes-validations": [{"rule": "self.matches('^(b+)+$')"}]},
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}}
    names = {"kind": "Foo", "plural": "foos", "singular": "foo", "listKind": "FooList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.example.com"}, "spec": spec}
    async with ServedCluster(tls=False, controllers="namespaces,service-accounts,customresources", seed=1) as served:
        await served.apply(crd)
        await served.wait("crd/foos.example.com", "condition=Established")
        async with httpx.AsyncClient(base_url=served.listener.url) as http:
            for field in ("a", "b"):
                body = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": {field: field * 60 + "!"}}
                answer = await http.post("/apis/example.com/v1/namespaces/default/foos", json=body)
                assert answer.status_code == 422
                assert f"spec.{field}" in status(answer)["message"]


@pytest.mark.parametrize("named", [False, True])
async def test_generated_names_that_are_taken(http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, *, named: bool) -> None:
    """Who asks for a generated name hears of the one that was taken last, and to try again; also where a name stands beside the prefix."""
    monkeypatch.setattr("kubemini.server.objectmeta.generated_name", lambda prefix, _: f"{prefix}aaaaa")
    body = {"metadata": {"generateName": "a-", **({"name": "a-aaaaa"} if named else {}), "finalizers": ["example.com/x"]}}
    first, second = await http.post(CONFIG_MAPS, json=body), await http.post(CONFIG_MAPS, json=body)
    assert (first.status_code, second.status_code, second.headers["Retry-After"]) == (201, 409, "1")
    text = 'configmaps "a-aaaaa" already exists, the server was not able to generate a unique name for the object'
    assert (status(second)["message"], status(second)["details"]) == (text, {"name": "a-aaaaa", "kind": "configmaps", "retryAfterSeconds": 1})
    await http.delete(f"{CONFIG_MAPS}/a-aaaaa")
    assert status(await http.post(CONFIG_MAPS, json=body))["message"] == f"object is being deleted: {text}"
