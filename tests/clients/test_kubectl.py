"""The real kubectl against a served cluster: the verbs of a working day, as a person types them."""

import re

from tests.clients.conftest import Command

JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: sum
spec:
  completions: 2
  parallelism: 2
  template:
    metadata:
      annotations:
        kubemini.dev/run-for: 1s
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
"""


def test_version_names_the_server(kubectl: Command) -> None:
    """`kubectl version` speaks with the server and sees the Kubernetes version that it stands for."""
    assert re.search(r"^Server Version: v1\.36\.", kubectl("version"), re.MULTILINE)


def test_job_runs_to_its_end(kubectl: Command) -> None:
    """A Job is created, completes under `kubectl wait`, prints as upstream prints it, and is described with its events."""
    assert kubectl("apply", "-f", "-", stdin=JOB) == "job.batch/sum created\n"
    assert kubectl("apply", "-f", "-", stdin=JOB) == "job.batch/sum unchanged\n"
    assert kubectl("wait", "--for=condition=Complete", "--timeout=30s", "job/sum") == "job.batch/sum condition met\n"
    header, row = kubectl("get", "jobs").splitlines()
    assert header.split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert row.split()[:3] == ["sum", "Complete", "2/2"]
    described = kubectl("describe", "job/sum")
    assert "SuccessfulCreate" in described
    assert re.search(r"Pods Statuses:\s+0 Active \(0 Ready\) / 2 Succeeded / 0 Failed", described)
    assert kubectl("delete", "job", "sum").startswith('job.batch "sum" deleted')
    kubectl("wait", "--for=delete", "pod", "-l", "job-name=sum", "--timeout=30s")


def test_create_generators_send_protobuf(kubectl: Command) -> None:
    """`kubectl create TYPE` sends protobuf bodies, which the server reads."""
    assert kubectl("create", "configmap", "settings", "--from-literal=a=1") == "configmap/settings created\n"
    assert kubectl.json("get", "configmap", "settings")["data"] == {"a": "1"}
    assert kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2") == "deployment.apps/web created\n"
    assert kubectl("rollout", "status", "deployment/web", "--timeout=30s").endswith('deployment "web" successfully rolled out\n')


def test_refusal_is_told_as_upstream_tells_it(kubectl: Command) -> None:
    """An invalid object is refused with the field and the reason, and kubectl ends with status 1."""
    bad = JOB.replace("restartPolicy: Never", "restartPolicy: Always")
    done = kubectl.run("create", "-f", "-", stdin=bad)
    assert done.returncode == 1
    assert 'The Job "sum" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"' in done.stderr


def test_server_side_apply_reports_conflicts(kubectl: Command) -> None:
    """Two managers that want different values conflict; `--force-conflicts` takes the field over."""
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {owner: %s}\n"
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=manifest % "one")
    done = kubectl.run("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=manifest % "two")
    assert done.returncode == 1
    assert 'conflict with "one": .data.owner' in done.stderr
    kubectl("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=manifest % "two")
    assert kubectl.json("get", "configmap", "shared")["data"] == {"owner": "two"}


def test_operators_definitions_are_there(kubectl: Command) -> None:
    """The definitions of the operators' kinds are listed and established, and explain their fields."""
    names = [line.split()[0] for line in kubectl("get", "crd", "--no-headers").splitlines()]
    assert {"jobsets.jobset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io", "workloads.kueue.x-k8s.io"} <= set(names)
    assert kubectl("wait", "--for=condition=Established", "crd/jobsets.jobset.x-k8s.io").endswith("condition met\n")
    (version,) = kubectl.json("get", "crd", "jobsets.jobset.x-k8s.io")["spec"]["versions"]
    template = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicatedJobs"]["items"]["properties"]["template"]
    assert "completionMode" in template["properties"]["spec"]["properties"]
