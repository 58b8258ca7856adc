"""Logs, exec, attach and the ways into pods."""

import io
import json
import tarfile
from typing import Any

import aiohttp
import httpx
import pytest

from kubemini.api.resources import CONFIG_MAPS, PODS
from kubemini.serving import ServedCluster

POD = "/api/v1/namespaces/default/pods/p"
STARTED = "2026-01-01T00:00:00Z"


def state(**of: Any) -> dict[str, Any]:
    """Return a pod's status with its only container in a state."""
    return {
        "phase": "Running",
        "podIP": "10.0.0.9",
        "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": of}],
    }


@pytest.fixture
async def pod(served: ServedCluster) -> dict[str, Any]:
    """A running pod, with a variable from its field, one from a ConfigMap, and a mounted file."""
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}, "data": {"a.txt": "hello\n", "K": "v"}}
    await served.client.create(CONFIG_MAPS, data)
    spec = {
        "nodeName": "n",
        "volumes": [{"name": "m", "configMap": {"name": "m"}}],
        "containers": [
            {
                "name": "c",
                "image": "i",
                "volumeMounts": [{"name": "m", "mountPath": "/etc/m"}],
                "env": [
                    {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "K"}}},
                    {"name": "BOTH", "value": "$(NAME)-$(KEY)"},
                ],
            }
        ],
    }
    await served.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    return await status(served, running={"startedAt": STARTED})


async def status(served: ServedCluster, **of: Any) -> dict[str, Any]:
    """Report a state of the pod's container."""
    return await served.client.patch(PODS, "p", {"status": state(**of)}, namespace="default", subresource="status")


async def run(served: ServedCluster, *command: str, stdin: str | None = None, **more: str) -> tuple[str, str, dict[str, Any]]:
    """Run a command as kubectl exec does; return both outputs and the Status at the end."""
    out, err, status = await piped(served, *command, stdin=None if stdin is None else stdin.encode(), **more)
    return out.decode(), err, status


async def piped(
    served: ServedCluster, *command: str, stdin: bytes | None = None, protocol: str = "v5.channel.k8s.io", **more: str
) -> tuple[bytes, str, dict[str, Any]]:
    """The same with bytes."""
    query = [("command", word) for word in command] + [("stdout", "true"), ("stderr", "true"), *more.items()]
    if stdin is not None:
        query.append(("stdin", "true"))
    outputs = {1: b"", 2: b"", 3: b""}
    address = f"{served.listener.url}{POD}/exec"
    async with aiohttp.ClientSession() as session, session.ws_connect(address, params=query, protocols=[protocol]) as socket:
        if stdin is not None:
            await socket.send_bytes(b"\0" + stdin)
            await socket.send_bytes(bytes([255, 0]))
        async for message in socket:
            outputs[message.data[0]] += message.data[1:]
    return outputs[1], outputs[2].decode(), json.loads(outputs[3])


@pytest.mark.usefixtures("pod")
async def test_variables(served: ServedCluster) -> None:
    """A container sees the variables of its spec, references resolved."""
    out, _, end = await run(served, "sh", "-c", 'echo "$NAME $KEY $BOTH"')
    assert (out, end["status"]) == ("p v p-v\n", "Success")


@pytest.mark.usefixtures("pod")
async def test_files(served: ServedCluster) -> None:
    """A container sees the files of its volumes."""
    out, err, end = await run(served, "cat", "/etc/m/a.txt", "/etc/nope")
    assert (out, err) == ("hello\n", "cat: /etc/nope: No such file or directory\n")
    assert end["details"] == {"causes": [{"reason": "ExitCode", "message": "1"}]}


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    "script, out, code",
    [
        ("true && echo yes || echo no", "yes\n", 0),
        ("false && echo yes || echo no", "no\n", 0),
        ("exit 7; echo never", "", 7),
        ("A=1; echo '$A' \"$A\" ${B:-2}", "$A 1 2\n", 0),
        ("cd /etc/m; ls; pwd", "K\na.txt\n/etc/m\n", 0),
        ("nothing", "", 127),
        ("echo a | cat", "", 2),
    ],
)
async def test_scripts(served: ServedCluster, script: str, out: str, code: int) -> None:
    """The shell knows lists, quotes and variables, and says what it does not know."""
    written, err, end = await run(served, "sh", "-c", script)
    found = int(end["details"]["causes"][0]["message"]) if end["status"] == "Failure" else 0
    assert (written, found) == (out, code)
    assert bool(err) is (code in (2, 127))


@pytest.mark.usefixtures("pod")
async def test_standard_input(served: ServedCluster) -> None:
    """What the client sends is read to its end."""
    assert (await run(served, "cat", stdin="one\ntwo"))[0] == "one\ntwo"
    assert (await run(served, "sh", stdin="hostname\nexit 3\n"))[2]["details"]["causes"][0]["message"] == "3"


@pytest.mark.usefixtures("pod")
async def test_program_that_is_not_there(served: ServedCluster) -> None:
    """A program that is not simulated is not found, as in an image that lacks it."""
    end = (await run(served, "nvidia-smi"))[2]
    assert 'exec: "nvidia-smi": executable file not found in $PATH' in end["message"]


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    "path, code, text",
    [
        ("exec?command=ls&stdout=true", 400, "Upgrade request required"),
        ("exec?stdout=true", 400, "you must specify at least 1 command"),
        ("exec?command=ls&container=x&stdout=true", 400, "container x is not valid for pod p"),
        ("portforward", 400, "Upgrade request required"),
        ("proxy/", 503, "dial tcp 10.0.0.9:80: connect: connection refused"),
        ("log?container=x", 400, "container x is not valid for pod p"),
    ],
)
async def test_clear_refusals(http: httpx.AsyncClient, path: str, code: int, text: str) -> None:
    """What cannot be had is refused at once, and said."""
    answer = await http.get(f"{POD}/{path}")
    assert (answer.status_code, text in answer.json()["message"]) == (code, True)


@pytest.mark.usefixtures("pod")
async def test_spdy_is_refused(http: httpx.AsyncClient) -> None:
    """Old clients are told what to use."""
    answer = await http.post(f"{POD}/exec?command=ls&stdout=true", headers={"Upgrade": "SPDY/3.1", "Connection": "Upgrade"})
    assert (answer.status_code, "SPDY is not served" in answer.json()["message"]) == (500, True)


async def test_exec_in_a_container_that_does_not_run(served: ServedCluster, http: httpx.AsyncClient, pod: dict[str, Any]) -> None:
    """There is nothing to exec into when the container has ended."""
    await status(served, running=None, terminated={"exitCode": 0, "startedAt": STARTED, "finishedAt": STARTED})
    answer = await http.get(f"{POD}/exec?command=ls&stdout=true")
    assert (answer.status_code, answer.json()["message"]) == (404, 'container not found ("c")')


@pytest.mark.usefixtures("pod")
async def test_log(http: httpx.AsyncClient) -> None:
    """A log is plain text."""
    answer = await http.get(f"{POD}/log")
    assert (answer.text, answer.headers["Content-Type"]) == ("c: started on n\n", "text/plain; charset=utf-8")


@pytest.mark.usefixtures("pod")
async def test_log_is_followed_to_the_end(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """A followed log shows what is written, and ends with its container."""
    async with http.stream("GET", f"{POD}/log", params={"follow": "true"}) as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "c: started on n"
        await served.client.patch(PODS, "p", {"metadata": {"annotations": {"kubemini.dev/log": "step 1"}}}, namespace="default")
        assert await anext(lines) == "step 1"
        await status(served, running=None, terminated={"exitCode": 3, "startedAt": STARTED, "finishedAt": STARTED})
        assert [line async for line in lines] == ["c: exited with code 3"]


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    "command, out, code",
    [
        (("nslookup", "kubernetes.default"), "Name:\tkubernetes.default.svc.cluster.local\nAddress: 10.96.0.1\n", 0),
        (("nslookup", "nobody"), "** server can't find nobody: NXDOMAIN\n", 1),
        (("getent", "hosts", "kubernetes"), "10.96.0.1       kubernetes.default.svc.cluster.local\n", 0),
        (("getent", "hosts", "nobody"), "", 2),
    ],
)
async def test_names(served: ServedCluster, command: tuple[str, ...], out: str, code: int) -> None:
    """Programs in pods ask the cluster's DNS, through the search path of their namespace."""
    written, _, end = await run(served, *command)
    found = int(end["details"]["causes"][0]["message"]) if end["status"] == "Failure" else 0
    assert found == code
    assert out in written


# ------------------------------------------------------------------------------------------------ files


def packed(**files: bytes) -> bytes:
    """Return an archive as a client pipes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def content(archive: bytes) -> dict[str, bytes]:
    """Return the files of an archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {each.name: opened.extractfile(each).read() for each in opened if each.isfile()}  # type: ignore[union-attr]


async def test_files_are_copied_out(served: ServedCluster, pod: dict[str, Any]) -> None:
    """`kubectl cp` from a pod: tar packs files and folders as Kubernetes put them there, and says what is missing."""
    out, err, status = await piped(served, "tar", "cf", "-", "/etc/m")
    assert (content(out), err, status["status"]) == (
        {"etc/m/a.txt": b"hello\n", "etc/m/K": b"v"},
        "tar: Removing leading `/' from member names\n",
        "Success",
    )
    _, err, status = await piped(served, "tar", "cf", "-", "nope")
    assert (err.splitlines()[0], status["details"]["causes"][0]["message"]) == ("tar: nope: Cannot stat: No such file or directory", "2")


async def test_files_are_copied_in(served: ServedCluster, pod: dict[str, Any]) -> None:
    """`kubectl cp` to a pod: what is unpacked stays for later commands, is gone when the container restarts, and volumes of objects are read-only."""
    assert (await run(served, "test", "-d", "/tmp"))[2]["status"] == "Success"
    assert (await run(served, "test", "-d", "/tmp/x"))[2]["status"] == "Failure"
    await piped(served, "tar", "-xmf", "-", "-C", "/tmp", stdin=packed(x=b"\x00\xff", **{"deep/y": b"why"}))
    assert content((await piped(served, "tar", "cf", "-", "-C", "/tmp", "x", "deep"))[0]) == {"x": b"\x00\xff", "deep/y": b"why"}
    assert (await run(served, "cat", "/tmp/deep/y"))[0] == "why"
    _, err, status_ = await piped(served, "tar", "-xmf", "-", "-C", "/etc/m", stdin=packed(z=b"1"))
    assert (err.splitlines()[0], status_["status"]) == ("tar: z: Cannot open: Read-only file system", "Failure")
    again = state(running={"startedAt": STARTED})
    again["containerStatuses"][0]["restartCount"] = 1
    await served.client.patch(PODS, "p", {"status": again}, namespace="default", subresource="status")
    assert (await run(served, "cat", "/tmp/deep/y"))[1] == "cat: /tmp/deep/y: No such file or directory\n"


async def test_folders_and_files_by_hand(served: ServedCluster, pod: dict[str, Any]) -> None:
    """mkdir, tee, rm, test and ls agree on what is there."""
    await run(served, "tee", "/tmp/t", stdin="one")
    script = "mkdir -p /a/b && [ -d /a/b ] && echo made; test -f /tmp/t && cat /tmp/t; echo; rm /tmp/t; ls /tmp/t; rm -r /a; test -e /a || echo gone"
    out, err, _ = await run(served, "sh", "-c", script)
    assert (out, err) == ("made\none\ngone\n", "ls: /tmp/t: No such file or directory\n")


async def test_containers_share_an_empty_dir(served: ServedCluster) -> None:
    """What one container writes into an emptyDir another finds, where it has mounted it."""
    volumes = [{"name": "e", "emptyDir": {}}]
    containers = [
        {"name": name, "image": "i", "volumeMounts": [{"name": "e", "mountPath": path}]} for name, path in (("c", "/data"), ("d", "/shared"))
    ]
    spec = {"nodeName": "n", "volumes": volumes, "containers": containers}
    await served.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    running = {"phase": "Running"}
    await served.client.patch(PODS, "p", {"status": running}, namespace="default", subresource="status")
    await run(served, "tee", "/data/f", stdin="shared", container="c")
    assert (await run(served, "cat", "/shared/f", container="d"))[0] == "shared"
