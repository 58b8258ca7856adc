"""Node groups: the form in which fleets are written, checked at the edge, and turned into Node objects.

A group is ``count`` nodes that are alike: of a known ``machine``, or of plain ``cpu`` and ``memory``. A TPU group has ``slices`` of
one ``topology`` instead of a count. Texts may hold the node's number (`kubemini.fleets.templates`). The plain form is that of the
conformance cases: ``count, cpu, memory, pods, resources, labels, annotations, taints, name, first``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from kubemini.api.trees import Tree
from kubemini.fleets.machines import MACHINES, POOL_LABELS, Machine, hosts_of_slice
from kubemini.fleets.templates import filler, has_place, stem
from kubemini.machinery.errors import ConfigError
from kubemini.machinery.names import dns1123_subdomain, label_value, qualified_name
from kubemini.machinery.quantity import canonical, is_quantity, nano


def _quantity(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not is_quantity(value):
        raise ValueError(f"{value!r} is no quantity; write for example 64, 500m or 256Gi")
    if nano(value) < 0:
        raise ValueError(f"{value!r} is negative")
    return canonical(value)


def _text(value: object) -> object:
    if isinstance(value, bool) or value is None:
        raise ValueError(f"{value!r} is no text; put it in quotes where YAML reads it as something else")
    return str(value) if isinstance(value, int | float) else value


Quantity = Annotated[str, BeforeValidator(_quantity)]
Text = Annotated[str, BeforeValidator(_text)]


class Taint(BaseModel):
    """One taint of every node of a group."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: Text
    value: Text = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class NodeGroup(BaseModel):
    """Nodes that are alike."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(min_length=1)] | None = None
    """Name of a node, with its number in it; without one the number is appended."""
    count: int | None = Field(default=None, ge=0)
    first: int = Field(default=0, ge=0)
    """Number of the first node."""
    machine: str | None = None
    """A machine type that `kubemini.fleets.machines` knows: gives capacity, labels and taints, which the other fields override."""
    topology: str | None = None
    """Shape of a TPU slice, for machines with TPU chips."""
    slices: int | None = Field(default=None, ge=0)
    """How many TPU slices: each is a node pool of its own with as many nodes as its shape needs."""
    pool: Text | None = None
    """Name of the node pool in the provider's label; may hold the node's number."""
    cpu: Quantity | None = None
    memory: Quantity | None = None
    pods: Quantity | None = None
    storage: Quantity = "1Ti"
    resources: dict[str, Quantity] = Field(default_factory=dict)
    """Extended resources."""
    allocatable: dict[str, Quantity] = Field(default_factory=dict)
    """What pods can use where that is not the whole capacity."""
    labels: dict[str, Text] = Field(default_factory=dict)
    annotations: dict[str, Text] = Field(default_factory=dict)
    taints: list[Taint] | None = None
    """Replaces the machine's."""
    spec: dict[str, Any] = Field(default_factory=dict)
    """More of the Node's spec, e.g. ``unschedulable``."""


def parse_group(tree: object, where: str) -> NodeGroup:
    """Check one group as it was written. Raise `ConfigError` that names each wrong field, its path starting with `where`."""
    if not isinstance(tree, Mapping):
        raise ConfigError(f"{where}: a node group is a mapping such as {{count: 4, cpu: 64, memory: 256Gi}}, not {tree!r}")
    try:
        return NodeGroup.model_validate(dict(tree))
    except ValidationError as error:
        problems = [f"{where}{_path(problem['loc'])}: {_reason(problem['type'], problem['msg'])}" for problem in error.errors()]
        raise ConfigError("\n".join(problems)) from None


def _path(steps: tuple[int | str, ...]) -> str:
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if step.isidentifier() else f"[{step!r}]" for step in steps if step != "[key]"
    )


def _reason(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return f"no such field; a node group has {', '.join(NodeGroup.model_fields)}"
    return message.removeprefix("Value error, ")


# ----------------------------------------------------------------------------------------------- expansion


def nodes_of(group: NodeGroup, *, where: str, offset: int = 0, units: int = 1) -> Iterator[Tree]:
    """Yield the Node objects of a group, `units` times as many as it says.

    Capacity, allocatable and spec are one object for all nodes of the group. `offset` is the group's place among its fleet's groups:
    it goes into the default name. Raise `ConfigError` where fields contradict each other or a name or label is not valid.
    """
    machine = _machine(group, where)
    hosts = _hosts(group, machine, where)
    count = (hosts * (1 if group.slices is None else group.slices) if hosts else 1 if group.count is None else group.count) * units
    name = group.name or ("n-" if offset == 0 else f"n{offset}-")
    if not has_place(name):
        name += "{i}"
    name_of = _filler(name, f"{where}.name")
    capacity, allocatable = _capacity(group, machine, where)
    spec = _spec(group, machine)
    labels_of = _labels(group, machine, name, hosts, where)
    annotations_of = _texts(group.annotations, f"{where}.annotations")
    status = {"capacity": capacity, "allocatable": allocatable}
    for number in range(group.first, group.first + count):
        node_name = name_of(number)
        problem = dns1123_subdomain(node_name)
        if problem:
            raise ConfigError(f"{where}.name: {node_name!r} cannot name a node: {problem}")
        metadata: Tree = {"name": node_name, "labels": {"kubernetes.io/hostname": node_name, **labels_of(number)}}
        if group.annotations:
            metadata["annotations"] = annotations_of(number)
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _machine(group: NodeGroup, where: str) -> Machine | None:
    if group.machine is None:
        return None
    machine = MACHINES.get(group.machine)
    if machine is None:
        raise ConfigError(f"{where}.machine: no such machine type: {group.machine!r}; there are {', '.join(MACHINES)}")
    return machine


def _hosts(group: NodeGroup, machine: Machine | None, where: str) -> int:
    """Return how many nodes a TPU slice of the group has, 0 where it has none."""
    if group.topology is None:
        if group.slices is not None:
            raise ConfigError(f"{where}.slices: slices need a topology and a machine with TPU chips; write count for plain nodes")
        if machine is not None and machine.chips:
            raise ConfigError(f"{where}.topology: nodes with TPU chips belong to slices; {machine.name} forms {', '.join(machine.topologies)}")
        return 0
    if machine is None:
        raise ConfigError(f"{where}.topology: a TPU slice needs a machine, e.g. ct5lp-hightpu-4t")
    if group.count is not None:
        raise ConfigError(f"{where}.count: a topology says how many nodes a slice has; write slices for how many slices")
    try:
        hosts = hosts_of_slice(machine, group.topology)
    except ValueError as error:
        raise ConfigError(f"{where}.topology: {error}") from None
    if group.first % hosts:
        raise ConfigError(f"{where}.first: slices of {hosts} nodes start at a multiple of {hosts}, not at {group.first}")
    return hosts


def _capacity(group: NodeGroup, machine: Machine | None, where: str) -> tuple[Tree, Tree]:
    for field in ("resources", "allocatable"):
        for key in getattr(group, field):
            problem = qualified_name(key)
            if problem:
                raise ConfigError(f"{where}.{field}: {key!r} cannot name a resource: {problem}")
    capacity = {
        "cpu": group.cpu or (str(machine.cpu) if machine else "64"),
        "memory": group.memory or (f"{machine.memory}Gi" if machine else "256Gi"),
        "pods": group.pods or str(machine.pods if machine else 110),
        "ephemeral-storage": group.storage,
    }
    devices = {**({device: str(count) for device, count in machine.devices.items()} if machine else {}), **group.resources}
    capacity.update(devices)
    allocatable = dict(capacity)
    if machine and group.cpu is None:
        allocatable["cpu"] = f"{machine.allocatable_cpu}m"
    if machine and group.memory is None:
        allocatable["memory"] = f"{machine.allocatable_memory}Mi"
    allocatable.update(group.allocatable)
    return capacity, {key: canonical(value) for key, value in allocatable.items()}


def _spec(group: NodeGroup, machine: Machine | None) -> Tree:
    if group.taints is not None:
        taints = [taint.model_dump(exclude_defaults=True) for taint in group.taints]
    else:
        taints = list(machine.taints) if machine else []
    return {**({"taints": taints} if taints else {}), **group.spec}


def _labels(group: NodeGroup, machine: Machine | None, name: str, hosts: int, where: str) -> Callable[[int], dict[str, str]]:
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": machine.arch if machine else "amd64"}
    if machine:
        labels["node.kubernetes.io/instance-type"] = machine.name
        labels.update(machine.labels)
        pool = group.pool or (f"{stem(name)}-{{i//{hosts}}}" if hosts else stem(name))
        labels.update(dict.fromkeys(POOL_LABELS[machine.provider], pool))
    elif group.pool:
        raise ConfigError(f"{where}.pool: which label names a pool depends on the provider; give a machine, or write the label")
    if group.topology:
        labels["cloud.google.com/gke-tpu-topology"] = group.topology
    labels.update(group.labels)
    for key in labels:
        problem = qualified_name(key)
        if problem:
            raise ConfigError(f"{where}.labels: {key!r} cannot be a label: {problem}")
    texts_of = _texts(labels, f"{where}.labels")
    pool_of = _filler(labels[POOL_LABELS["gke"][0]], where) if hosts else None
    checked: set[str] = set()

    def of(number: int) -> dict[str, str]:
        texts = texts_of(number)
        for key, text in texts.items():
            if text in checked:
                continue
            problem = label_value(text)
            if problem:
                raise ConfigError(f"{where}.labels[{key!r}]: {text!r} cannot be the value of a label: {problem}")
            checked.add(text)
        if pool_of:
            start = number - number % hosts
            if texts[POOL_LABELS["gke"][0]] != pool_of(start) or (start and pool_of(start - 1) == pool_of(start)):
                raise ConfigError(f"{where}.pool: each TPU slice is a node pool of its own: put {{i//{hosts}}} in it, and no other number")
        return texts

    return of


def _texts(templates: Mapping[str, str], where: str) -> Callable[[int], dict[str, str]]:
    """Return a function from a node's number to the filled mapping; what holds no number is filled once."""
    fixed = {key: text for key, text in templates.items() if not has_place(text)}
    varying = {key: _filler(text, f"{where}[{key!r}]") for key, text in templates.items() if key not in fixed}
    return lambda number: {**fixed, **{key: fill(number) for key, fill in varying.items()}}


def _filler(text: str, where: str) -> Callable[[int], str]:
    try:
        return filler(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
