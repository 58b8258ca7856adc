"""Bad input is told apart, and told clearly: each with the code and the words of the real server."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from kubemini.machinery.errors import ConfigError
from kubemini.server.http.serving import write_kubeconfig
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
