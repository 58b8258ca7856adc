"""What Kueue's webhooks refuse, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.integrations.pods import role_hash
from kubemini.controllers.kueue.webhooks.gates import gate_errors
from kubemini.controllers.kueue.webhooks.jobs import create_errors, job_errors, job_set_errors, update_errors
from kubemini.controllers.kueue.webhooks.numbers import int_fault, read_int
from kubemini.controllers.kueue.webhooks.pods import pod_errors
from kubemini.controllers.kueue.webhooks.quota import cluster_queue_errors, cohort_errors, flavor_errors
from kubemini.controllers.kueue.webhooks.serving import shape_errors
from kubemini.controllers.kueue.webhooks.topology import group_errors, size_errors, template_errors
from kubemini.controllers.kueue.webhooks.workloads import workload_errors
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied

GATES = FeatureGates()
K = "kueue.x-k8s.io/"
RESERVED = [{"type": "QuotaReserved", "status": "True", "reason": "r", "message": ""}]


def texts(errors: Any) -> list[str]:
    """Return errors as they are read."""
    return [str(each) for each in errors]


def pod_set(name: str = "main", count: int = 1, **more: Any) -> Tree:
    """Return a pod set of one container."""
    spec = {"containers": [{"name": "c", **more.pop("container", {})}], **more.pop("spec", {})}
    return {"name": name, "count": count, "template": {"metadata": more.pop("metadata", {}), "spec": spec}, **more}


def workload(*pod_sets: Tree, status: Tree | None = None, **annotations: str) -> Tree:
    """Return a Workload."""
    marks = {f"{K}{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "metadata": {"name": "w", "namespace": "ns", "annotations": marks},
        "spec": {"podSets": list(pod_sets or [pod_set()])},
        "status": status or {},
    }


def held(count: int, **status: Any) -> Tree:
    """Return the status of a Workload that holds quota for so many pods."""
    admission = {
        "clusterQueue": "cq",
        "podSetAssignments": [{"name": "main", "count": count, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": str(count)}}],
    }
    return {"conditions": RESERVED, "admission": admission, **status}


@pytest.mark.parametrize(
    "wrong, said",
    [
        (
            workload(pod_set(spec={"resources": {"requests": {"cpu": "-1"}}})),
            'spec.podSets[0].template.spec.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            workload(pod_set(container={"resources": {"limits": {"cpu": "-500m"}}})),
            'spec.podSets[0].template.spec.containers[0].resources.limits[cpu]: Invalid value: "-500m": must be greater than or equal to 0',
        ),
        (
            workload(pod_set(minCount=1, count=2), elastic_job="true"),
            "spec.podSets: Invalid value: 1: partial admission and elastic job cannot be used together",
        ),
        (workload(status={"conditions": RESERVED}), "status.admission: Required value: must be set while the QuotaReserved condition is true"),
        (
            workload(status={"reclaimablePods": [{"name": "main", "count": 2}]}),
            "status.reclaimablePods[main].count: Invalid value: 2: should be less or equal to 1",
        ),
        (
            workload(status={"reclaimablePods": [{"name": "x", "count": 0}]}),
            'status.reclaimablePods[x].name: Unsupported value: "x": supported values: "main"',
        ),
        (
            workload(pod_set("b"), pod_set("a"), status={"admissionChecks": [{"name": "ac", "state": "Ready", "podSetUpdates": [{"name": "x"}]}]}),
            'status.admissionChecks[0].podSetUpdates[0].name: Unsupported value: "x": supported values: "a", "b"',
        ),
        (
            workload(pod_set(topologyRequest={"podsetSliceRequiredTopologyConstraints": [{"topology": "rack", "size": 0}]})),
            "spec.podSets[0].topologyRequest.podsetSliceRequiredTopologyConstraints[0].size: Invalid value: 0: must be greater than 0",
        ),
    ],
)
def test_workload_refusals(wrong: Tree, said: str) -> None:
    """Each fault of a Workload is told with its path, its value and upstream's words."""
    assert texts(workload_errors(wrong, None, GATES)) == [said]


def test_workload_rules_are_gated() -> None:
    """Signs of quantities and metadata of templates are looked at while their gates are on."""
    wrong = workload(pod_set(container={"resources": {"requests": {"cpu": "-1"}}}, metadata={"labels": {"@": "b"}}))
    off = GATES.with_overrides({"WorkloadValidateResourcesAreNonNegative": False, "WorkloadValidationForPodSetMetadata": False})
    assert workload_errors(wrong, None, off) == []
    assert [each.split(":")[0] for each in texts(workload_errors(wrong, None, GATES))] == [
        "spec.podSets[0].template.metadata.labels",
        "spec.podSets[0].template.spec.containers[0].resources.requests[cpu]",
    ]


def test_pod_sets_with_quota_may_only_shrink() -> None:
    """While quota is held a pod set may get smaller, as elastic jobs do, and nothing else; without their gate not even that."""
    old = workload(pod_set(count=3), status=held(3))
    grown = {**old, "spec": {"podSets": [pod_set(count=4)]}}
    shrunk = {**old, "spec": {"podSets": [pod_set(count=2)]}}
    # shown in the order of Go's struct: the template before the count
    shown = '{"name":"main","template":{"metadata":{},"spec":{"containers":[{"name":"c"}]}},"count":4}'
    assert texts(workload_errors(grown, old, GATES)) == [f"spec.podSets.0: Invalid value: {shown}: field is immutable"]
    assert workload_errors(shrunk, old, GATES) == []
    assert len(workload_errors(shrunk, old, GATES.with_overrides({"ElasticJobsViaWorkloadSlices": False}))) == 1


def test_reclaimable_pods_only_grow_but_of_what_has_shrunk() -> None:
    """Pods given back stay given back while quota is held, except those of an elastic job that is smaller now than it was admitted."""
    reclaimed = [{"name": "main", "count": 9}]
    for marks, sizes, said in (
        ({}, 20, ["status.reclaimablePods[main].count: Invalid value: 1: cannot be less than 9"]),
        ({"elastic_job": "true"}, 20, ["status.reclaimablePods[main].count: Invalid value: 1: cannot be less than 9"]),
        ({"elastic_job": "true"}, 10, []),
    ):
        old = workload(pod_set(count=sizes), status=held(20, reclaimablePods=reclaimed), **marks)
        new = {**old, "status": held(20, reclaimablePods=[{"name": "main", "count": 1}])}
        assert texts(workload_errors(new, old, GATES)) == said
    gone = {**old, "status": held(20)}
    assert workload_errors(gone, old, GATES) == []
    stale = workload(pod_set(count=5), status=held(20, reclaimablePods=reclaimed), elastic_job="true")
    assert workload_errors(stale, old, GATES) == [], "what was true before an elastic job shrank is no fault of the write that shrinks it"


def test_a_cluster_is_chosen_among_the_nominated() -> None:
    """clusterName may only become a nominated cluster, unless the Workload is the next slice of an elastic job."""
    said = ['status.clusterName: Invalid value: "a": when setting clusterName it must be one of the nominatedClusterNames']
    for nominated, wanted in (([], said), (["b"], said), (["a", "b"], [])):
        old = workload(status={"nominatedClusterNames": nominated})
        assert texts(workload_errors({**old, "status": {"clusterName": "a"}}, old, GATES)) == wanted
    old = workload(workload_slice_replacement_for="ns/w0")
    assert workload_errors({**old, "status": {"clusterName": "a"}}, old, GATES) == []


@pytest.mark.parametrize(
    "value, said",
    [
        ("a.io/x, b.io/y", []),
        ("a.io/x,", ['Invalid value: "a.io/x,": cannot contain empty gate names']),
        ("a.io/x,a.io/x", ['Invalid value: "a.io/x,a.io/x": duplicate gate name: a.io/x']),
        ("x", ['Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")']),
        ("a.io/" + "x" * 60, ["Too long: may not be more than 63 bytes"]),
    ],
)
def test_admission_gates(value: str, said: list[str]) -> None:
    """Names of admission gates are paths with a domain, each once, at most 63 bytes long."""
    assert texts(gate_errors(workload(admission_gated_by=value), None)) == [f"metadata.annotations[{K}admission-gated-by]: {each}" for each in said]


def job(labels: dict[str, str] | None = None, *, kind: str = "Job", pod: dict[str, str] | None = None, suspend: bool = True, **marks: str) -> Tree:
    """Return a Job with marks of Kueue."""
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "jobset.x-k8s.io/v1alpha2",
        "kind": kind,
        "metadata": {
            "name": "j",
            "labels": {f"{K}{key}": value for key, value in (labels or {}).items()},
            "annotations": {f"{K}{key.replace('_', '-')}": value for key, value in marks.items()},
        },
        "spec": {
            "suspend": suspend,
            "parallelism": 3,
            "completions": 3,
            "template": {"metadata": {"annotations": {f"{K}{key}": value for key, value in (pod or {}).items()}}, "spec": {"containers": []}},
        },
    }


def all_errors(new: Tree, old: Tree | None = None) -> list[str]:
    """Return what is wrong with a Job."""
    found = list(create_errors(new, GATES))
    if old is not None:
        suspended, was = new["spec"]["suspend"], old["spec"]["suspend"]
        found += update_errors(new, old, GATES, suspended=suspended, was_suspended=was, default=False)
    return list(dict.fromkeys(texts([*found, *job_errors(new, old, GATES)])))


@pytest.mark.parametrize(
    "wrong, said",
    [
        (
            job({"max-exec-time-seconds": "soon"}),
            f'labels[{K}max-exec-time-seconds]: Invalid value: "soon": strconv.Atoi: parsing "soon": invalid syntax',
        ),
        (job({"max-exec-time-seconds": "0"}), f"labels[{K}max-exec-time-seconds]: Invalid value: 0: should be greater than 0"),
        (
            job(job_min_parallelism="1", elastic_job="true"),
            f'annotations[{K}job-min-parallelism]: Invalid value: "1": partial admission and elastic job cannot be used together',
        ),
        (job(job_min_parallelism="3"), f"annotations[{K}job-min-parallelism]: Invalid value: 3: should be between 0 and 2"),
        (
            job(job_completions_equal_parallelism="true"),
            f'annotations[{K}job-completions-equal-parallelism]: Invalid value: "true": should not be enabled for NonIndexed jobs',
        ),
        (
            job(job_completions_equal_parallelism="yes"),
            f'annotations[{K}job-completions-equal-parallelism]: Invalid value: "yes": strconv.ParseBool: parsing "yes": invalid syntax',
        ),
    ],
)
def test_job_refusals(wrong: Tree, said: str) -> None:
    """Each fault of a Job is told with its path, its value and upstream's words."""
    assert all_errors(wrong) == [f"metadata.{said}"]


def test_a_queue_label_may_be_missing_but_not_empty() -> None:
    """An empty queue name is no name."""
    (said,) = all_errors(job({"queue-name": ""}))
    assert said.startswith(f'metadata.labels[{K}queue-name]: Invalid value: "": a lowercase RFC 1123 subdomain must consist of')


def test_elastic_is_for_jobs() -> None:
    """A JobSet cannot be elastic."""
    wanted = f'metadata.annotations[{K}elastic-job]: Forbidden: elastic job is not supported for "jobset.x-k8s.io/v1alpha2, Kind=JobSet"'
    assert texts(create_errors(job(kind="JobSet", elastic_job="true"), GATES)) == [wanted]
    assert list(create_errors(job(kind="JobSet", elastic_job="false"), GATES)) == []


def test_elastic_jobs_take_no_level() -> None:
    """An elastic Job asks for no level of the topology."""
    path = f"spec.template.metadata.annotations.{K}podset-required-topology"
    assert all_errors(job(elastic_job="true", pod={"podset-required-topology": "rack"})) == [
        f"{path}: Forbidden: required topology is not supported with elastic jobs"
    ]


def test_job_updates() -> None:
    """A running Job keeps its marks; a suspended one gets a priority class, and keeps it then."""
    assert all_errors(job({"priority-class": "p"}, suspend=False), job(suspend=False)) == [
        f'metadata.labels[{K}priority-class]: Invalid value: "p": WorkloadPriorityClass cannot be added to a non-suspended workload'
    ]
    assert all_errors(job({"priority-class": "p"}), job(suspend=False)) == []
    assert all_errors(job(elastic_job="true"), job()) == [f"metadata.annotations[{K}elastic-job]: Invalid value: true: field is immutable"]
    assert all_errors(job({"max-exec-time-seconds": "5"}, suspend=False), job()) == [
        f'metadata.labels[{K}max-exec-time-seconds]: Invalid value: "5": field is immutable'
    ]
    assert all_errors(job(suspend=False, prebuilt_workload_name="b"), job(suspend=False, prebuilt_workload_name="a")) == [
        f'metadata.annotations[{K}prebuilt-workload-name]: Invalid value: "b": field is immutable'
    ]
    running, equal = job(suspend=False), job(suspend=False, job_completions_equal_parallelism="true")
    equal["spec"]["completionMode"] = running["spec"]["completionMode"] = "Indexed"
    assert all_errors(equal, running) == [
        f"metadata.annotations[{K}job-completions-equal-parallelism]: Forbidden: field is immutable while the job is not suspended"
    ]


def test_job_sets_name_their_templates() -> None:
    """Paths in a JobSet go down to the pod template; annotations that cannot be read at all are told as they are."""

    def job_set(**marks: str) -> Tree:
        template = {"metadata": {"annotations": {f"{K}{key.replace('_', '-')}": value for key, value in marks.items()}}, "spec": {}}
        return {"spec": {"replicatedJobs": [{"name": "a", "replicas": 1, "template": {"spec": {"template": template, "parallelism": 1}}}]}}

    path = "spec.replicatedJobs[0].template.spec.template.metadata.annotations"
    (said,) = texts(job_set_errors(job_set(podset_required_topology="rack", podset_slice_size="2"), None, GATES))[:1]
    assert said == f"{path}[{K}podset-slice-size]: Forbidden: may not be set when '{K}podset-slice-required-topology' is not specified"
    with pytest.raises(Denied, match=r'^strconv\.ParseInt: parsing "two": invalid syntax$'):
        list(job_set_errors(job_set(podset_slice_required_topology="rack", podset_slice_size="two"), None, GATES))


def test_topology_annotations() -> None:
    """Contradictions of topology annotations are told without the value, layers with where they are."""

    def said(**marks: str) -> list[str]:
        template = {"metadata": {"annotations": {f"{K}podset-{key.replace('_', '-')}": value for key, value in marks.items()}}}
        return texts([*template_errors(template, "a", GATES), *size_errors(template, "a", 4)])

    kinds = ", ".join(f'"{K}podset-{each}-topology"' for each in ("required", "preferred", "unconstrained"))
    assert said(required_topology="r", unconstrained_topology="true") == [
        f"a: Invalid value: must not contain more than one topology annotation: [{kinds}]"
    ]
    layers = f"a[{K}podset-slice-required-topology-constraints]"
    key = "slice_required_topology_constraints"
    twice = '[{"topology":"b","size":4},{"topology":"b","size":3}]'
    assert said(**{key: twice}) == [
        f'{layers}[1].topology: Duplicate value: "b (also at index 0)"',
        f"{layers}[1].size: Invalid value: 3: must evenly divide the parent layer size 4",
    ]
    assert said(**{key: '[{"topology":"b","size":8}]'}) == [f"{layers}: Invalid value: 8: must not be greater than pod set count 4"]
    (group,) = said(required_topology="r", group_name="g", **{key: '[{"topology":"b","size":4}]'})
    assert group == f"a[{K}podset-group-name]: Forbidden: may not be set when '{K}podset-slice-required-topology-constraints' is specified"


def test_groups_of_pod_sets() -> None:
    """What is wrong with a group is told of both its pod sets."""
    one, two = ({"metadata": {"annotations": {f"{K}podset-required-topology": each, f"{K}podset-group-name": "g"}}} for each in ("rack", "block"))
    found = texts(group_errors([(one, "a", 2), (two, "b", 3)]))
    words = "can only define groups where at least one pod set has only 1 replica, got: 2 replica(s) and 3 replica(s) in the group"
    same = f"must specify '{K}podset-required-topology' or '{K}podset-preferred-topology' topology consistent with"
    assert found == [
        f'a[{K}podset-group-name]: Invalid value: "g": {words}',
        f'b[{K}podset-group-name]: Invalid value: "g": {words}',
        f"a: Invalid value: {same} 'b' in group 'g'",
        f"b: Invalid value: {same} 'a' in group 'g'",
    ]


def test_pod_groups() -> None:
    """A group is named by annotation or label, and the refusal names the same."""

    def pod(labels: dict[str, str], **marks: str) -> Tree:
        annotations = {f"{K}{key.replace('_', '-')}": value for key, value in marks.items()}
        return {"metadata": {"labels": {f"{K}{key}": value for key, value in labels.items()}, "annotations": annotations}}

    total = f"metadata.annotations[{K}pod-group-total-count]"
    both = f"both the '{K}pod-group-total-count' annotation and the '{K}pod-group-name'"
    assert texts(pod_errors(pod({"pod-group-name": "g"}))) == [f"{total}: Required value: {both} label should be set"]
    assert texts(pod_errors(pod({}, pod_group_name="g"))) == [f"{total}: Required value: {both} annotation should be set"]
    assert texts(pod_errors(pod({}, pod_group_total_count="2"))) == [
        f"metadata.labels[{K}pod-group-name]: Required value: {both} label should be set"
    ]
    wrong = f"incorrect annotation value '{K}pod-group-total-count=0': group total count should be greater than zero"
    assert texts(pod_errors(pod({"pod-group-name": "g"}, pod_group_total_count="0"))) == [f'{total}: Invalid value: "0": {wrong}']


def test_shape_of_served_pods() -> None:
    """What a changed template may not change is told with the field that changed."""
    container: Tree = {"name": "a", "resources": {"requests": {"cpu": "1"}}}
    old: Tree = {"containers": [container], "nodeSelector": {"a": "b"}}
    assert list(shape_errors({**old, "containers": [{**container, "name": "b", "image": "new"}]}, old, "s")) == []
    assert sorted(texts(shape_errors({"containers": [{"resources": {"requests": {"cpu": "2"}}}]}, old, "s"))) == [
        's.containers[0].resources.requests: Invalid value: {"cpu":"2"}: field is immutable',
        "s.nodeSelector: Invalid value: null: field is immutable",
    ]


def test_role_hash_of_pod_level_resources() -> None:
    """Resources of a pod as a whole tell roles apart."""
    plain: Tree = {"containers": []}
    assert len({role_hash(each) for each in (plain, {**plain, "resources": {}}, {**plain, "resources": {"requests": {"cpu": "1"}}})}) == 3


def groups(flavors: int, resources: int) -> list[Tree]:
    """Return a resource group."""
    covered = [f"example.com/r{number}" for number in range(resources)]
    quotas = [{"name": name, "nominalQuota": "1"} for name in covered]
    return [{"coveredResources": covered, "flavors": [{"name": f"f{number}", "resources": quotas} for number in range(flavors)]}]


def test_limits_of_cluster_queues() -> None:
    """A resource group has at most 512 pairs; a Cohort may have more."""
    spec = {"resourceGroups": groups(27, 19)}
    said = "spec.resourceGroups[0]: Invalid value: 513: number of flavor-resource combinations in a resourceGroup must be ≤ 512, got 513"
    assert texts(cluster_queue_errors({"spec": spec}, None, GATES)) == [said]
    assert cohort_errors({"spec": spec}) == []


def test_flavors_of_checks_after_an_update() -> None:
    """Flavors of a check that were wrong before pass while check and flavors stay as they are, unless the gate says otherwise."""

    def queue(*on: str, strategy: str) -> Tree:
        checks = {"admissionChecks": [{"name": "ac", "onFlavors": list(on)}]}
        return {"spec": {"resourceGroups": groups(1, 1), "admissionChecksStrategy": checks, "queueingStrategy": strategy}}

    old = queue("x", "y", strategy="StrictFIFO")
    assert cluster_queue_errors(queue("y", "x", strategy="BestEffortFIFO"), old, GATES) == []
    strict = GATES.with_overrides({"RejectUpdatesToCQWithInvalidOnFlavors": True})
    assert len(cluster_queue_errors(queue("y", "x", strategy="BestEffortFIFO"), old, strict)) == 2
    assert texts(cluster_queue_errors(queue("y", strategy="StrictFIFO"), old, GATES)) == [
        'spec.admissionChecksStrategy.admissionChecks[0].onFlavors[0]: Unsupported value: "y": supported values: "f0"'
    ]


def test_tolerations_of_flavors() -> None:
    """The key of a flavor's toleration is a label key."""
    (said,) = texts(flavor_errors({"spec": {"tolerations": [{"key": "@a", "operator": "Exists"}]}}))
    assert said.startswith('spec.tolerations[0].key: Invalid value: "@a": name part must consist of')


def test_numbers_as_go_reads_them() -> None:
    """Only ASCII digits with a sign are a number, within its width."""
    assert [read_int(each) for each in ("7", "-7", "+7", "", "1_0", "٣", " 1")] == [7, -7, 7, None, None, None, None]
    assert read_int("2147483648", bits=32) is None
    assert int_fault("9" * 30).endswith("value out of range")
