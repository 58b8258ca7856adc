"""Priority: the number behind a pod's priority class. Mirrors ``plugin/pkg/admission/priority`` (1.36)."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.machinery.memo import by_identity
from kubemini.server.admission import Admission, AdmissionRequest
from kubemini.server.strategy import Reader

CLASSES = "priorityclasses.scheduling.k8s.io"
LOWER = "PreemptLowerPriority"


class Priority(Admission):
    """Fills priority and preemption policy of pods; keeps the default class unique."""

    name = "Priority"
    resources = ("pods", CLASSES)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the pod with its priority. Raise `Forbidden` for an unknown class or a number of one's own."""
        if request.operation != "CREATE" or request.kind.storage != "pods":
            return None
        pod = request.obj or {}
        spec = pod["spec"]
        name = spec.get("priorityClassName", "")
        if name:
            found = request.ctx.reader.get(CLASSES, "", name)
            if found is None:
                raise Forbidden.of("pods", "", request.name, f"no PriorityClass with name {name} was found")
        else:
            found = default_class(request.ctx.reader)
            name = found["metadata"]["name"] if found is not None else ""
        value = found.get("value", 0) if found is not None else 0
        policy = (found.get("preemptionPolicy") if found is not None else None) or LOWER
        if spec.get("priority", value) != value:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise Forbidden.of("pods", "", request.name, why)
        if spec.get("preemptionPolicy", policy) != policy:
            why = (
                f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise Forbidden.of("pods", "", request.name, why)
        changes: Tree = {"priority": value, "preemptionPolicy": policy}
        if name and spec.get("priorityClassName") != name:
            changes["priorityClassName"] = name
        return {**pod, "spec": {**spec, **changes}}

    def validate(self, request: AdmissionRequest) -> None:
        """Allow one default class only. Raise `Forbidden`."""
        obj = request.obj or {}
        if request.kind.storage != CLASSES or not obj.get("globalDefault"):
            return
        existing = default_class(request.ctx.reader)
        if existing is not None and existing["metadata"]["name"] != request.name:
            why = f"PriorityClass {existing['metadata']['name']} is already marked as default. Only one default can exist"
            raise Forbidden.of("priorityclasses", "scheduling.k8s.io", request.name, why)


def default_class(reader: Reader) -> Tree | None:
    """Return the default class; of several (made before they were checked) the one with the lowest value."""
    return _default_of(reader.list(CLASSES))[0]


@by_identity(64)
def _default_of(classes: Sequence[Tree]) -> tuple[Tree | None]:
    found = [each for each in classes if each.get("globalDefault")]
    return (min(found, key=lambda each: int(each.get("value", 0))) if found else None,)
