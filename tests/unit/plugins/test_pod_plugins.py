"""What admission writes into a new pod: account, token, priority, tolerations, runtime class."""

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden, NotFound
from kubemini.server.plugins.service_account import MOUNT_PATH
from kubemini.server.plugins.tolerations import with_defaults


def refusal(desk: Any, kind: str = "Pod", **fields: Any) -> str:
    """Return the text with which an object is forbidden."""
    with pytest.raises(Forbidden) as problem:
        desk.create(kind, **fields)
    return problem.value.message


def pod_refusal(desk: Any, meta: Tree | None = None, **spec: Any) -> str:
    """Return the text with which a pod of one container is forbidden."""
    return refusal(desk, meta=meta, spec={"containers": [{"name": "c", "image": "i"}], **spec})


# ------------------------------------------------------------------------------------------------------ accounts


def test_a_pod_gets_the_default_account_and_its_token(desk: Any) -> None:
    """Account, volume and mount are there after creation, the volume with upstream's three sources."""
    spec = desk.pod()["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    volume = spec["volumes"][-1]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(each)) for each in volume["projected"]["sources"]] == ["serviceAccountToken", "configMap", "downwardAPI"]
    assert volume["projected"]["sources"][0]["serviceAccountToken"] == {"expirationSeconds": 3607, "path": "token"}
    assert spec["containers"][0]["volumeMounts"] == [{"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}]


def test_pods_of_one_template_share_what_admission_made(desk: Any) -> None:
    """Lists of containers, volumes and tolerations of two pods are the very same objects: work on them is done once."""
    template = desk.create("PodTemplate", template={"spec": {"containers": [{"name": "c", "image": "i"}]}})["template"]
    one = desk.create("Pod", name="one", spec=template["spec"])["spec"]
    other = desk.create("Pod", name="other", spec={**template["spec"], "hostname": "other"})["spec"]
    for key in ("containers", "volumes", "tolerations", "securityContext"):
        assert one[key] is other[key], key


def test_the_volume_is_named_after_the_account(desk: Any) -> None:
    """Pods of one account share the name, pods of another have another: names do not depend on the order of creation."""
    desk.create("ServiceAccount", name="other")

    def volume(name: str, **spec: Any) -> str:
        found: str = desk.pod(name=name, **spec)["spec"]["volumes"][-1]["name"]
        return found

    assert volume("a") == volume("b") != volume("c", serviceAccountName="other")


@pytest.mark.parametrize("account, pod, mounted", [(None, None, True), (False, None, False), (False, True, True), (True, False, False)])
def test_who_wants_no_token_gets_none(desk: Any, account: bool | None, pod: bool | None, mounted: bool) -> None:
    """The pod's word counts more than the account's."""
    desk.create("ServiceAccount", name="s", **({} if account is None else {"automountServiceAccountToken": account}))
    spec = desk.pod(serviceAccountName="s", **({} if pod is None else {"automountServiceAccountToken": pod}))["spec"]
    assert bool(spec.get("volumes")) == mounted
    assert bool(spec["containers"][0].get("volumeMounts")) == mounted


def test_a_mount_of_ones_own_stays_alone(desk: Any) -> None:
    """A container that mounts something at the token's path keeps that, and a pod of such containers has no token volume."""
    mount = {"name": "mine", "mountPath": MOUNT_PATH}
    spec = desk.pod(container={"volumeMounts": [mount]}, volumes=[{"name": "mine", "emptyDir": {}}])["spec"]
    assert [each["name"] for each in spec["volumes"]] == ["mine"]
    assert [each["mountPath"] for each in spec["containers"][0]["volumeMounts"]] == [MOUNT_PATH]


def test_pull_secrets_of_the_account_are_inherited(desk: Any) -> None:
    """Only by pods that have none."""
    desk.create("ServiceAccount", name="s", imagePullSecrets=[{"name": "registry"}])
    assert desk.pod(serviceAccountName="s")["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert desk.pod(name="y", serviceAccountName="s", imagePullSecrets=[{"name": "own"}])["spec"]["imagePullSecrets"] == [{"name": "own"}]


def test_an_account_must_exist(desk: Any) -> None:
    """The text names namespace and account."""
    text = 'pods "x" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found'
    assert pod_refusal(desk, serviceAccountName="nobody") == text


def test_mirrors_of_static_pods_have_no_account(desk: Any) -> None:
    """They exist without the API server's doing."""
    assert "serviceAccountName" not in desk.pod(meta={"annotations": {"kubernetes.io/config.mirror": "h"}}, nodeName="n")["spec"]


# ------------------------------------------------------------------------------------------------------ priority


def test_priority_comes_from_the_class(desk: Any) -> None:
    """Value and preemption policy; the system's classes need no objects of one's own making."""
    desk.create("PriorityClass", name="high", value=1000, preemptionPolicy="Never")
    spec = desk.pod(priorityClassName="high")["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


def test_the_default_class_is_written_into_pods_that_name_none(desk: Any) -> None:
    """Without a default class the priority is 0 and no class is named."""
    before = desk.pod(name="before")["spec"]
    assert (before["priority"], before["preemptionPolicy"], before.get("priorityClassName")) == (0, "PreemptLowerPriority", None)
    desk.create("PriorityClass", name="usual", value=10, globalDefault=True)
    after = desk.pod(name="after")["spec"]
    assert (after["priority"], after["priorityClassName"]) == (10, "usual")


def test_there_is_one_default_class(desk: Any) -> None:
    """A second one is refused; the first may be written again."""
    desk.create("PriorityClass", name="usual", value=10, globalDefault=True)
    desk.patch("PriorityClass", "usual", {"description": "text"})
    text = 'priorityclasses.scheduling.k8s.io "x" is forbidden: PriorityClass usual is already marked as default. Only one default can exist'
    assert refusal(desk, "PriorityClass", value=1, globalDefault=True) == text


def test_numbers_of_ones_own_are_refused(desk: Any) -> None:
    """A priority that does not follow from the class, an unknown class."""
    assert pod_refusal(desk, priority=5) == (
        'pods "x" is forbidden: the integer value of priority (5) must not be provided in pod spec; '
        "priority admission controller computed 0 from the given PriorityClass name"
    )
    assert pod_refusal(desk, preemptionPolicy="Never") == (
        'pods "x" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; '
        "priority admission controller computed PreemptLowerPriority from the given PriorityClass name"
    )
    assert pod_refusal(desk, priorityClassName="none") == 'pods "x" is forbidden: no PriorityClass with name none was found'
    assert desk.pod(priority=0)["spec"]["priority"] == 0


# ------------------------------------------------------------------------------------------------------ tolerations


def test_pods_tolerate_lost_nodes_for_five_minutes(desk: Any) -> None:
    """Both tolerations are added, each only where none covers it."""
    added = desk.pod(name="plain")["spec"]["tolerations"]
    assert [(each["key"], each["tolerationSeconds"]) for each in added] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    assert desk.pod(name="own", tolerations=[own])["spec"]["tolerations"] == [own, added[1]]
    everything = {"operator": "Exists"}
    assert desk.pod(name="all", tolerations=[everything])["spec"]["tolerations"] == [everything]


def test_tolerations_are_completed_once() -> None:
    """One list gives one result, the same list when nothing is missing."""
    some, all_ = [{"key": "a", "operator": "Exists"}], [{"operator": "Exists"}]
    assert with_defaults(some) is with_defaults(some)
    assert with_defaults(all_) is all_


# ------------------------------------------------------------------------------------------------------ runtime classes


def test_a_runtime_class_says_what_it_costs_and_where_it_runs(desk: Any) -> None:
    """Overhead, node selector and tolerations are written into the pod."""
    taint = {"key": "sandbox", "operator": "Exists"}
    desk.create(
        "RuntimeClass",
        name="sandbox",
        handler="sandbox",
        overhead={"podFixed": {"cpu": "250m"}},
        scheduling={"nodeSelector": {"sandbox": "yes"}, "tolerations": [taint]},
    )
    spec = desk.pod(runtimeClassName="sandbox", nodeSelector={"zone": "a"})["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"zone": "a", "sandbox": "yes"}
    assert taint in spec["tolerations"]


def test_pods_must_not_contradict_their_runtime_class(desk: Any) -> None:
    """Unknown class, other overhead, overhead without class, other node selector."""
    desk.create("RuntimeClass", name="r", handler="r", overhead={"podFixed": {"cpu": "1"}}, scheduling={"nodeSelector": {"a": "b"}})
    assert pod_refusal(desk, runtimeClassName="none") == 'pods "x" is forbidden: pod rejected: RuntimeClass "none" not found'
    differs = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert pod_refusal(desk, runtimeClassName="r", overhead={"cpu": "2"}) == f'pods "x" is forbidden: {differs}'
    alone = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    assert pod_refusal(desk, overhead={"cpu": "2"}) == f'pods "x" is forbidden: {alone}'
    assert "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c" in pod_refusal(
        desk, runtimeClassName="r", nodeSelector={"a": "c"}
    )


# ------------------------------------------------------------------------------------------------------ namespaces, nodes, storage


def test_nothing_is_created_where_there_is_no_namespace(desk: Any) -> None:
    """The namespace is what is not found."""
    with pytest.raises(NotFound, match=r'^namespaces "nowhere" not found$'):
        desk.create("ConfigMap", namespace="nowhere")


def test_nothing_is_created_in_a_namespace_that_goes(desk: Any) -> None:
    """The refusal carries a cause that clients look for."""
    desk.create("Namespace", name="going")
    desk.create("ConfigMap", namespace="going", name="before")
    desk.delete("Namespace", "going")
    with pytest.raises(Forbidden) as problem:
        desk.create("ConfigMap", namespace="going")
    assert problem.value.message == ('configmaps "x" is forbidden: unable to create new content in namespace going because it is being terminated')
    assert problem.value.has_cause("NamespaceTerminating")
    desk.patch("ConfigMap", "before", {"data": {"a": "b"}}, namespace="going")


def test_new_nodes_are_not_ready(desk: Any) -> None:
    """The taint is added once."""
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert desk.create("Node", name="a")["spec"]["taints"] == [taint]
    assert desk.create("Node", name="b", spec={"taints": [taint]})["spec"]["taints"] == [taint]


CLAIM: Tree = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DEFAULT = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}


def test_claims_get_the_default_class(desk: Any) -> None:
    """Unless they name one, even the empty one; of several defaults the newest counts, then the first by name."""
    assert "storageClassName" not in desk.create("PersistentVolumeClaim", name="before", spec=CLAIM)["spec"]
    desk.create("StorageClass", name="b", meta=DEFAULT, provisioner="p")
    desk.create("StorageClass", name="a", meta=DEFAULT, provisioner="p")
    assert desk.create("PersistentVolumeClaim", name="after", spec=CLAIM)["spec"]["storageClassName"] == "a"
    assert desk.create("PersistentVolumeClaim", name="none", spec={**CLAIM, "storageClassName": ""})["spec"]["storageClassName"] == ""


def test_claims_and_volumes_are_protected(desk: Any) -> None:
    """Each gets the finalizer that keeps it while it is used."""
    assert desk.create("PersistentVolumeClaim", spec=CLAIM)["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    assert desk.create("PersistentVolume", spec=volume)["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


def test_ingresses_get_the_default_class(desk: Any) -> None:
    """Of several defaults made at once none is chosen."""
    mark = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    spec = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    desk.create("IngressClass", name="a", meta=mark, spec={"controller": "a.b/c"})
    assert desk.create("Ingress", name="one", spec=spec)["spec"]["ingressClassName"] == "a"
    desk.create("IngressClass", name="b", meta=mark, spec={"controller": "a.b/c"})
    assert refusal(desk, "Ingress", spec=spec) == (
        'ingresses.networking.k8s.io "x" is forbidden: 2 default IngressClasses were found, only 1 allowed'
    )
