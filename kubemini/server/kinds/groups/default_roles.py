"""The roles and bindings that every cluster starts with. Mirrors ``plugin/pkg/auth/authorizer/rbac/bootstrappolicy`` (1.36), as far as users meet it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubemini.api.trees import Tree

_API_VERSION = "rbac.authorization.k8s.io/v1"
_BOOTSTRAP = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AUTOUPDATE = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_ALL: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Tree:
    rule: Tree = {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def _paths(*paths: str) -> Tree:
    return {"nonResourceURLs": list(paths), "verbs": ["get"]}


_CORE_VIEW = (
    "configmaps", "endpoints", "persistentvolumeclaims", "persistentvolumeclaims/status", "pods", "replicationcontrollers",
    "replicationcontrollers/scale", "serviceaccounts", "services", "services/status",
)  # fmt: skip
_CORE_STATUS = (
    "bindings", "events", "limitranges", "namespaces/status", "pods/log", "pods/status", "replicationcontrollers/status", "resourcequotas",
    "resourcequotas/status",
)  # fmt: skip
_APPS = (
    "controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale", "deployments/status", "replicasets",
    "replicasets/scale", "replicasets/status", "statefulsets", "statefulsets/scale", "statefulsets/status",
)  # fmt: skip
_APPS_EDIT = (
    "daemonsets", "deployments", "deployments/rollback", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets",
    "statefulsets/scale",
)  # fmt: skip
_NETWORK = ("ingresses", "ingresses/status", "networkpolicies")
_RESOURCE = ("resourceclaims", "resourceclaims/status", "resourceclaimtemplates")


def _view_rules() -> list[Tree]:
    return [
        _rule([""], _CORE_VIEW, _READ),
        _rule([""], _CORE_STATUS, _READ),
        _rule([""], ["namespaces"], _READ),
        _rule(["discovery.k8s.io"], ["endpointslices"], _READ),
        _rule(["apps"], _APPS, _READ),
        _rule(["autoscaling"], ["horizontalpodautoscalers", "horizontalpodautoscalers/status"], _READ),
        _rule(["batch"], ["cronjobs", "cronjobs/status", "jobs", "jobs/status"], _READ),
        _rule(["policy"], ["poddisruptionbudgets", "poddisruptionbudgets/status"], _READ),
        _rule(["networking.k8s.io"], _NETWORK, _READ),
        _rule(["resource.k8s.io"], _RESOURCE, _READ),
    ]


def _edit_rules() -> list[Tree]:
    return [
        _rule([""], ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"], _READ),
        _rule([""], ["serviceaccounts"], ["impersonate"]),
        _rule([""], ["pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"], _WRITE),
        _rule([""], ["pods/eviction"], ["create"]),
        _rule(
            [""],
            [
                "configmaps",
                "events",
                "persistentvolumeclaims",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "secrets",
                "serviceaccounts",
                "services",
                "services/proxy",
            ],
            _WRITE,
        ),
        _rule([""], ["serviceaccounts/token"], ["create"]),
        _rule(["apps"], _APPS_EDIT, _WRITE),
        _rule(["autoscaling"], ["horizontalpodautoscalers"], _WRITE),
        _rule(["batch"], ["cronjobs", "jobs"], _WRITE),
        _rule(["policy"], ["poddisruptionbudgets"], _WRITE),
        _rule(["networking.k8s.io"], ["ingresses", "networkpolicies"], _WRITE),
        _rule(["coordination.k8s.io"], ["leases"], _ALL),
        _rule(["resource.k8s.io"], ["resourceclaims", "resourceclaimtemplates"], _WRITE),
    ]


def _admin_rules() -> list[Tree]:
    return [
        _rule(["authorization.k8s.io"], ["localsubjectaccessreviews"], ["create"]),
        _rule(["rbac.authorization.k8s.io"], ["rolebindings", "roles"], _ALL),
    ]


def _role(name: str, rules: list[Tree], *, aggregate_to: str = "", aggregates: str = "") -> Tree:
    labels = {**_BOOTSTRAP, **({f"{_AGGREGATE}{aggregate_to}": "true"} if aggregate_to else {})}
    role: Tree = {
        "apiVersion": _API_VERSION,
        "kind": "ClusterRole",
        "metadata": {"name": name, "annotations": _AUTOUPDATE, "labels": labels},
        "rules": rules,
    }
    if aggregates:
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"{_AGGREGATE}{aggregates}": "true"}}]}
    return role


def _binding(name: str, *groups: str) -> Tree:
    return {
        "apiVersion": _API_VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "annotations": _AUTOUPDATE, "labels": _BOOTSTRAP},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group} for group in groups],
    }


def default_cluster_roles() -> list[Tree]:
    """Return the cluster roles. Those that aggregate others come with their rules filled, as the aggregation controller would."""
    view, edit, admin = _view_rules(), _edit_rules(), _admin_rules()
    reviews = [
        _rule(["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]),
        _rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"]),
    ]
    public = ("/healthz", "/livez", "/readyz", "/version", "/version/")
    return [
        _role("admin", [*admin, *edit, *view], aggregate_to="", aggregates="admin"),
        _role("cluster-admin", [_rule(["*"], ["*"], ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        _role("edit", [*edit, *view], aggregate_to="admin", aggregates="edit"),
        _role("system:aggregate-to-admin", admin, aggregate_to="admin"),
        _role("system:aggregate-to-edit", edit, aggregate_to="edit"),
        _role("system:aggregate-to-view", view, aggregate_to="view"),
        _role("system:auth-delegator", _delegator_rules()),
        _role("system:basic-user", reviews),
        _role(
            "system:discovery",
            [_paths("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/")],
        ),
        _role("system:monitoring", [_paths("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*")]),
        _role("system:public-info-viewer", [_paths(*public)]),
        _role("view", view, aggregate_to="edit", aggregates="view"),
    ]


def _delegator_rules() -> list[Tree]:
    return [
        _rule(["authentication.k8s.io"], ["tokenreviews"], ["create"]),
        _rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
    ]


def default_cluster_role_bindings() -> list[Tree]:
    """Return the cluster role bindings."""
    return [
        _binding("cluster-admin", "system:masters"),
        _binding("system:basic-user", "system:authenticated"),
        _binding("system:discovery", "system:authenticated"),
        _binding("system:monitoring", "system:monitoring"),
        _binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
    ]
