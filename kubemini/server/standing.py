"""What an API server keeps in its store by itself: APIServices, flow control, the range of cluster IPs and which are taken, and the definitions of installed operators.

Few clusters are asked for any of it, so each resource is filled when somebody first asks (`Facade.late`). Mirrors kube-apiserver's autoregistration of APIServices and the
bootstrap configuration of API priority and fairness (1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS
from kubemini.api.trees import Tree
from kubemini.machinery.aggregation import AggregatedApi
from kubemini.server.kinds.core.service_allocation import ALLOCATOR, MANAGED_BY, RANGE
from kubemini.server.kinds.core.service_shape import HEADLESS
from kubemini.server.requests import ApiServer

API_SERVICES: Final = "apiservices.apiregistration.k8s.io"
ADDRESSES: Final = "ipaddresses.networking.k8s.io"
AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
_GROUPS: Final[Mapping[str, int]] = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
    "resource.k8s.io": 15900,
    "storagemigration.k8s.io": 15800,
}
"""The priority of each built-in group; 1000 for those of definitions."""
_VERSIONS: Final[Mapping[tuple[str, str], int]] = {("", "v1"): 1, ("autoscaling", "v2"): 30, ("flowcontrol.apiserver.k8s.io", "v1"): 21}
_UNREGISTERED: Final = frozenset(("apiregistration.k8s.io",))
"""Groups of the aggregator itself, which has no entry for them."""
_SERVERS: Final[Mapping[str, tuple[str, str]]] = {
    "metrics.k8s.io": ("kube-system", "metrics-server"),
    "visibility.kueue.x-k8s.io": ("kueue-system", "kueue-visibility-server"),
}
"""Namespace and Service of the servers that are aggregated on a real cluster."""


class Standing:
    """These objects of one server. `apis` are the APIs that controllers serve, `began` the time stamp that the objects carry."""

    def __init__(self, server: ApiServer, apis: Callable[[], tuple[AggregatedApi, ...]], began: str) -> None:
        self._server = server
        self._apis = apis
        self._began = began
        self._made: set[str] = set()

    def makers(self) -> dict[str, Callable[[], None]]:
        """Return what to call before a resource is looked at, by storage name."""
        once: dict[str, Callable[[], Iterator[Tree]]] = {
            CUSTOM_RESOURCE_DEFINITIONS.storage: self._definitions,
            "flowschemas.flowcontrol.apiserver.k8s.io": lambda: flow_schemas(self._began),
            "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": priority_levels,
            "servicecidrs.networking.k8s.io": self._ranges,
        }
        return {API_SERVICES: self._register, ADDRESSES: self._addresses, **{name: self._once(name, make) for name, make in once.items()}}

    def _once(self, storage: str, make: Callable[[], Iterator[Tree]]) -> Callable[[], None]:
        def made() -> None:
            if storage not in self._made:
                self._made.add(storage)
                for obj in make():
                    self._put(storage, obj)

        return made

    def _put(self, storage: str, obj: Tree) -> None:
        table, meta = self._server.store.table(storage), obj["metadata"]
        if table.get(meta["name"]) is None:
            fresh = {"name": meta["name"], "uid": self._server.env.uid(), "creationTimestamp": self._began}
            table.create(meta["name"], {**obj, "metadata": {**fresh, **meta}})

    def _definitions(self) -> Iterator[Tree]:
        from kubemini.server.kinds.crd.installed import installed

        return installed(self._server.env, self._began)

    def _ranges(self) -> Iterator[Tree]:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": self._began, "reason": "", "message": "Kubernetes Service CIDR is ready"}
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": "kubernetes", "finalizers": ["networking.k8s.io/service-cidr-finalizer"]},
            "spec": {"cidrs": [str(RANGE)]},
            "status": {"conditions": [ready]},
        }

    def _addresses(self) -> None:
        """Bring the IPAddresses in step with the Services: each cluster IP has one, also after somebody deleted it."""
        table = self._server.store.table(ADDRESSES)
        wanted: dict[str, Tree] = {}
        for record in self._server.store.table("services").values():
            meta = record.obj["metadata"]
            for address in record.obj["spec"].get("clusterIPs") or ():
                if address != HEADLESS:
                    parent = {"namespace": meta["namespace"], "name": meta["name"], "resource": "services"}
                    wanted[address] = _address(address, parent, meta["creationTimestamp"])
        for record in list(table.values()):
            labels: Mapping[str, str] = record.obj["metadata"].get("labels") or {}
            mine = labels.get(MANAGED_BY) == ALLOCATOR
            if mine and (record.key not in wanted or wanted[record.key]["spec"] != record.obj["spec"]):
                table.delete(record.key)
        for obj in wanted.values():
            self._put(ADDRESSES, obj)

    # ------------------------------------------------------------------ APIServices

    def _register(self) -> None:
        """Bring the APIServices in step with what is served: each version of a group has one, also after somebody deleted it."""
        registry, table = self._server.registry, self._server.store.table(API_SERVICES)
        custom = {kind.group for kind in registry if kind.custom}
        found = {**registry.group_versions(), **{api.group: list(api.versions) for api in self._apis()}}
        wanted = {
            f"{version}.{group}": (group, version, group in custom)
            for group, versions in found.items()
            if group not in _UNREGISTERED
            for version in versions
        }
        for record in list(table.values()):
            labels: Mapping[str, str] = record.obj["metadata"].get("labels") or {}
            if labels.get(AUTOMANAGED) and record.key not in wanted:
                table.delete(record.key)
        for name, (group, version, defined) in wanted.items():
            if table.get(name) is None:
                self._put(API_SERVICES, self._api_service(name, group, version, defined=defined))

    def _api_service(self, name: str, group: str, version: str, *, defined: bool) -> Tree:
        server = _SERVERS.get(group)
        spec: Tree = {"group": group, "version": version} if group else {"version": version}
        if server is not None:
            spec |= {"service": {"namespace": server[0], "name": server[1], "port": 443}, "insecureSkipTLSVerify": True}
            reason, message = "Passed", "all checks passed"
        else:
            reason, message = "Local", "Local APIServices are always available"
        builtin = group in _GROUPS
        spec["groupPriorityMinimum"] = _GROUPS[group] if builtin else 100 if server is not None else 1000
        spec["versionPriority"] = _version_priority(group, version) if builtin else 100
        labels = {AUTOMANAGED: "true" if defined else "onstart"} if server is None else {}
        condition = {"type": "Available", "status": "True", "lastTransitionTime": self._began, "reason": reason, "message": message}
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": name, **({"labels": labels} if labels else {})},
            "spec": spec,
            "status": {"conditions": [condition]},
        }


def _version_priority(group: str, version: str) -> int:
    return _VERSIONS.get((group, version)) or (9 if "alpha" in version else 12 if "beta" in version else 15)


# ---------------------------------------------------------------------- flow control


_EVERYTHING: Final[Tree] = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
_LEASES: Final[Tree] = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}
_EVERYBODY: Final = ("Group/system:unauthenticated", "Group/system:authenticated")
_SCHEMAS: Final[tuple[tuple[str, str, int, str, tuple[str, ...], Tree], ...]] = (
    ("exempt", "exempt", 1, "", ("Group/system:masters",), _EVERYTHING),
    ("probes", "exempt", 2, "", _EVERYBODY, {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]}),
    (
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        ("User/system:kube-controller-manager", "User/system:kube-scheduler", "ServiceAccount/*"),
        {"resourceRules": [{"verbs": ["get", "create", "update"], **_LEASES}]},
    ),
    (
        "system-node-high",
        "node-high",
        400,
        "ByUser",
        ("Group/system:nodes",),
        {
            "resourceRules": [
                {"verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"], "clusterScope": True, "namespaces": ["*"]},
                {"verbs": ["*"], **_LEASES},
            ]
        },
    ),
    ("system-nodes", "system", 500, "ByUser", ("Group/system:nodes",), _EVERYTHING),
    ("kube-controller-manager", "workload-high", 800, "ByNamespace", ("User/system:kube-controller-manager",), _EVERYTHING),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", ("User/system:kube-scheduler",), _EVERYTHING),
    ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", ("ServiceAccount/*",), _EVERYTHING),
    ("service-accounts", "workload-low", 9000, "ByUser", ("Group/system:serviceaccounts",), _EVERYTHING),
    ("global-default", "global-default", 9900, "ByUser", _EVERYBODY, _EVERYTHING),
    ("catch-all", "catch-all", 10000, "ByUser", _EVERYBODY, _EVERYTHING),
)
"""Name, priority level, precedence, how flows are told apart, subjects, rules."""
_LEVELS: Final[tuple[tuple[str, int, int, tuple[int, int] | None], ...]] = (
    ("catch-all", 5, 0, None),
    ("global-default", 20, 50, (128, 6)),
    ("leader-election", 10, 0, (16, 4)),
    ("node-high", 40, 25, (64, 6)),
    ("system", 30, 33, (64, 6)),
    ("workload-high", 40, 50, (128, 6)),
    ("workload-low", 100, 90, (128, 6)),
)
"""Name, shares, percentage that can be lent, and queues with the size of a hand; without them it rejects."""
_UPDATED: Final = {"apf.kubernetes.io/autoupdate-spec": "true"}


def flow_schemas(stamp: str) -> Iterator[Tree]:
    """Yield the FlowSchemas of a new cluster; `stamp` is when their priority levels were found."""
    for name, level, precedence, method, subjects, rules in _SCHEMAS:
        spec: Tree = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
        if method:
            spec["distinguisherMethod"] = {"type": method}
        spec["rules"] = [{"subjects": [_subject(each) for each in subjects], **rules}]
        found = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" and it exists'
        yield {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {"name": name, "generation": 1, "annotations": _UPDATED},
            "spec": spec,
            "status": {"conditions": [{"type": "Dangling", "status": "False", "lastTransitionTime": stamp, "reason": "Found", "message": found}]},
        }


def _subject(text: str) -> Tree:
    kind, _, name = text.partition("/")
    if kind == "ServiceAccount":
        return {"kind": kind, "serviceAccount": {"namespace": "kube-system", "name": name}}
    return {"kind": kind, kind.lower(): {"name": name}}


def priority_levels() -> Iterator[Tree]:
    """Yield the PriorityLevelConfigurations of a new cluster."""
    exempt: Tree = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}
    yield _level("exempt", exempt)
    for name, shares, lendable, queues in _LEVELS:
        response: Tree = {"type": "Reject"}
        if queues is not None:
            response = {"type": "Queue", "queuing": {"queues": queues[0], "handSize": queues[1], "queueLengthLimit": 50}}
        limited = {"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response}
        yield _level(name, {"type": "Limited", "limited": limited})


def _level(name: str, spec: Tree) -> Tree:
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name, "generation": 1, "annotations": _UPDATED},
        "spec": spec,
        "status": {},
    }


def _address(address: str, parent: Tree, since: str) -> Tree:
    labels = {"ipaddress.kubernetes.io/ip-family": "IPv6" if ":" in address else "IPv4", MANAGED_BY: ALLOCATOR}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {"name": address, "labels": labels, "creationTimestamp": since},
        "spec": {"parentRef": parent},
    }
