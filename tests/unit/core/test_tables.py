"""The cells that `kubectl get` shows."""

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.runtime.env import EPOCH, to_stamp
from kubemini.server.kinds import tables
from kubemini.server.strategy import Table

NOW = EPOCH + 600


def at(seconds: float) -> str:
    """Return a stamp some seconds before now."""
    return to_stamp(NOW - seconds)


def row(table: Table, obj: Tree) -> list[Any]:
    """Return the cells of an object made 100 seconds ago."""
    metadata = {"name": "x", "creationTimestamp": at(100), **obj.get("metadata", {})}
    cells = table.row({**obj, "metadata": metadata}, NOW)
    assert len(cells) == len(table.columns), "a cell for each column"
    return cells


def pod(containers: int = 1, *, inits: list[Tree] | None = None, meta: Tree | None = None, spec: Tree | None = None, **status: Any) -> Tree:
    """Return a pod of some state."""
    listed = [{"name": f"c{index}"} for index in range(containers)]
    return {"metadata": meta or {}, "spec": {"containers": listed, "initContainers": inits or [], **(spec or {})}, "status": status}


def status(name: str = "c0", *, ready: bool = False, restarts: int = 0, last: str = "", started: bool | None = None, **state: Tree) -> Tree:
    """Return the status of a container."""
    found: Tree = {"name": name, "ready": ready, "restartCount": restarts, "state": state, "lastState": {}}
    if last:
        found["lastState"] = {"terminated": {"finishedAt": last}}
    return found if started is None else {**found, "started": started}


RUNNING: Tree = {"startedAt": at(90)}
READY = [{"type": "Ready", "status": "True"}]
PODS: dict[str, tuple[Tree, list[Any]]] = {
    "pending": (pod(phase="Pending"), ["0/1", "Pending", "0"]),
    "gated": (
        pod(phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        ["0/1", "SchedulingGated", "0"],
    ),
    "creating": (
        pod(phase="Pending", containerStatuses=[status(waiting={"reason": "ContainerCreating"})]),
        ["0/1", "ContainerCreating", "0"],
    ),
    "running": (
        pod(2, phase="Running", conditions=READY, containerStatuses=[status("c0", ready=True, running=RUNNING), status("c1", running=RUNNING)]),
        ["1/2", "Running", "0"],
    ),
    "restarted": (
        pod(phase="Running", containerStatuses=[status(ready=True, restarts=3, last=at(50), running=RUNNING)]),
        ["1/1", "Running", "3 (50s ago)"],
    ),
    "crash loop": (
        pod(phase="Running", containerStatuses=[status(restarts=1, last=at(5), waiting={"reason": "CrashLoopBackOff"})]),
        ["0/1", "CrashLoopBackOff", "1 (5s ago)"],
    ),
    "completed": (pod(phase="Succeeded", containerStatuses=[status(terminated={"exitCode": 0, "reason": "Completed"})]), ["0/1", "Completed", "0"]),
    "error": (pod(phase="Failed", containerStatuses=[status(terminated={"exitCode": 1, "reason": "Error"})]), ["0/1", "Error", "0"]),
    "exit code": (pod(phase="Failed", containerStatuses=[status(terminated={"exitCode": 42})]), ["0/1", "ExitCode:42", "0"]),
    "signal": (pod(phase="Failed", containerStatuses=[status(terminated={"exitCode": 137, "signal": 9})]), ["0/1", "Signal:9", "0"]),
    "evicted": (pod(phase="Failed", reason="Evicted"), ["0/1", "Evicted", "0"]),
    "one of two completed": (
        pod(
            2,
            phase="Running",
            conditions=READY,
            containerStatuses=[status("c0", terminated={"exitCode": 0, "reason": "Completed"}), status("c1", ready=True, running=RUNNING)],
        ),
        ["1/2", "Running", "0"],
    ),
    "one of two completed, other not ready to serve": (
        pod(
            2,
            phase="Running",
            containerStatuses=[status("c0", terminated={"exitCode": 0, "reason": "Completed"}), status("c1", ready=True, running=RUNNING)],
        ),
        ["1/2", "NotReady", "0"],
    ),
    "terminating": (
        pod(meta={"deletionTimestamp": at(1)}, phase="Running", containerStatuses=[status(running=RUNNING)]),
        ["0/1", "Terminating", "0"],
    ),
    "ended while terminating": (pod(meta={"deletionTimestamp": at(1)}, phase="Failed"), ["0/1", "Failed", "0"]),
    "node lost": (pod(meta={"deletionTimestamp": at(1)}, phase="Running", reason="NodeLost"), ["0/1", "Unknown", "0"]),
    "initializing": (
        pod(inits=[{"name": "i"}, {"name": "j"}], phase="Pending", initContainerStatuses=[status("i", running=RUNNING), status("j", waiting={})]),
        ["0/1", "Init:0/2", "0"],
    ),
    "second init": (
        pod(
            inits=[{"name": "i"}, {"name": "j"}],
            phase="Pending",
            initContainerStatuses=[status("i", terminated={"exitCode": 0}), status("j", running=RUNNING)],
        ),
        ["0/1", "Init:1/2", "0"],
    ),
    "init failed": (
        pod(inits=[{"name": "i"}], phase="Pending", initContainerStatuses=[status("i", restarts=2, terminated={"exitCode": 1, "reason": "Error"})]),
        ["0/1", "Init:Error", "2"],
    ),
    "init waits": (
        pod(inits=[{"name": "i"}], phase="Pending", initContainerStatuses=[status("i", waiting={"reason": "ImagePullBackOff"})]),
        ["0/1", "Init:ImagePullBackOff", "0"],
    ),
    "init signalled": (
        pod(inits=[{"name": "i"}], phase="Pending", initContainerStatuses=[status("i", terminated={"exitCode": 137, "signal": 9})]),
        ["0/1", "Init:Signal:9", "0"],
    ),
    "init exit code": (
        pod(inits=[{"name": "i"}], phase="Pending", initContainerStatuses=[status("i", terminated={"exitCode": 3})]),
        ["0/1", "Init:ExitCode:3", "0"],
    ),
    "after init": (
        pod(
            inits=[{"name": "i"}],
            phase="Pending",
            initContainerStatuses=[status("i", terminated={"exitCode": 0})],
            containerStatuses=[status(waiting={"reason": "PodInitializing"})],
        ),
        ["0/1", "PodInitializing", "0"],
    ),
    "sidecar counts": (
        pod(
            inits=[{"name": "s", "restartPolicy": "Always"}],
            phase="Running",
            conditions=READY,
            initContainerStatuses=[status("s", ready=True, started=True, restarts=1, running=RUNNING)],
            containerStatuses=[status(ready=True, restarts=2, running=RUNNING)],
        ),
        ["2/2", "Running", "3"],
    ),
}


@pytest.mark.parametrize("state", PODS)
def test_a_pod_shows_one_word_for_its_state(state: str) -> None:
    """Readiness, the word, and restarts."""
    obj, expected = PODS[state]
    assert row(tables.POD, obj)[1:4] == expected


def test_a_pod_shows_where_it_runs() -> None:
    """Wide columns: address, node, nominated node, readiness gates; placeholders where there is none."""
    assert row(tables.POD, pod(phase="Pending"))[4:] == ["100s", "<none>", "<none>", "<none>", "<none>"]
    gates = [{"conditionType": "a/b"}, {"conditionType": "c/d"}]
    conditions = [{"type": "a/b", "status": "True"}, {"type": "c/d", "status": "False"}]
    shown = pod(
        spec={"nodeName": "n", "readinessGates": gates}, phase="Running", podIPs=[{"ip": "10.0.0.1"}], conditions=conditions, nominatedNodeName="m"
    )
    assert row(tables.POD, shown)[5:] == ["10.0.0.1", "n", "m", "1/2"]


def test_rows_of_finished_pods_are_marked() -> None:
    """`kubectl get pods --watch` and printers know them by a condition of the row."""
    assert tables.POD.conditions is not None
    assert tables.POD.conditions(pod(phase="Running")) == []
    assert tables.POD.conditions(pod(phase="Succeeded"))[0]["reason"] == "Succeeded"
    assert tables.POD.conditions(pod(phase="Failed"))[0]["message"] == "The pod failed."


TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j"}], "nodeSelector": {"gpu": "yes"}}}
SELECTOR = {"matchLabels": {"app": "web"}}
DONE = [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]
ROWS: list[tuple[Table, Tree, list[Any]]] = [
    (
        tables.DEPLOYMENT,
        {
            "spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
            "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
        },
        ["x", "2/3", 1, 2, "100s", "a,b", "i:1,j", "app=web"],
    ),
    (
        tables.REPLICA_SET,
        {"spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR}, "status": {"replicas": 3, "readyReplicas": 2}},
        ["x", 3, 3, 2, "100s", "a,b", "i:1,j", "app=web"],
    ),
    (
        tables.REPLICATION_CONTROLLER,
        {"spec": {"replicas": 0, "template": TEMPLATE, "selector": {"b": "2", "a": "1"}}, "status": {}},
        ["x", 0, 0, 0, "100s", "a,b", "i:1,j", "a=1,b=2"],
    ),
    (tables.STATEFUL_SET, {"spec": {"replicas": 2, "template": TEMPLATE}, "status": {"readyReplicas": 1}}, ["x", "1/2", "100s", "a,b", "i:1,j"]),
    (
        tables.DAEMON_SET,
        {"spec": {"template": TEMPLATE, "selector": SELECTOR}, "status": {"desiredNumberScheduled": 4, "numberReady": 3}},
        ["x", 4, 0, 3, 0, 0, "gpu=yes", "100s", "a,b", "i:1,j", "app=web"],
    ),
    (
        tables.JOB,
        {"spec": {"completions": 3, "template": TEMPLATE}, "status": {"startTime": at(90), "succeeded": 1}},
        ["x", "Running", "1/3", "90s", "100s", "a,b", "i:1,j", "<none>"],
    ),
    (
        tables.JOB,
        {"spec": {"completions": 3}, "status": {"startTime": at(90), "completionTime": at(30), "succeeded": 3, "conditions": DONE}},
        ["x", "Complete", "3/3", "60s", "100s", "", "", "<none>"],
    ),
    (tables.JOB, {"spec": {"parallelism": 2}, "status": {}}, ["x", "Running", "0/1 of 2", "", "100s", "", "", "<none>"]),
    (tables.JOB, {"spec": {"parallelism": 1}, "status": {}}, ["x", "Running", "0/1", "", "100s", "", "", "<none>"]),
    (
        tables.JOB,
        {"spec": {"completions": 1}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}},
        ["x", "Suspended", "0/1", "", "100s", "", "", "<none>"],
    ),
    (
        tables.CRON_JOB,
        {"spec": {"schedule": "* * * * *", "suspend": False}, "status": {"active": [{}], "lastScheduleTime": at(70)}},
        ["x", "* * * * *", "<none>", "False", 1, "70s", "100s", "", "", "<none>"],
    ),
    (
        tables.CONTROLLER_REVISION,
        {"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": True}]}, "revision": 4},
        ["x", "statefulset.apps/s", 4, "100s"],
    ),
    (tables.POD_DISRUPTION_BUDGET, {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}}, ["x", "50%", "N/A", 1, "100s"]),
    (
        tables.HORIZONTAL_POD_AUTOSCALER,
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "maxReplicas": 5,
                "minReplicas": 2,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                    {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"averageValue": "10"}}},
                    {"type": "External", "external": {"target": {"value": "1"}}},
                ],
            },
            "status": {"currentReplicas": 3, "currentMetrics": [{"resource": {"current": {"averageUtilization": 40}}}]},
        },
        ["x", "Deployment/web", "cpu: 40%/80%, <unknown>/10 + 1 more...", "2", 5, 3, "100s"],
    ),
    (
        tables.SERVICE,
        {"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "protocol": "TCP"}]}},
        ["x", "ClusterIP", "10.0.0.1", "<none>", "80/TCP", "100s", "<none>"],
    ),
    (
        tables.SERVICE,
        {"spec": {"type": "ClusterIP", "clusterIPs": ["None"], "selector": {"a": "b"}}},
        ["x", "ClusterIP", "None", "<none>", "<none>", "100s", "a=b"],
    ),
    (
        tables.SERVICE,
        {"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30080, "protocol": "UDP"}]}},
        ["x", "LoadBalancer", "10.0.0.1", "<pending>", "80:30080/UDP", "100s", "<none>"],
    ),
    (tables.SERVICE, {"spec": {"type": "ExternalName", "externalName": "a.b"}}, ["x", "ExternalName", "<none>", "a.b", "<none>", "100s", "<none>"]),
    (
        tables.NODE,
        {
            "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "Linux"},
            },
        },
        ["x", "Ready,SchedulingDisabled", "control-plane,worker", "100s", "v1.36.0", "10.1.0.1", "<none>", "Linux", "<unknown>", "<unknown>"],
    ),
    (tables.NODE, {"status": {}}, ["x", "Unknown", "<none>", "100s", "", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]),
    (tables.NAMESPACE, {"status": {"phase": "Terminating"}}, ["x", "Terminating", "100s"]),
    (tables.CONFIG_MAP, {"data": {"a": ""}, "binaryData": {"b": ""}}, ["x", 2, "100s"]),
    (tables.SECRET, {"type": "Opaque", "data": {"a": ""}}, ["x", "Opaque", 1, "100s"]),
    (tables.SERVICE_ACCOUNT, {}, ["x", 0, "100s"]),
    (
        tables.EVENT,
        {
            "type": "Normal",
            "reason": "Started",
            "message": "text\n",
            "firstTimestamp": at(60),
            "lastTimestamp": at(10),
            "count": 4,
            "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
            "source": {"component": "kubelet", "host": "n"},
        },
        ["10s", "Normal", "Started", "pod/p", "spec", "kubelet, n", "text", "60s", 4, "x"],
    ),
    (
        tables.EVENT,
        {
            "eventTime": at(60),
            "series": {"count": 7, "lastObservedTime": at(5)},
            "reportingComponent": "job-controller",
            "involvedObject": {"kind": "Job"},
        },
        ["5s", "", "", "job", "", "job-controller", "", "60s", 7, "x"],
    ),
    (
        tables.ENDPOINTS,
        {"subsets": [{"addresses": [{"ip": f"10.0.0.{index}"} for index in range(4)], "ports": [{"port": 80}]}]},
        ["x", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 1 more...", "100s"],
    ),
    (tables.ENDPOINTS, {}, ["x", "<none>", "100s"]),
    (tables.ENDPOINT_SLICE, {"addressType": "IPv4"}, ["x", "IPv4", "<unset>", "<unset>", "100s"]),
    (
        tables.ENDPOINT_SLICE,
        {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}]},
        ["x", "IPv4", "80", "10.0.0.1", "100s"],
    ),
    (
        tables.PERSISTENT_VOLUME_CLAIM,
        {
            "spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Filesystem"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]},
        },
        ["x", "Bound", "v", "1Gi", "RWO,ROX", "fast", "<unset>", "100s", "Filesystem"],
    ),
    (
        tables.PERSISTENT_VOLUME,
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOncePod"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "n", "name": "c"},
            },
            "status": {"phase": "Bound"},
        },
        ["x", "1Gi", "RWOP", "Retain", "Bound", "n/c", "", "<unset>", "", "100s", "<unset>"],
    ),
    (
        tables.RESOURCE_QUOTA,
        {"status": {"hard": {"pods": "4", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}},
        ["x", "cpu: 0/1, pods: 1/4", "limits.cpu: 0/2", "100s"],
    ),
    (tables.LEASE, {"spec": {"holderIdentity": "me"}}, ["x", "me", "100s"]),
    (tables.PRIORITY_CLASS, {"value": 7, "preemptionPolicy": "Never"}, ["x", 7, False, "100s", "Never"]),
    (tables.RUNTIME_CLASS, {"handler": "runc"}, ["x", "runc", "100s"]),
    (
        tables.STORAGE_CLASS,
        {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"},
        ["x (default)", "p", "Delete", "Immediate", False, "100s"],
    ),
    (tables.CSI_NODE, {"spec": {"drivers": [{}, {}]}}, ["x", 2, "100s"]),
    (
        tables.INGRESS,
        {
            "spec": {"ingressClassName": "nginx", "tls": [{}], "rules": [{"host": host} for host in ("a", "b", "a", "c", "d")]},
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}},
        },
        ["x", "nginx", "a,b,c + 1 more...", "1.2.3.4,h", "80, 443", "100s"],
    ),
    (tables.INGRESS, {"spec": {}}, ["x", "<none>", "*", "", "80", "100s"]),
    (
        tables.INGRESS_CLASS,
        {"spec": {"controller": "a/b", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}}},
        ["x", "a/b", "K.g/n", "100s"],
    ),
    (tables.NETWORK_POLICY, {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}, ["x", "a=b", "100s"]),
    (tables.NETWORK_POLICY, {"spec": {"podSelector": {}}}, ["x", "<none>", "100s"]),
    (
        tables.ROLE_BINDING,
        {
            "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "Group", "name": "g"},
                {"kind": "User", "name": "w"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        },
        ["x", "ClusterRole/view", "100s", "u, w", "g", "n/s"],
    ),
    (
        tables.CERTIFICATE_SIGNING_REQUEST,
        {
            "spec": {"signerName": "a/b", "username": "u", "expirationSeconds": 3600},
            "status": {"conditions": [{"type": "Approved"}], "certificate": "YQ=="},
        },
        ["x", "100s", "a/b", "u", "60m", "Approved,Issued"],
    ),
    (tables.CERTIFICATE_SIGNING_REQUEST, {"spec": {}}, ["x", "100s", "<none>", "", "<none>", "Pending"]),
    (tables.WEBHOOK_CONFIGURATION, {"webhooks": [{}]}, ["x", 1, "100s"]),
    (tables.VALIDATING_ADMISSION_POLICY, {"spec": {"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "C"}}}, ["x", 1, "v1/C", "100s"]),
    (tables.ADMISSION_POLICY_BINDING, {"spec": {"policyName": "p", "paramRef": {"name": "n"}}}, ["x", "p", "*/n", "100s"]),
    (tables.API_SERVICE, {"status": {"conditions": [{"type": "Available", "status": "True"}]}}, ["x", "Local", "True", "100s"]),
    (
        tables.API_SERVICE,
        {
            "spec": {"service": {"namespace": "n", "name": "s"}},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound"}]},
        },
        ["x", "n/s", "False (ServiceNotFound)", "100s"],
    ),
    (tables.FLOW_SCHEMA, {"spec": {"priorityLevelConfiguration": {"name": "l"}, "matchingPrecedence": 5}}, ["x", "l", 5, "<none>", "100s", "?"]),
    (tables.RESOURCE_CLAIM, {}, ["x", "pending", "100s"]),
    (tables.RESOURCE_CLAIM, {"status": {"allocation": {}, "reservedFor": [{}]}}, ["x", "allocated,reserved", "100s"]),
    (tables.RESOURCE_CLAIM, {"metadata": {"deletionTimestamp": at(1)}, "status": {"allocation": {}}}, ["x", "deleted,allocated", "100s"]),
    (tables.RESOURCE_SLICE, {"spec": {"allNodes": True, "driver": "d", "pool": {"name": "p"}}}, ["x", "<all nodes>", "d", "p", "100s"]),
    (tables.IP_ADDRESS, {"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}}, ["x", "services/n/s", "100s"]),
    (tables.SCALE, {"spec": {"replicas": 3}, "status": {"replicas": 2}}, ["x", 3, 2, "100s"]),
]


@pytest.mark.parametrize("table, obj, cells", ROWS)
def test_objects_show_their_cells(table: Table, obj: Tree, cells: list[Any]) -> None:
    """Each kind shows what upstream's printers show."""
    assert row(table, obj) == cells


def test_an_object_without_a_creation_time_has_no_age() -> None:
    """Objects that only pass by, such as the answer to a dry run, may have none."""
    assert tables.NAMESPACE.row({"metadata": {"name": "x"}}, NOW)[-1] == "<unknown>"


def test_every_table_survives_a_bare_object() -> None:
    """A row needs nothing but a name: stored objects of older clients lack what they lack."""
    for name in tables.__all__:
        table: Table = getattr(tables, name)
        assert row(table, {"spec": {}})[0] == "x" or name == "EVENT"
