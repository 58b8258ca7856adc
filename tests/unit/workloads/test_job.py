"""What the API server makes of a Job: generated selector and labels, counts, what may change, and warnings."""

from __future__ import annotations

import orjson
import pytest
import yaml

from kubemini.api.trees import Tree, set_in
from kubemini.machinery.errors import Invalid
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates
from kubemini.server.kinds import builtin_registry
from kubemini.server.kinds.workloads.job import JobStrategy
from kubemini.server.kinds.workloads.job_update import Openness, validate_job_update
from kubemini.server.options import DeleteOptions
from kubemini.server.strategy import WriteContext
from tests.unit.workloads.bench import Bench

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
"""


def job(**spec: object) -> Tree:
    """Return a small Job with some fields of its spec set."""
    obj: Tree = yaml.safe_load(JOB)
    return {**obj, "spec": {**obj["spec"], **spec}}


def why(error: pytest.ExceptionInfo[Invalid]) -> list[str]:
    """Return the field errors of a refusal."""
    return [f"{each['field']}: {each['message']}" for each in error.value.details["causes"]]


@pytest.mark.parametrize(
    "given,expected",
    [({}, (1, 1)), ({"completions": 3}, (1, 3)), ({"parallelism": 4}, (4, None)), ({"parallelism": 0}, (0, None))],
)
def test_counts_are_filled_together(bench: Bench, given: Tree, expected: tuple[int, int | None]) -> None:
    """parallelism is 1 when absent; completions is 1 only when parallelism is absent too."""
    spec = bench.create(job(**given))["spec"]
    assert (spec["parallelism"], spec.get("completions")) == expected


def test_selector_and_labels_are_generated(bench: Bench) -> None:
    """The selector is the uid under the prefixed key; the template gets name and uid under both keys, and the Job the template's labels."""
    made = bench.create(job())
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert labels == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid,
        "job-name": "a",
    }
    assert made["metadata"]["labels"] == labels


def test_a_name_that_is_no_label_is_the_templates_fault(bench: Bench) -> None:
    """The generated labels of a Job without any are not its own yet when it is checked: a name too long for a label is refused once, at the template."""
    with pytest.raises(Invalid) as error:
        bench.create({**job(), "metadata": {"name": "j" * 64}})
    long = "j" * 64
    assert error.value.message == f'Job.batch "{long}" is invalid: spec.template.labels: Invalid value: "{long}": must be no more than 63 bytes'


def test_a_webhook_sees_the_labels_that_a_job_has_from_its_template(bench: Bench) -> None:
    """Labels of the template are the Job's from the start, for admission to look at; the generated ones come later, to both."""
    template = {"metadata": {"labels": {"queue": "q"}}, "spec": job()["spec"]["template"]["spec"]}
    given = JobStrategy().default(job(template=template), bench.api.context(bench.WRITE))
    assert given["metadata"]["labels"] == {"queue": "q"}
    made = bench.create(job(template=template))
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
    assert made["metadata"]["labels"].keys() > {"queue", "job-name"}


def test_labels_that_a_client_gives_twice_stay_the_jobs_own(bench: Bench) -> None:
    """Who gives the same labels to a Job and to its template gives the Job labels of its own, which the generated ones do not join."""
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": job()["spec"]["template"]["spec"]}
    tree = job(template=template)
    made = bench.create({**tree, "metadata": {**tree["metadata"], "labels": labels}})
    assert made["metadata"]["labels"] == labels


def test_own_labels_of_a_job_stay_alone(bench: Bench) -> None:
    """A Job with labels keeps just those; when they are all taken away it gets the template's."""
    obj = job()
    made = bench.create({**obj, "metadata": {"name": "a", "labels": {"own": "x"}}})
    assert made["metadata"]["labels"] == {"own": "x"}
    again = bench.patch("Job", "a", {"metadata": {"labels": None}})
    assert again["metadata"]["labels"] == again["spec"]["template"]["metadata"]["labels"]


def test_manual_selector_generates_nothing(bench: Bench) -> None:
    """With manualSelector the Job's own selector and labels are all there is, and they must fit."""
    template = {"metadata": {"labels": {"x": "y"}}, "spec": job()["spec"]["template"]["spec"]}
    made = bench.create(job(manualSelector=True, selector={"matchLabels": {"x": "y"}}, template=template))
    assert made["spec"]["template"]["metadata"]["labels"] == {"x": "y"}
    with pytest.raises(Invalid) as error:
        bench.create({**job(manualSelector=True, selector={"matchLabels": {"x": "z"}}, template=template), "metadata": {"name": "b"}})
    assert why(error) == ['spec.template.metadata.labels: Invalid value: {"x":"y"}: `selector` does not match template `labels`']


def test_a_conflicting_label_is_refused(bench: Bench) -> None:
    """A template that names another Job in a generated label is refused at that label."""
    template = {"metadata": {"labels": {"job-name": "other"}}, "spec": job()["spec"]["template"]["spec"]}
    with pytest.raises(Invalid) as error:
        bench.create(job(template=template))
    assert any(each.startswith("spec.template.metadata.labels[job-name]: ") and each.endswith("must be 'a'") for each in why(error))


def test_status_of_a_new_job_is_empty(bench: Bench) -> None:
    """Whatever status a new Job brings is dropped."""
    assert bench.create({**job(), "status": {"active": 3}})["status"] == {}


def test_the_last_hostname_must_be_a_label(bench: Bench) -> None:
    """An Indexed Job is refused when the name of its last pod's host is no DNS label; a NonIndexed one of that name is not."""
    long = "j" * 62
    with pytest.raises(Invalid) as error:
        bench.create({**job(completionMode="Indexed", completions=10, parallelism=1), "metadata": {"name": long}})
    assert why(error) == [f'metadata.name: Invalid value: "{long}": will not able to create pod with invalid DNS label: {long}-9']
    bench.create({**job(), "metadata": {"name": long}})


def test_an_open_template_takes_scheduling_directives_only(bench: Bench) -> None:
    """While a Job that never started is suspended, scheduling directives and resources may change; the image may not."""
    bench.create(job(suspend=True))
    pod = {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "schedulingGates": [{"name": "x.io/g"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}],
                },
            },
        },
    }
    bench.patch("Job", "a", {"spec": {"template": {"metadata": {"annotations": {"n": "1"}}, "spec": pod}}})
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    changed = bench.patch("Job", "a", {"spec": {"suspend": False, "template": {"spec": {"containers": containers}}}})
    assert changed["spec"]["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    "pod",
    [
        {"containers": [{"name": "c", "image": "other"}]},
        {"terminationGracePeriodSeconds": 5},
        {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
        {"hostNetwork": True},
    ],
)
def test_an_open_template_refuses_the_rest(bench: Bench, pod: Tree) -> None:
    """Other fields of an open template are refused at spec.template.spec."""
    bench.create(job(suspend=True))
    with pytest.raises(Invalid) as error:
        bench.patch("Job", "a", {"spec": {"template": {"spec": pod}}})
    (text,) = why(error)
    assert text.startswith("spec.template.spec: ")
    assert text.endswith("field is immutable")


def test_a_template_opens_again_when_the_suspended_job_is_idle(bench: Bench) -> None:
    """A Job that ran is frozen until the Suspended condition is True and no pod is active."""
    bench.create(job(suspend=True))
    edit = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    started = {"startTime": "2026-01-01T00:00:00Z", "active": 1}
    bench.patch("Job", "a", {"status": started}, subresource="status")
    with pytest.raises(Invalid, match=r"spec\.template: Invalid value.*field is immutable"):
        bench.patch("Job", "a", edit)
    suspended = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    bench.patch("Job", "a", {"status": {**started, "conditions": [suspended]}}, subresource="status")
    with pytest.raises(Invalid):
        bench.patch("Job", "a", edit)
    bench.patch("Job", "a", {"status": {"active": 0}}, subresource="status")
    bench.patch("Job", "a", edit)


def test_a_template_is_frozen_while_pods_are_active_though_nothing_says_so(bench: Bench) -> None:
    """A suspended Job that never started by its status, but has active pods, is no idle one."""
    bench.create(job(suspend=True))
    edit = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    bench.patch("Job", "a", {"status": {"active": 1}}, subresource="status")
    with pytest.raises(Invalid, match=r"spec\.template: Invalid value.*field is immutable"):
        bench.patch("Job", "a", edit)
    bench.patch("Job", "a", {"status": {"active": 0}}, subresource="status")
    bench.patch("Job", "a", edit)


NEVER: Tree = {}
RESTS: Tree = {"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]}
BUSY: Tree = {"active": 1}
ROUND: Tree = {"metadata": {"labels": {"round": "2"}}, "spec": {"nodeSelector": {"a": "b"}}}
KEPT: Tree = {"metadata": {"finalizers": ["x.io/kept"]}}
BIGGER: Tree = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
OTHER: Tree = {"spec": {"containers": [{"name": "c", "image": "other"}]}}


@pytest.mark.parametrize(
    "gates,status,edit,refused",
    [
        (Openness(), RESTS, KEPT, ""),
        (Openness(resources=False), RESTS, ROUND, ""),
        (Openness(resources=False), RESTS, BIGGER, "spec.template"),
        (Openness(resources=False), RESTS, KEPT, "spec.template"),
        (Openness(directives=False), NEVER, ROUND, ""),
        (Openness(directives=False), RESTS, ROUND, "spec.template.spec"),
        (Openness(directives=False), RESTS, BIGGER, ""),
        (Openness(directives=False, resources=False), NEVER, ROUND, ""),
        (Openness(directives=False, resources=False), BUSY, ROUND, ""),
        (Openness(directives=False, resources=False), NEVER, BIGGER, "spec.template"),
        (Openness(directives=False, resources=False), RESTS, ROUND, "spec.template"),
        (Openness(), RESTS, OTHER, "spec.template.spec"),
        (Openness(), BUSY, OTHER, "spec.template"),
    ],
)
def test_gates_open_templates(gates: Openness, status: Tree, edit: Tree, refused: str) -> None:
    """Each gate opens its part of the templates of suspended Jobs; without that of directives only Jobs that never started are open, as before 1.35."""
    container: Tree = {"name": "c", "image": "i"}
    spec: Tree = {"containers": [container], **edit.get("spec", {})}
    spec["containers"] = [{**container, **spec["containers"][0]}]
    old: Tree = {"spec": {"suspend": True, "template": {"spec": {"containers": [container]}}}, "status": status}
    new: Tree = {"spec": {"suspend": True, "template": {**edit, "spec": spec}}}
    assert [each.field for each in validate_job_update(new, old, gates)] == [refused][: bool(refused)]


def test_gates_reach_the_strategy() -> None:
    """A cluster's feature gates decide which templates its API server takes."""

    def directives(gates: dict[str, bool]) -> bool:
        jobs = next(each for each in builtin_registry("1.36", enabled=FeatureGates(gates).enabled) if each.plural == "jobs")
        template = {"spec": job()["spec"]["template"]["spec"]}
        old = {"metadata": {"name": "a", "uid": "u"}, "spec": {"suspend": True, "template": template}, "status": RESTS}
        new = {**old, "spec": {"suspend": True, "template": {"spec": {**template["spec"], "nodeSelector": {"a": "b"}}}}}
        found = jobs.strategy.validate_update(new, old, WriteContext(Env(), None))  # type: ignore[arg-type]
        return not any("field is immutable" in str(each) for each in found)

    assert directives({})
    assert not directives({"MutableSchedulingDirectivesForSuspendedJobs": False})


def test_a_fault_of_the_spec_is_among_the_causes_of_an_update_twice(bench: Bench) -> None:
    """Upstream checks the spec of a changed Job by itself, and again beside the old one; the message tells it once."""
    bench.create(job())
    with pytest.raises(Invalid) as error:
        bench.patch("Job", "a", {"spec": {"backoffLimit": -1}})
    text = "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"
    assert error.value.message == f'Job.batch "a" is invalid: {text}'
    assert why(error) == [text, text]


def test_generation_follows_the_spec(bench: Bench) -> None:
    """The generation starts at 1, rises with the spec, and not with labels or status."""
    bench.create(job())
    bench.patch("Job", "a", {"metadata": {"labels": {"x": "y"}}})
    bench.patch("Job", "a", {"status": {"active": 1}}, subresource="status")
    assert bench.get("Job", "a")["metadata"]["generation"] == 1
    assert bench.patch("Job", "a", {"spec": {"parallelism": 2}})["metadata"]["generation"] == 2


def test_deleting_without_a_policy_orphans_the_pods(bench: Bench) -> None:
    """A DELETE that names no propagation leaves the `orphan` finalizer to the garbage collector; one that names Background does not."""
    bench.create(job())
    bench.delete("Job", "a")
    assert bench.get("Job", "a")["metadata"]["finalizers"] == ["orphan"]
    bench.create({**job(), "metadata": {"name": "b"}})
    assert bench.delete("Job", "b", DeleteOptions(propagation="Background")).obj["status"] == "Success"


def test_huge_indexed_jobs_are_advised_against(bench: Bench) -> None:
    """Many completions and much parallelism without a per-index limit are accepted with a warning."""
    strategy = JobStrategy()
    obj = {"metadata": {"name": "a"}, "spec": {"completionMode": "Indexed", "completions": 100_001, "parallelism": 10_001}}
    (text,) = strategy.spec_warnings(obj)
    assert text.startswith("spec: In Indexed Jobs with a number of completions higher than 10^5")
    assert strategy.spec_warnings(set_in(obj, ("spec", "parallelism"), 10_000)) == []


def test_names_with_dots_are_advised_against(bench: Bench) -> None:
    """A Job name that is no DNS label is accepted with a warning."""
    made = bench.create({**job(), "metadata": {"name": "a.b"}})
    (warning,) = JobStrategy().warnings(made, None, bench.api.context(bench.WRITE))
    assert warning.startswith("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; ")
    assert warning.endswith("a DNS label is recommended: [must not contain dots]")


@pytest.mark.parametrize(
    "policy,expected",
    [
        (
            {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": []}}]},
            "values: Invalid value: null: at least one value is required",
        ),
        ({"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [1, 1]}}]}, "values[1]: Duplicate value: 1"),
        (
            {"rules": [{"action": "Count", "onExitCodes": {"operator": "Is", "values": [1]}}]},
            'operator: Unsupported value: "Is": supported values: "In", "NotIn"',
        ),
        (
            {"rules": [{"action": "Count", "onExitCodes": {"containerName": "x", "operator": "NotIn", "values": [0]}}]},
            'containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template',
        ),
        ({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "A", "status": "Maybe"}]}]}, 'status: Unsupported value: "Maybe"'),
        ({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "-"}]}]}, "type: Invalid value"),
    ],
)
def test_pod_failure_policies_are_checked(bench: Bench, policy: Tree, expected: str) -> None:
    """Exit codes are listed once, in order, for a container of the template; conditions are qualified names with a status."""
    with pytest.raises(Invalid) as error:
        bench.create(job(podFailurePolicy=policy))
    assert len(why(error)) == 1
    assert expected in why(error)[0]


@pytest.mark.parametrize(
    "before, after, shown",
    [
        (
            {"podFailurePolicy": {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}]}},
            {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}},
            '{"Rules":[{"Action":"Ignore","OnExitCodes":null,"OnPodConditions":[{"Type":"DisruptionTarget","Status":"True"}]}]}',
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}},
            {"podFailurePolicy": {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}]}},
            '{"Rules":[{"Action":"Count","OnExitCodes":{"ContainerName":null,"Operator":"In","Values":[1]},"OnPodConditions":null}]}',
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}]}},
            {"podFailurePolicy": None},
            "null",
        ),
        (
            {"completionMode": "Indexed", "completions": 2, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}},
            {"successPolicy": {"rules": [{"succeededCount": 1}]}},
            '{"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}',
        ),
    ],
)
def test_policies_stay_and_are_shown_as_upstreams_types(bench: Bench, before: Tree, after: Tree, shown: str) -> None:
    """A changed policy is refused, and shown under the names of Go's fields, those not given included."""
    bench.create(job(**before))
    with pytest.raises(Invalid) as error:
        bench.patch("Job", "a", {"spec": after})
    assert why(error) == [f"spec.{next(iter(after))}: Invalid value: {shown}: field is immutable"]


def test_a_success_policy_needs_indexes(bench: Bench) -> None:
    """Of a Job that counts no indexes a success policy is refused as a whole."""
    with pytest.raises(Invalid) as error:
        bench.create(job(successPolicy={"rules": [{"succeededCount": 1}]}))
    shown = '{"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}'
    assert why(error) == [f"spec.successPolicy: Invalid value: {shown}: requires indexed completion mode"]


def test_a_changed_template_is_shown_as_upstreams_types(bench: Bench) -> None:
    """The refusal shows the whole template that was asked for: Go's names in their order, host namespaces in the security context, HTML escaped."""
    pod = job()["spec"]["template"]["spec"]
    bench.create(job(template={"spec": {**pod, "hostNetwork": True}}))
    container = {**bench.get("Job", "a")["spec"]["template"]["spec"]["containers"][0], "command": ["sh", "-c", "a && b"]}
    with pytest.raises(Invalid) as error:
        bench.patch("Job", "a", {"spec": {"template": {"spec": {"containers": [container]}}}})
    (text,) = why(error)
    shown = orjson.loads(text.removeprefix("spec.template: Invalid value: ").removesuffix(": field is immutable"))
    assert list(shown) == ["labels", "Spec"]
    spec = shown["Spec"]
    assert list(spec)[:6] == ["Volumes", "InitContainers", "Containers", "EphemeralContainers", "RestartPolicy", "TerminationGracePeriodSeconds"]
    assert list(spec)[-5:] == ["SchedulingGates", "ResourceClaims", "Resources", "HostnameOverride", "SchedulingGroup"]
    assert (len(spec), len(spec["Containers"][0]), spec["SecurityContext"]["HostNetwork"]) == (36, 25, True)
    assert '"Command":["sh","-c","a \\u0026\\u0026 b"],"Args":null,"WorkingDir":"","Ports":null,' in text
    assert '"Resources":{"Limits":null,"Requests":null,"Claims":null},' in text


def test_warnings_of_a_template_name_its_own_places(bench: Bench) -> None:
    """Also the other place that a doubled port is compared with."""
    ports = [{"containerPort": 80, "name": "p"}, {"containerPort": 80}, {"containerPort": 81, "name": "p"}]
    pod = {**job()["spec"]["template"]["spec"], "containers": [{"name": "c", "image": "i", "ports": ports}]}
    tree = job(template={"spec": pod})
    first = "spec.template.spec.containers[0].ports[0]"
    assert JobStrategy().warnings(tree, None, bench.api.context(bench.WRITE)) == [
        f"spec.template.spec.containers[0].ports[1]: duplicate port definition with {first}",
        f'spec.template.spec.containers[0].ports[2]: duplicate port name "p" with {first}, services and probes that select ports by name will use {first}',
    ]
