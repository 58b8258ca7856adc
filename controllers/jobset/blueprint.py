"""How the Jobs of a role are made: names, labels, annotations and the pod template, of which they share what they can.

Everything that does not depend on a Job's index is worked out once per role, and the pod spec is the very same object in every Job of the role: what
is remembered by identity further on (decoding, validation, resource sums, scheduling) is done once for all their pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1

from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset import networking, volumes
from kubemini.controllers.jobset.view import JobSetView, Role, job_name
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.machinery.schema.contract import Undecodable
from kubemini.runtime.keys import owner_reference

NO_SCHEDULE_TOLERATION: Tree = {"key": names.NO_SCHEDULE, "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The Jobs of one role of one JobSet."""

    jobset: str
    namespace: str
    role: Role
    owners: list[Tree]
    keys: Tree
    """What is the same for all Jobs of the role, as labels and annotations alike."""
    exclusive: Tree
    """Annotations of exclusive placement, empty without."""
    first_index: int
    """How many Jobs the roles before this one have: what is added to an index to give the global one."""
    first_group_index: int
    """The same among the roles of its group."""
    pod_spec: Tree

    @classmethod
    def of(cls, js: JobSetView, role: Role, version: str = DEFAULT_VERSION) -> Blueprint:
        """Prepare what all Jobs of a role share."""
        before = js.roles[: next(index for index, each in enumerate(js.roles) if each.name == role.name)]
        group = [each for each in js.roles if each.group == role.group]
        keys = {
            names.NAME: js.name,
            names.UID: js.uid,
            names.REPLICATED_JOB: role.name,
            names.REPLICATED_JOB_REPLICAS: str(role.replicas),
            names.GLOBAL_REPLICAS: str(js.replicas),
            names.GROUP_NAME: role.group,
            names.GROUP_REPLICAS: str(sum(each.replicas for each in group)),
        }
        if endpoint := networking.coordinator(js.spec, js.name):
            keys[names.COORDINATOR] = endpoint
        return cls(
            jobset=js.name,
            namespace=js.namespace,
            role=role,
            owners=[owner_reference(js.tree)],
            keys=keys,
            exclusive=_exclusive(js.meta.get("annotations") or {}, role.template_meta.get("annotations") or {}),
            first_index=sum(each.replicas for each in before),
            first_group_index=sum(each.replicas for each in before if each.group == role.group),
            pod_spec=_pod_spec(js, role, version),
        )

    def make(self, index: int, *, attempt: int, suspended: bool, job_attempt: int | None = None) -> Tree:
        """Return a new Job; `attempt` counts the restarts of the JobSet, `job_attempt` those of this Job alone (gate RestartJob, else None)."""
        role = self.role
        name = job_name(self.jobset, role.name, index)
        keys = {
            **self.keys,
            names.RESTART_ATTEMPT: str(attempt),
            names.JOB_INDEX: str(index),
            names.JOB_KEY: job_key(self.namespace, name),
            names.JOB_GLOBAL_INDEX: str(self.first_index + index),
            names.JOB_GROUP_INDEX: str(self.first_group_index + index),
        }
        if job_attempt is not None:
            keys[names.JOB_RESTART_ATTEMPT] = str(job_attempt)
        notes = {**keys, **self.exclusive} if self.exclusive else keys
        template_meta = role.pod_template.get("metadata") or {}
        labels, annotations = _over(role.template_meta.get("labels"), keys), _over(role.template_meta.get("annotations"), notes)
        by_selector = names.EXCLUSIVE_TOPOLOGY in annotations and names.NODE_SELECTOR_STRATEGY in annotations
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels, "annotations": annotations, "ownerReferences": self.owners},
            "spec": {
                **role.job_spec,
                "suspend": suspended,
                "template": {
                    **role.pod_template,
                    "metadata": {
                        **template_meta,
                        "labels": _over(template_meta.get("labels"), keys),
                        "annotations": _over(template_meta.get("annotations"), notes),
                    },
                    "spec": _bound_to_nodes(self.pod_spec, self.namespace, name) if by_selector else self.pod_spec,
                },
            },
        }


def job_key(namespace: str, name: str) -> str:
    """Return the hash by which exclusive placement knows a Job.

    >>> job_key("default", "train-worker-0")
    '63c79e68a08cd8d5356753a2246fd6e5af62e94b'
    """
    return sha1(f"{namespace}/{name}".encode(), usedforsecurity=False).hexdigest()


def _exclusive(jobset: Tree, role: Tree) -> Tree:
    """Return the annotations of exclusive placement that Jobs and pods carry; those of the role's template win over the JobSet's."""
    found: Tree = {}
    for level in (jobset, role):
        if names.EXCLUSIVE_TOPOLOGY in level:
            found[names.EXCLUSIVE_TOPOLOGY] = level[names.EXCLUSIVE_TOPOLOGY]
            if names.NODE_SELECTOR_STRATEGY in level:
                found[names.NODE_SELECTOR_STRATEGY] = level[names.NODE_SELECTOR_STRATEGY]
    return found


def _pod_spec(js: JobSetView, role: Role, version: str) -> Tree:
    """Return the pod spec of a role's Jobs, defaulted as the API would: so every Job gets it back as it is, and they all share it."""
    spec = role.pod_spec
    if networking.dns_enabled(js.spec):
        spec = {**spec, "subdomain": networking.subdomain(js.spec, js.name)}
    spec = volumes.with_volumes(spec, js.spec, js.name)
    try:
        probe = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {"template": {"spec": spec}}}
        defaulted: Tree = builtin_schemas(version).codec("batch", "v1", "Job").decode(probe, validation="Ignore").tree["spec"]["template"]["spec"]
    except Undecodable:
        # the API says what is wrong when the first Job is made
        return spec
    return defaulted


def _bound_to_nodes(pod_spec: Tree, namespace: str, name: str) -> Tree:
    """Return the pod spec of one Job under the node-selector strategy: on the nodes that were labelled for it, whatever keeps others off."""
    return {
        **pod_spec,
        "nodeSelector": {**(pod_spec.get("nodeSelector") or {}), names.NAMESPACED_JOB: f"{namespace}_{name}"},
        "tolerations": [*(pod_spec.get("tolerations") or ()), NO_SCHEDULE_TOLERATION],
    }


def _over(given: Tree | None, keys: Tree) -> Tree:
    return {**given, **keys} if given else keys
