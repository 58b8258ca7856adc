"""Devices as ResourceSlices publish them, and which of them a claim would get on a node. Mirrors the structured allocator of dynamic resource allocation (1.36).

Pure: a `Catalogue` is built from the slices, an `Inventory` knows what of it is allocated, and `allocate` searches it for all claims of a pod together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import NodeInfo
from kubemini.machinery.memo import by_identity
from kubemini.machinery.node_matching import matches_term, tolerates
from kubemini.machinery.quantity import nano, parse

if TYPE_CHECKING:
    from kubemini.machinery.cel import Environment

Identity = tuple[str, str, str]
"""(driver, pool, device)."""

SEARCH_LIMIT = 20_000
"""Steps after which a search for a combination gives up."""


class ClaimProblem(ValueError):
    """A claim that no node can serve as things are: a class is missing, an expression is bad."""


@dataclass(frozen=True, slots=True)
class Device:
    """One published device with where it can be used."""

    identity: Identity
    tree: Tree
    slice: Tree
    """The spec of its slice."""

    def on(self, info: NodeInfo) -> bool:
        """Tell whether the device can be used on a node."""
        where = self.tree if self.slice.get("perDeviceNodeSelection") else self.slice
        if where.get("allNodes"):
            return True
        if where.get("nodeName"):
            return bool(where["nodeName"] == info.name)
        return any(matches_term(term, info.labels, info.name) for term in (where.get("nodeSelector") or {}).get("nodeSelectorTerms") or ())

    def selector(self) -> Tree | None:
        """Return the node selector that an allocation of this device carries; None where any node does."""
        where = self.tree if self.slice.get("perDeviceNodeSelection") else self.slice
        if where.get("nodeName"):
            return {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [where["nodeName"]]}]}]}
        found: Tree | None = where.get("nodeSelector")
        return found


@dataclass(slots=True)
class Pool:
    """A pool's newest generation."""

    driver: str
    name: str
    generation: int
    wanted: int
    slices: list[Tree] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether all slices of the generation are there: an unfinished pool is not used."""
        return len(self.slices) == self.wanted

    def devices(self) -> Iterator[Device]:
        """Iterate over the devices."""
        for spec in self.slices:
            for tree in spec.get("devices") or ():
                yield Device((self.driver, self.name, tree["name"]), tree, spec)

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the shared counters: set → counter → amount in billionths."""
        return {
            each["name"]: {name: nano(counter["value"]) for name, counter in (each.get("counters") or {}).items()}
            for spec in self.slices
            for each in spec.get("sharedCounters") or ()
        }


class Catalogue:
    """What is published: the usable devices of complete pools, by node where they belong to one. Built once per change of the slices."""

    def __init__(self, slices: Iterable[Tree]) -> None:
        pools: dict[tuple[str, str], Pool] = {}
        for each in slices:
            spec = each["spec"]
            name, generation = spec["pool"]["name"], spec["pool"].get("generation", 0)
            mark = (spec["driver"], name)
            pool = pools.get(mark)
            if pool is None or generation > pool.generation:
                pool = pools[mark] = Pool(spec["driver"], name, generation, spec["pool"]["resourceSliceCount"])
            if generation == pool.generation:
                pool.slices.append(spec)
        self.pools = {mark: pools[mark] for mark in sorted(pools)}
        self.complete = all(pool.complete for pool in pools.values())
        self.counted = any(spec.get("sharedCounters") for pool in pools.values() for spec in pool.slices)
        self.known: dict[Identity, Device] = {}
        self._of_node: dict[str, list[Device]] = {}
        self._others: list[Device] = []
        for pool in self.pools.values():
            for device in pool.devices() if pool.complete else ():
                self.known[device.identity] = device
                name = "" if device.slice.get("perDeviceNodeSelection") else device.slice.get("nodeName") or ""
                (self._of_node.setdefault(name, []) if name else self._others).append(device)

    def on(self, info: NodeInfo) -> list[Device]:
        """Return the devices that can be used on a node."""
        return [*self._of_node.get(info.name, ()), *(device for device in self._others if device.on(info))]


class Inventory:
    """What is published, and what of it is free: for the decision about one pod."""

    def __init__(self, catalogue: Catalogue, classes: Mapping[str, Tree], allocated: Mapping[Identity, object]) -> None:
        self.catalogue = catalogue
        self.classes = classes
        self.allocated = allocated
        self._left = {mark: pool.counters() for mark, pool in catalogue.pools.items()} if catalogue.counted else {}
        for identity in allocated if catalogue.counted else ():
            device = catalogue.known.get(identity)
            if device is not None:
                self.consume(device, 1)

    def consume(self, device: Device, sign: int) -> None:
        """Take (+1) what a device uses of its pool's shared counters, or give it back (-1)."""
        left = self._left.get(device.identity[:2], {})
        for use in device.tree.get("consumesCounters") or ():
            counters = left.get(use["counterSet"], {})
            for name, counter in (use.get("counters") or {}).items():
                counters[name] = counters.get(name, 0) - sign * nano(counter["value"])

    def enough(self, device: Device) -> bool:
        """Tell whether the shared counters still hold what a device uses."""
        left = self._left.get(device.identity[:2], {})
        return all(
            left.get(use["counterSet"], {}).get(name, 0) >= nano(counter["value"])
            for use in device.tree.get("consumesCounters") or ()
            for name, counter in (use.get("counters") or {}).items()
        )


# ----------------------------------------------------------------------------------------------- selectors


def _typed(value: Tree) -> Any:
    if "string" in value:
        return value["string"]
    if "int" in value:
        return value["int"]
    if "bool" in value:
        return value["bool"]
    from kubemini.machinery.cel.library.semver import parse as parse_semver

    return parse_semver(value["version"])


_DOMAIN = re.compile(r"""device\.(?:attributes|capacity)\[(?:"([^"]+)"|'([^']+)')\]""")


@lru_cache(maxsize=4096)
def _domains(expression: str) -> tuple[str, ...]:
    """Return the domains that an expression names: one that a device does not speak of is there, and empty."""
    return tuple(one or other for one, other in _DOMAIN.findall(expression))


def _by_domain(named: Mapping[str, Any], driver: str, domains: Iterable[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
    for name, value in named.items():
        domain, slash, rest = name.partition("/")
        found.setdefault(domain if slash else driver, {})[rest if slash else name] = value
    return found


@by_identity()
def _attributes(tree: Tree) -> dict[str, Any]:
    return {name: _typed(value) for name, value in (tree.get("attributes") or {}).items()}


@by_identity()
def _capacities(tree: Tree) -> dict[str, Any]:
    from kubemini.machinery.cel.library.quantities import CelQuantity

    return {name: CelQuantity(parse(value["value"]).nano) for name, value in (tree.get("capacity") or {}).items()}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from kubemini.machinery.cel import Environment

    return Environment.dynamic("device")


def value_for_cel(device: Device, expression: str = "") -> Tree:
    """Return what an expression sees as ``device``."""
    driver, domains = device.identity[0], _domains(expression)
    return {
        "driver": driver,
        "attributes": _by_domain(_attributes(device.tree), driver, domains),
        "capacity": _by_domain(_capacities(device.tree), driver, domains),
        "allowMultipleAllocations": bool(device.tree.get("allowMultipleAllocations")),
    }


def selected(device: Device, selectors: Sequence[Tree]) -> bool:
    """Tell whether all CEL selectors take a device. An expression that fails on it does not. Raise `ClaimProblem` for one that does not compile."""
    if not selectors:
        return True
    # Imported here, as above: CEL takes longer to load than a cluster without devices takes to start
    from kubemini.machinery.cel import CelCompileError, CelEvaluationError, Program

    for each in selectors:
        text = each["cel"]["expression"]
        try:
            program = Program.compile(text, _environment())
        except CelCompileError as problem:
            raise ClaimProblem(f"CEL compilation failed: {problem}") from problem
        try:
            if program.evaluate({"device": value_for_cel(device, text)}) is not True:
                return False
        except CelEvaluationError:
            return False
    return True


def attribute_of(device: Device, name: str) -> Any:
    """Return a device's attribute by its full name, or None; one without a domain stands under the driver's."""
    attributes = _attributes(device.tree)
    found = attributes.get(name)
    if found is None:
        domain, _, rest = name.partition("/")
        if domain == device.identity[0]:
            found = attributes.get(rest)
    return found


# ----------------------------------------------------------------------------------------------- requests


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a claim, or one alternative of it, as the search sees it."""

    name: str
    """``request`` or ``request/alternative``."""
    tree: Tree
    device_class: Tree

    @property
    def selectors(self) -> list[Tree]:
        """The selectors of the class and of the request."""
        return [*((self.device_class.get("spec") or {}).get("selectors") or ()), *(self.tree.get("selectors") or ())]


def requests_of_claim(claim: Tree, classes: Mapping[str, Tree]) -> list[list[Request]]:
    """Return a claim's requests, each as its alternatives in order of preference. Raise `ClaimProblem` for a class that is not there."""
    found: list[list[Request]] = []
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        name = request["name"]
        alternatives = [(f"{name}/{each['name']}", each) for each in request.get("firstAvailable") or ()] or [(name, request["exactly"])]
        found.append([])
        for shown, tree in alternatives:
            known = classes.get(tree["deviceClassName"])
            if known is None:
                raise ClaimProblem(f"request {shown}: device class {tree['deviceClassName']} does not exist")
            found[-1].append(Request(shown, tree, known))
    return found


def _tolerated(device: Device, request: Request) -> bool:
    taints = device.tree.get("taints") or ()
    tolerations = request.tree.get("tolerations") or ()
    return all(taint.get("effect") not in ("NoSchedule", "NoExecute") or any(tolerates(each, taint) for each in tolerations) for taint in taints)


@dataclass(slots=True)
class _Search:
    """A backtracking search for the devices of several claims on one node."""

    inventory: Inventory
    info: NodeInfo
    claims: list[Tree]
    steps: int = 0
    taken: dict[Identity, None] = field(default_factory=dict)
    chosen: list[list[tuple[Request, Device]]] = field(default_factory=list)

    def run(self) -> list[list[tuple[Request, Device]]] | None:
        here = self.inventory.catalogue.on(self.info)
        plans = [requests_of_claim(claim, self.inventory.classes) for claim in self.claims]
        self.chosen = [[] for _ in self.claims]
        return self.chosen if self._claim(0, plans, here) else None

    def _claim(self, index: int, plans: list[list[list[Request]]], here: list[Device]) -> bool:
        if index == len(plans):
            return True
        return self._request(index, 0, plans[index], here, lambda: self._claim(index + 1, plans, here))

    def _request(self, claim: int, at: int, requests: list[list[Request]], here: list[Device], then: Callable[[], bool]) -> bool:
        if at == len(requests):
            return then()
        for request in requests[at]:
            fitting = [device for device in here if selected(device, request.selectors) and _tolerated(device, request)]
            follow: Callable[[], bool] = lambda: self._request(claim, at + 1, requests, here, then)  # noqa: E731
            if request.tree.get("allocationMode", "ExactCount") == "All":
                if fitting and self.inventory.catalogue.complete and self._all(claim, request, fitting, follow):
                    return True
            elif self._some(claim, request, fitting, 0, request.tree.get("count", 1), follow):
                return True
        return False

    def _all(self, claim: int, request: Request, fitting: list[Device], then: Callable[[], bool]) -> bool:
        done = 0
        for device in fitting:
            if not self._take(claim, request, device):
                break
            done += 1
        if done == len(fitting) and then():
            return True
        for device in reversed(fitting[:done]):
            self._release(claim, request, device)
        return False

    def _some(self, claim: int, request: Request, fitting: list[Device], start: int, left: int, then: Callable[[], bool]) -> bool:
        if not left:
            return then()
        for position in range(start, len(fitting) - left + 1):
            self.steps += 1
            if self.steps > SEARCH_LIMIT:
                return False
            device = fitting[position]
            if self._take(claim, request, device):
                if self._some(claim, request, fitting, position + 1, left - 1, then):
                    return True
                self._release(claim, request, device)
        return False

    def _take(self, claim: int, request: Request, device: Device) -> bool:
        if not request.tree.get("adminAccess"):
            if device.identity in self.inventory.allocated or device.identity in self.taken or not self.inventory.enough(device):
                return False
            self.taken[device.identity] = None
            self.inventory.consume(device, 1)
        self.chosen[claim].append((request, device))
        if self._constraints(claim):
            return True
        self._release(claim, request, device)
        return False

    def _release(self, claim: int, request: Request, device: Device) -> None:
        self.chosen[claim].pop()
        if not request.tree.get("adminAccess"):
            del self.taken[device.identity]
            self.inventory.consume(device, -1)

    def _constraints(self, claim: int) -> bool:
        """Tell whether the constraints of a claim hold for what is chosen so far."""
        for constraint in (self.claims[claim]["spec"].get("devices") or {}).get("constraints") or ():
            names = constraint.get("requests") or ()
            meant = [
                device for request, device in self.chosen[claim] if not names or request.name in names or request.name.partition("/")[0] in names
            ]
            name = constraint.get("matchAttribute") or constraint.get("distinctAttribute")
            values = [attribute_of(device, name) for device in meant]
            if any(value is None for value in values):
                return False
            if constraint.get("matchAttribute") and any(value != values[0] for value in values):
                return False
            if constraint.get("distinctAttribute") and any(value in values[:index] for index, value in enumerate(values)):
                return False
        return True


def allocate(claims: list[Tree], info: NodeInfo, inventory: Inventory) -> list[Tree] | None:
    """Return the allocations (``status.allocation`` without a time) of some claims on a node, or None where they do not fit. Raise `ClaimProblem`."""
    chosen = _Search(inventory, info, claims).run()
    if chosen is None:
        return None
    for found in chosen:
        # The search leaves what it took in the counters
        for request, device in found:
            if not request.tree.get("adminAccess"):
                inventory.consume(device, -1)
    return [_allocation(claim, found) for claim, found in zip(claims, chosen, strict=True)]


def _allocation(claim: Tree, chosen: list[tuple[Request, Device]]) -> Tree:
    results: list[Tree] = []
    config: list[Tree] = []
    selector: Tree | None = None
    for request, device in chosen:
        driver, pool, published = device.identity
        result: Tree = {"request": request.name, "driver": driver, "pool": pool, "device": published}
        if request.tree.get("adminAccess"):
            result["adminAccess"] = True
        if request.tree.get("tolerations"):
            result["tolerations"] = request.tree["tolerations"]
        results.append(result)
        selector = _both(selector, device.selector())
    for name in dict.fromkeys(request.name for request, _ in chosen):
        known = next(each.device_class for each, _ in chosen if each.name == name)
        config += [{"source": "FromClass", "requests": [name], **each} for each in (known.get("spec") or {}).get("config") or ()]
    config += [{"source": "FromClaim", **each} for each in (claim["spec"].get("devices") or {}).get("config") or ()]
    devices: Tree = {"results": results}
    if config:
        devices["config"] = config
    allocation: Tree = {"devices": devices}
    if selector is not None:
        allocation["nodeSelector"] = selector
    return allocation


def _both(one: Tree | None, other: Tree | None) -> Tree | None:
    """Return a node selector that meets two."""
    if one is None or other is None or one == other:
        return one if one is not None else other
    terms = []
    for left in one["nodeSelectorTerms"]:
        for right in other["nodeSelectorTerms"]:
            term = {
                key: [*(left.get(key) or ()), *(right.get(key) or ())]
                for key in ("matchExpressions", "matchFields")
                if left.get(key) or right.get(key)
            }
            if term not in terms:
                terms.append(term)
    return {"nodeSelectorTerms": terms}
