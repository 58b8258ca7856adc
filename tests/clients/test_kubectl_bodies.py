"""What kubectl sends over the wire: its protobuf bodies decode to what its own dry run prints."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kubemini.machinery import protobuf
from kubemini.machinery.schema.builtin import builtin_schemas

PROTOBUF = "application/vnd.kubernetes.protobuf"

COMMANDS = {
    "configmap": ["configmap", "c", "--from-literal=a=1", "--from-literal=b="],
    "secret": ["secret", "generic", "s", "--from-literal=a=1"],
    "tls secret": ["secret", "docker-registry", "d", "--docker-username=u", "--docker-password=p", "--docker-server=s"],
    "namespace": ["namespace", "n"],
    "service account": ["serviceaccount", "a"],
    "job": ["job", "j", "--image=busybox", "--", "sh", "-c", "true"],
    "cron job": ["cronjob", "j", "--image=busybox", "--schedule=*/1 * * * *"],
    "deployment": ["deployment", "d", "--image=nginx", "--image=busybox", "--replicas=0", "--port=80"],
    "service": ["service", "clusterip", "s", "--tcp=80:8080", "--tcp=443"],
    "node port": ["service", "nodeport", "s", "--tcp=80:8080", "--node-port=30080"],
    "external name": ["service", "externalname", "s", "--external-name=example.com"],
    "role": ["role", "r", "--verb=get,list", "--resource=pods", "--resource-name=x"],
    "role binding": ["rolebinding", "r", "--clusterrole=view", "--user=u", "--group=g", "--serviceaccount=ns:a"],
    "cluster role": ["clusterrole", "r", "--verb=get", "--non-resource-url=/healthz"],
    "disruption budget": ["poddisruptionbudget", "p", "--selector=a=b", "--min-available=50%"],
    "quota": ["quota", "q", "--hard=cpu=1,memory=1Gi,pods=2", "--scopes=BestEffort"],
    "priority class": ["priorityclass", "p", "--value=-5", "--description=d", "--preemption-policy=Never"],
    "ingress": ["ingress", "i", "--class=c", "--rule=example.com/path*=svc:8080,tls=t", "--annotation=a=b"],
}


@dataclass(slots=True)
class Recorder:
    """A server that answers every POST with the object that it was sent, and keeps the bodies."""

    url: str
    bodies: list[tuple[str, bytes]] = field(default_factory=list)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A recording server on loopback."""
    record: Recorder

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            record.bodies.append((self.headers["Content-Type"], body))
            answer = protobuf.decode(body, builtin_schemas()) if self.headers["Content-Type"] == PROTOBUF else json.loads(body)
            self.answer(201, answer)

        def do_GET(self) -> None:
            self.answer(200, DISCOVERY.get(self.path.partition("?")[0], {}))

        def answer(self, code: int, tree: Any) -> None:
            data = json.dumps(tree).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        record = Recorder(f"http://127.0.0.1:{server.server_address[1]}")
        Thread(target=server.serve_forever, daemon=True).start()
        yield record
        server.shutdown()


DISCOVERY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]}],
    },
}


def kubectl(path: Path, recorder: Recorder, home: Path, *args: str) -> str:
    """Run kubectl against the recorder; return what it prints."""
    command = [str(path), "--kubeconfig", "/dev/null", "--server", recorder.url, "--namespace", "default", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={"HOME": str(home)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_zeros(tree: Any) -> Any:
    """Return a tree without nulls and without what is empty."""
    if isinstance(tree, dict):
        return {key: each for key, value in tree.items() if (each := without_zeros(value)) not in (None, {}, [])}
    return [without_zeros(each) for each in tree] if isinstance(tree, list) else tree


@pytest.mark.clients
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_bodies_say_what_the_dry_run_prints(command: list[str], recorder: Recorder, binaries: dict[str, Path], tmp_path: Path) -> None:
    """The body of `kubectl create` is protobuf, and decodes to the JSON that `--dry-run=client` prints."""
    printed = json.loads(kubectl(binaries["kubectl"], recorder, tmp_path, "create", "--dry-run=client", "-o", "json", *command))
    assert recorder.bodies == []
    kubectl(binaries["kubectl"], recorder, tmp_path, "create", *command)
    [(media, body)] = recorder.bodies
    assert media == PROTOBUF
    schemas = builtin_schemas("1.37")
    sent = protobuf.decode(body, schemas)
    assert without_zeros(sent) == without_zeros(printed)
    group, _, version = printed["apiVersion"].rpartition("/")
    codec = schemas.codec(group, version, printed["kind"])
    assert codec.decode(sent, validation="Strict").tree == codec.decode(printed, validation="Strict").tree
