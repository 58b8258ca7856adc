"""Pod Security: what a namespace allows pods to do to their node."""

import asyncio
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.machinery.pod_security import violations
from kubemini.server.options import Outcome, Patch, WriteOptions
from tests.unit.core.conftest import Desk


def refusal(desk: Desk, spec: Tree) -> str:
    """Return why a pod is refused in the namespace ``safe``."""
    with pytest.raises(Forbidden) as problem:
        desk.create("Pod", namespace="safe", spec=spec)
    return problem.value.message.removeprefix('pods "x" is forbidden: ')


def secured(desk: Any, **labels: str) -> None:
    """Create the namespace ``safe`` with Pod Security labels."""
    marks = {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    desk.create("Namespace", name="safe", meta={"labels": marks})
    desk.create("ServiceAccount", namespace="safe", name="default")


SAFE: Tree = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def container(name: str = "c", **context: Any) -> Tree:
    """Return a container that the restricted level allows, but for some changes."""
    return {"name": name, "image": "i:1", "securityContext": {**SAFE, **context}}


def test_safe_pods_pass_every_level(desk: Any) -> None:
    """The restricted level asks for four things, and the token's volume is fine."""
    secured(desk, enforce="restricted")
    desk.create("Pod", namespace="safe", spec={"containers": [container()]})


LEVELS: list[tuple[str, Tree, str]] = [
    (
        "baseline",
        {"containers": [container(privileged=True, allowPrivilegeEscalation=None)]},
        'privileged (container "c" must not set securityContext.privileged=true)',
    ),
    ("baseline", {"containers": [container()], "hostNetwork": True, "hostPID": True}, "host namespaces (hostNetwork=true, hostPID=true)"),
    ("baseline", {"containers": [container()], "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, 'hostPath volumes (volume "v")'),
    (
        "baseline",
        {"containers": [{**container(), "ports": [{"containerPort": 80, "hostPort": 80}]}]},
        'hostPort (container "c" uses hostPort 80)',
    ),
    (
        "baseline",
        {"containers": [container(capabilities={"add": ["NET_ADMIN", "CHOWN"]})]},
        'non-default capabilities (container "c" must not include "NET_ADMIN" in securityContext.capabilities.add)',
    ),
    (
        "restricted",
        {"containers": [{"name": "c", "image": "i:1"}]},
        (
            'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
            'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
            'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
        ),
    ),
    (
        "restricted",
        {"containers": [container("a", allowPrivilegeEscalation=None), container("b", allowPrivilegeEscalation=None)]},
        'allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)',
    ),
    (
        "baseline",
        {
            "hostNetwork": True,
            "containers": [
                {**container("a", privileged=True, allowPrivilegeEscalation=None), "ports": [{"containerPort": 9, "hostPort": 9}]},
                container("b", capabilities={"add": ["NET_RAW"]}),
            ],
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "hostPath": {"path": "/"}}],
        },
        (
            'non-default capabilities (container "b" must not include "NET_RAW" in securityContext.capabilities.add), '
            'host namespaces (hostNetwork=true), hostPath volumes (volumes "v", "w"), hostPort (container "a" uses hostPort 9), '
            'privileged (container "a" must not set securityContext.privileged=true)'
        ),
    ),
    (
        "baseline",
        {"containers": [container(seLinuxOptions={"type": "spc_t", "user": "u"})], "securityContext": {"seLinuxOptions": {"role": "r"}}},
        'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set)',
    ),
    (
        "baseline",
        {"containers": [container(seccompProfile={"type": "Unconfined"})]},
        'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        "baseline",
        {
            "containers": [container()],
            "securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}, {"name": "net.ipv4.tcp_rmem", "value": "1"}]},
        },
        "forbidden sysctls (kernel.msgmax)",
    ),
    (
        "baseline",
        {"containers": [container(appArmorProfile={"type": "Unconfined"})]},
        'forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")',
    ),
    (
        "baseline",
        {"containers": [{**container(), "readinessProbe": {"httpGet": {"host": "other", "port": 80}}}]},
        'probe or lifecycle host (container "c" uses probe or lifecycle host "other")',
    ),
    (
        "restricted",
        {"containers": [container()], "volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
        'restricted volume types (volume "v" uses restricted volume type "hostPath")',
    ),
    (
        "restricted",
        {"containers": [container(capabilities={"drop": ["ALL"], "add": ["NET_RAW", "NET_BIND_SERVICE"]})]},
        'unrestricted capabilities (container "c" must not include "NET_RAW" in securityContext.capabilities.add)',
    ),
    (
        "restricted",
        {"containers": [container(runAsNonRoot=False)], "securityContext": {"runAsNonRoot": True}},
        'runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false)',
    ),
    (
        "restricted",
        {"containers": [container(seccompProfile={"type": "Unconfined"})]},
        'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        "restricted",
        {"containers": [container(runAsUser=0)]},
        'runAsUser=0 (container "c" must not set runAsUser=0)',
    ),
    (
        "restricted",
        {"containers": [container()], "volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]},
        'restricted volume types (volume "v" uses restricted volume type "nfs")',
    ),
]


@pytest.mark.parametrize("level, spec, text", LEVELS)
def test_unsafe_pods_are_refused(desk: Any, level: str, spec: Tree, text: str) -> None:
    """Level and version stand before the reasons."""
    secured(desk, enforce=level)
    assert refusal(desk, spec) == f'violates PodSecurity "{level}:latest": {text}'


def outcome(desk: Any, kind: str, spec: Tree, name: str = "x") -> Outcome:
    """Create an object in ``safe``."""
    found: Outcome = desk.outcome(kind, name=name, namespace="safe", spec=spec)
    return found


def test_unsafe_pods_and_templates_are_warned_about(desk: Any) -> None:
    """Templates are never refused: their pods are."""
    secured(desk, enforce="privileged", warn="baseline", warn_version="v1.36")
    text = 'would violate PodSecurity "baseline:v1.36": host namespaces (hostNetwork=true)'
    spec = {"hostNetwork": True, "containers": [{"name": "c", "image": "i"}]}
    assert text in outcome(desk, "Pod", spec).warnings
    assert text in outcome(desk, "Job", {"template": {"spec": {**spec, "restartPolicy": "Never"}}}).warnings
    selector = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}
    assert text in outcome(desk, "Deployment", {**selector, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}).warnings


def test_changes_that_matter_are_looked_at(desk: Any) -> None:
    """Labels that come later refuse what changes a pod's containers, and nothing else."""
    secured(desk)
    desk.create("Pod", namespace="safe", spec={"hostNetwork": True, "containers": [{"name": "c", "image": "i"}]})
    desk.patch("Namespace", "safe", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}})
    desk.patch("Pod", "x", {"metadata": {"labels": {"a": "b"}}}, namespace="safe")
    desk.patch("Pod", "x", {"spec": {"activeDeadlineSeconds": 50}}, namespace="safe")
    with pytest.raises(Forbidden, match="violates PodSecurity"):
        desk.patch("Pod", "x", [{"op": "replace", "path": "/spec/containers/0/image", "value": "j"}], type_="json", namespace="safe")


def test_a_label_that_refuses_warns_too(desk: Any) -> None:
    """Nobody reads the events of a ReplicaSet: who applies a template that would have no pods hears of it at once, unless told not to."""
    secured(desk, enforce="baseline")
    template = {"template": {"spec": {"hostNetwork": True, "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    assert outcome(desk, "Job", template).warnings == ['would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)']
    desk.patch("Namespace", "safe", {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "privileged"}}})
    assert outcome(desk, "Job", template, "y").warnings == []


def test_labels_must_say_something(desk: Any) -> None:
    """Levels and versions are checked when they are written; what is already there does not stand in the way of other changes."""
    labels = {"pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/warn-version": "1.36"}
    assert desk.causes("Namespace", meta={"labels": labels}) == [
        'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted',
        'metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1.36": must be "latest" or "v1.x"',
    ]
    secured(desk, enforce="baseline")
    assert desk.unpatched("Namespace", "safe", {"metadata": {"labels": labels}})
    desk.patch("Namespace", "safe", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})


def raised(desk: Any, level: str) -> list[str]:
    """Raise the level of ``safe``; return the warnings."""
    served = desk.served("Namespace")
    body = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
    found: Outcome = asyncio.run(desk.api.patch(served, "", "safe", Patch("merge", body), WriteOptions(track=False)))
    return found.warnings


def test_a_stricter_label_warns_about_the_pods_that_are_there(desk: Any) -> None:
    """Like pods are counted together; a laxer label finds nothing."""
    secured(desk)
    for name in ("c", "a", "b"):
        desk.create("Pod", name=name, namespace="safe", spec={"containers": [{"name": "c", "image": "i"}]})
    desk.create("Pod", name="d", namespace="safe", spec={"hostNetwork": True, "containers": [container()]})
    desk.create("Pod", name="e", namespace="safe", spec={"containers": [container()]})
    assert raised(desk, "baseline") == [
        'existing pods in namespace "safe" violate the new PodSecurity enforce level "baseline:latest"',
        "d: host namespaces",
    ]
    assert raised(desk, "restricted") == [
        'existing pods in namespace "safe" violate the new PodSecurity enforce level "restricted:latest"',
        "a (and 2 other pods): allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
        "d: host namespaces",
    ]
    assert raised(desk, "baseline") == []


def test_pods_with_users_of_their_own_may_be_root_in_them() -> None:
    """Root inside of a user namespace is nobody outside."""
    spec = {"hostUsers": False, "containers": [container(runAsUser=0, runAsNonRoot=None)]}
    assert violations(spec, {}, "restricted") == []
    assert [each.reason for each in violations({**spec, "hostUsers": True}, {}, "restricted")] == ["runAsNonRoot != true", "runAsUser=0"]


def test_windows_pods_need_not_say_what_makes_no_sense_there() -> None:
    """Escalation, capabilities and seccomp are of Linux."""
    spec = {"os": {"name": "windows"}, "containers": [{"name": "c", "securityContext": {"runAsNonRoot": True}}]}
    assert violations(spec, {}, "restricted") == []
    spec = {"containers": [], "securityContext": {"windowsOptions": {"hostProcess": True}}}
    assert [str(each) for each in violations(spec, {}, "baseline")] == [
        "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"
    ]


def test_old_annotations_for_app_armor_count() -> None:
    """They still name a profile."""
    annotations = {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
    (found,) = violations({"containers": [{"name": "c"}]}, annotations, "baseline")
    mark = 'container.apparmor.security.beta.kubernetes.io/c="unconfined"'
    assert found.detail == f'annotation must not set AppArmor profile type to "{mark}"'
