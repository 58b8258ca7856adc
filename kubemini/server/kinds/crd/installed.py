"""The definitions of the kinds we own, as on a cluster on which their operators are installed: established, with schemas spelled out.

They say what is served and decide nothing of it: such a kind is served as kubemini knows it, whatever schema or columns a user's manifest states
(`kubemini.server.kinds.crd.serving`). No field manager owns their spec, so that the operators' own manifests can be applied over them without a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubemini.api.embedded import expanded
from kubemini.api.operators import OWNED_KINDS
from kubemini.api.owned import OwnedKind, crd_of
from kubemini.api.trees import Tree
from kubemini.runtime.env import Env
from kubemini.server.kinds.owned import EMBEDDED

CONVERTED: Final = frozenset({"clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"})
"""The kinds whose versions Kueue converts by a webhook."""
_WEBHOOK: Final[Tree] = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"service": {"namespace": "kueue-system", "name": "kueue-webhook-service", "path": "/convert", "port": 443}},
        "conversionReviewVersions": ["v1"],
    },
}
_EVERY: Final[Tree] = {".": {}}
_STATUS_FIELDS: Final[Tree] = {
    "f:status": {
        "f:acceptedNames": {"f:kind": {}, "f:listKind": {}, "f:plural": {}, "f:singular": {}},
        "f:conditions": {'k:{"type":"Established"}': _EVERY, 'k:{"type":"NamesAccepted"}': _EVERY},
    }
}


def installed(env: Env, stamp: str) -> Iterator[Tree]:
    """Yield the definition of each kind we own, as it is stored; `stamp` is when the operators were installed."""
    known: dict[str, Tree] = {}
    for kind in OWNED_KINDS:
        yield _definition(kind, env.uid(), stamp, known)


def _definition(kind: OwnedKind, uid: str, stamp: str, known: dict[str, Tree]) -> Tree:
    crd = crd_of(kind)
    spec = crd["spec"]
    versions = [{**each, "schema": {"openAPIV3Schema": _spelled_out(each["schema"]["openAPIV3Schema"], known)}} for each in spec["versions"]]
    conversion: Tree = _WEBHOOK if kind.plural in CONVERTED else {"strategy": "None"}
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", stamp),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", stamp),
    ]
    managed = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": crd["apiVersion"],
        "time": stamp,
        "fieldsType": "FieldsV1",
        "fieldsV1": _STATUS_FIELDS,
        "subresource": "status",
    }
    return {
        "apiVersion": crd["apiVersion"],
        "kind": crd["kind"],
        "metadata": {"name": crd["metadata"]["name"], "uid": uid, "creationTimestamp": stamp, "generation": 1, "managedFields": [managed]},
        "spec": {**spec, "versions": versions, "conversion": conversion},
        "status": {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": [kind.versions[0].name]},
    }


def _spelled_out(schema: Tree, known: dict[str, Tree]) -> Tree:
    root = expanded(schema, EMBEDDED, known)
    return {**root, "properties": {**root["properties"], "metadata": {"type": "object"}}}  # a definition must not describe it


def _condition(type_: str, reason: str, message: str, stamp: str) -> Tree:
    return {"type": type_, "status": "True", "lastTransitionTime": stamp, "reason": reason, "message": message}
