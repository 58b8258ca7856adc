"""What names and endpoints promise. The numbers are those of the list in the documentation of invariants.

A record follows its pod by two controllers' passes, so names are compared with pods at rest; what one EndpointSlice says holds at every commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kubemini.api.resources import ENDPOINT_SLICES, NAMESPACES, PODS, SERVICES, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.endpoints.pods import headless, is_member, is_ready, selects
from kubemini.dns.zone import SERVICE_NAME, Zone
from kubemini.machinery.labels import from_labels
from kubemini.runtime.keys import owner_uids
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View

SLICES = ENDPOINT_SLICES.storage
MANAGER = "endpointslice-controller.k8s.io"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_RESOURCES = {each.storage: each for each in (NAMESPACES, SERVICES, ENDPOINT_SLICES, PODS)}


def dns_invariants(*, lossless: bool = True) -> list[Invariant]:
    """Return all invariants of names and endpoints, fresh: they keep state.

    Unless `lossless`, answers of the API may be lost: a slice whose creation was not answered is made again, and both stand until the next pass.
    """
    return [Endpoints(lossless=lossless), Names()]


class _Reader:
    """A view as the zone reads it."""

    def __init__(self, view: View) -> None:
        self._view = view

    def get(self, resource: str, namespace: str, name: str) -> Tree | None:
        return self._view.get(self._of(resource), namespace, name)

    def list(self, resource: str, namespace: str = "") -> Sequence[Tree]:
        return self._view.list(self._of(resource), namespace)

    @staticmethod
    def _of(storage: str) -> Resource:
        return _RESOURCES[storage]


def _service_of(slice_: Tree) -> str:
    labels = slice_["metadata"].get("labels") or {}
    name: str = labels.get(SERVICE_NAME, "") if labels.get(MANAGED_BY) == MANAGER else ""
    return name


class Endpoints:
    """4, 5, 6, 8: endpoints are pods that live, each once, and named only below the Service that is their subdomain; slices go with their Service."""

    name = "endpoints"

    def __init__(self, *, lossless: bool = True) -> None:
        self._lossless = lossless

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at slices."""
        if table != SLICES or change.new is None or not _service_of(change.new.obj):
            return ()
        return self._check(change.new.obj, view)

    def _check(self, slice_: Tree, view: View) -> Iterator[str]:
        namespace, service = slice_["metadata"]["namespace"], _service_of(slice_)
        seen: dict[tuple[str, str], None] = {}
        for each in view.list(ENDPOINT_SLICES, namespace):
            if _service_of(each) != service or each["addressType"] != slice_["addressType"] or owner_uids(each) != owner_uids(slice_):
                # Those of an earlier Service of the name go with it
                continue
            for endpoint in each.get("endpoints") or ():
                mark = (endpoint["targetRef"]["uid"], endpoint["addresses"][0])
                if mark in seen and self._lossless:
                    yield f"endpoint {endpoint['targetRef']['name']} of {service} stands there twice"
                seen[mark] = None
        for endpoint in slice_.get("endpoints") or ():
            pod = view.get(PODS, namespace, endpoint["targetRef"]["name"])
            named = endpoint.get("hostname")
            if named and pod is not None and pod["metadata"]["uid"] == endpoint["targetRef"]["uid"] and pod["spec"].get("subdomain") != service:
                yield f"endpoint {endpoint['targetRef']['name']} of {service} is called {named}, its subdomain is {pod['spec'].get('subdomain')}"

    def at_rest(self, view: View) -> Iterator[str]:
        """Yield endpoints that are no pods, pods that are no endpoints, and slices of no Service."""
        listed: dict[tuple[str, str], dict[str, Tree]] = {}
        for slice_ in view.list(ENDPOINT_SLICES):
            service = _service_of(slice_)
            if service:
                namespace = slice_["metadata"]["namespace"]
                if view.get(SERVICES, namespace, service) is None:
                    yield f"slice {slice_['metadata']['name']} outlived Service {service}"
                known = listed.setdefault((namespace, service), {})
                for each in slice_.get("endpoints") or ():
                    if each["targetRef"]["uid"] in known:
                        yield f"endpoint {each['targetRef']['name']} of {service} stands there twice"
                    known[each["targetRef"]["uid"]] = each
        for service_tree in view.list(SERVICES):
            if selects(service_tree):
                meta = service_tree["metadata"]
                yield from self._compare(service_tree, listed.get((meta["namespace"], meta["name"]), {}), view)

    @staticmethod
    def _compare(service: Tree, listed: dict[str, Tree], view: View) -> Iterator[str]:
        name = service["metadata"]["name"]
        wanted = {pod["metadata"]["uid"]: pod for pod in selected(service, view)}
        for uid, endpoint in listed.items():
            if uid not in wanted:
                yield f"endpoint {endpoint['targetRef']['name']} of {name} is no pod that lives"
        for uid, pod in wanted.items():
            found = listed.get(uid)
            if found is None:
                yield f"pod {pod['metadata']['name']} is no endpoint of {name}"
                continue
            conditions = found["conditions"]
            ready = is_published(service, pod)
            if (conditions["ready"], conditions["serving"], found["addresses"]) != (ready, is_ready(pod), [pod["status"]["podIP"]]):
                yield f"endpoint {pod['metadata']['name']} of {name} is at {found['addresses']} with {conditions}"


def selected(service: Tree, view: View) -> list[Tree]:
    """Return the pods that a Service selects and that can be endpoints."""
    selector = from_labels(service["spec"]["selector"])
    return [
        each for each in view.list(PODS, service["metadata"]["namespace"]) if selector.matches(each["metadata"].get("labels")) and is_member(each)
    ]


def is_published(service: Tree, pod: Tree) -> bool:
    """Tell whether a pod's addresses are answers."""
    return bool(service["spec"].get("publishNotReadyAddresses")) or (is_ready(pod) and "deletionTimestamp" not in pod["metadata"])


class Names:
    """1, 2, 3, 7: at rest a pod's full name is its address where its Service publishes it, and nobody's where none does; a headless Service is its pods."""

    name = "names"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing before that."""
        return ()

    def at_rest(self, view: View) -> Iterator[str]:
        """Yield names that answer otherwise than their pods would."""
        zone = Zone(_Reader(view))
        wanted: dict[str, dict[str, None]] = {}
        for pod in view.list(PODS):
            host, service = pod["spec"].get("hostname"), pod["spec"].get("subdomain")
            if host and service:
                wanted.setdefault(f"{host}.{service}.{pod['metadata']['namespace']}.svc.{zone.domain}", {})
        for service_tree in view.list(SERVICES):
            if not headless(service_tree) or not selects(service_tree):
                continue
            meta = service_tree["metadata"]
            base = f"{meta['name']}.{meta['namespace']}.svc.{zone.domain}"
            answer = wanted.setdefault(base, {})
            for pod in selected(service_tree, view):
                if is_published(service_tree, pod):
                    answer[pod["status"]["podIP"]] = None
                    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == meta["name"]:
                        wanted[f"{pod['spec']['hostname']}.{base}"][pod["status"]["podIP"]] = None
        for name, addresses in wanted.items():
            found = sorted(record.value for record in zone.lookup(name, "A").records)
            if found != sorted(addresses):
                yield f"{name} is {found}, wants {sorted(addresses)}"
