"""Fleets: presets, node groups, files and the nodes of real clusters, and how mistakes are told."""

from pathlib import Path
from typing import Any

import pytest

from kubemini.fleets import MACHINES, PRESETS, load_fleet
from kubemini.fleets.machines import hosts_of_slice
from kubemini.machinery.errors import ConfigError


def labels(node: dict[str, Any]) -> dict[str, str]:
    """Return a node's labels."""
    return dict(node["metadata"]["labels"])


def names(nodes: list[dict[str, Any]]) -> list[str]:
    """Return the names of nodes."""
    return [node["metadata"]["name"] for node in nodes]


# ----------------------------------------------------------------------------------------------- node groups


def test_a_plain_group_is_what_the_conformance_runner_makes() -> None:
    """The defaults, names, labels and capacity of a plain group are those of the conformance cases' node groups."""
    first, second = load_fleet([{"count": 1, "labels": {"zone": "z{i}"}}, {"first": 7, "taints": [{"key": "a", "effect": "NoSchedule"}]}])
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    assert first == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n-0",
            "labels": {"kubernetes.io/hostname": "n-0", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "zone": "z0"},
        },
        "spec": {},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    assert second["metadata"]["name"] == "n1-7"
    assert second["spec"] == {"taints": [{"key": "a", "effect": "NoSchedule"}]}


def test_numbers_are_filled_in_everywhere() -> None:
    """Names, labels and annotations take the number of the node, divided or as a rest, blanks allowed."""
    group = {
        "count": 4,
        "first": 2,
        "name": "r{i//2}-n{i % 2}",
        "labels": {"i": "x{i}", "rack": "r{i//2}-{i}"},
        "annotations": {"a": '{"number": {i}, "other": {j}}'},
    }
    nodes = load_fleet(group)
    assert names(nodes) == ["r1-n0", "r1-n1", "r2-n0", "r2-n1"]
    assert [labels(node)["rack"] for node in nodes] == ["r1-2", "r1-3", "r2-4", "r2-5"]
    assert nodes[0]["metadata"]["annotations"] == {"a": '{"number": 2, "other": {j}}'}


def test_a_name_without_a_number_gets_one() -> None:
    """The number is appended to a name that does not hold it."""
    assert names(load_fleet({"name": "gpu-", "count": 2})) == ["gpu-0", "gpu-1"]


def test_quantities_are_canonical() -> None:
    """Capacity may be written as numbers or texts and is stored as the API server would."""
    (node,) = load_fleet({"cpu": 0.5, "memory": "1024Mi", "pods": 10, "storage": "1e3", "resources": {"nvidia.com/gpu": 8}})
    assert node["status"]["capacity"] == {"cpu": "500m", "memory": "1Gi", "pods": "10", "ephemeral-storage": "1e3", "nvidia.com/gpu": "8"}


def test_allocatable_may_be_less() -> None:
    """`allocatable` says what of the capacity is left for pods, resource by resource."""
    (node,) = load_fleet({"cpu": 8, "allocatable": {"cpu": "7910m"}})
    assert node["status"]["allocatable"] == {**node["status"]["capacity"], "cpu": "7910m"}


def test_a_machine_gives_capacity_labels_and_taints_and_fields_override_it() -> None:
    """A group of a machine type is such a node; what the group says itself wins."""
    machine, changed = load_fleet(
        [
            {"machine": "a3-megagpu-8g", "name": "h-"},
            {
                "machine": "a3-megagpu-8g",
                "cpu": 10,
                "resources": {"nvidia.com/gpu": 4},
                "taints": [],
                "labels": {"topology.kubernetes.io/zone": "here"},
            },
        ]
    )
    assert machine["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert machine["status"]["allocatable"]["cpu"] == "207410m"
    assert machine["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert labels(machine)["cloud.google.com/gke-accelerator"] == "nvidia-h100-mega-80gb"
    assert labels(machine)["cloud.google.com/gke-nodepool"] == "h"
    assert (changed["status"]["capacity"]["nvidia.com/gpu"], changed["status"]["allocatable"]["cpu"]) == ("4", "10")
    assert changed["spec"] == {}
    assert labels(changed)["topology.kubernetes.io/zone"] == "here"


@pytest.mark.parametrize(
    "name,cpu,memory",
    [
        # GKE keeps 60m+10m+10m+0.25 % of the rest, and 1024+819.2+819.2+6881.28 MiB + 2 % of the rest + 100 MiB
        ("ct5lp-hightpu-4t", 112_000 - 80 - 270, 192 * 1024 - 10_954 + 0),
        ("ct5lp-hightpu-1t", 24_000 - 80 - 50, 48 * 1024 - 1024 - 819 - 819 - 1966 - 1 - 100),
        # EKS: 11 MiB a pod + 255 MiB + 100 MiB
        ("p5.48xlarge", 192_000 - 80 - 470, 2048 * 1024 - 11 * 250 - 355),
        # AKS: 60m, 40m, 2 x 20m, 10m a core above; 20 MiB a pod + 50 MiB + 100 MiB
        ("Standard_ND96isr_H100_v5", 96_000 - 140 - 920, 1900 * 1024 - 20 * 110 - 150),
    ],
)
def test_what_a_provider_keeps_is_not_allocatable(name: str, cpu: int, memory: int) -> None:
    """Allocatable CPU and memory follow each provider's formula, devices and pods are allocatable in full."""
    machine = MACHINES[name]
    assert machine.allocatable_cpu == cpu
    assert abs(machine.allocatable_memory - memory) <= 1
    (node, *_) = load_fleet({"machine": name, **({"topology": machine.topologies[0]} if machine.chips else {})})
    capacity, allocatable = node["status"]["capacity"], node["status"]["allocatable"]
    assert {key for key in capacity if capacity[key] != allocatable[key]} == {"cpu", "memory"}


def test_tpu_slices_are_pools_of_as_many_hosts_as_their_shape_needs() -> None:
    """A TPU group makes whole slices, each a pool of its own with the labels by which workloads find it."""
    nodes = load_fleet({"machine": "ct5p-hightpu-4t", "topology": "2x2x4", "slices": 3, "name": "t-{i//4}-{i%4}"})
    assert names(nodes)[3:6] == ["t-0-3", "t-1-0", "t-1-1"]
    assert [labels(node)["cloud.google.com/gke-nodepool"] for node in nodes] == [f"t-{pool}" for pool in range(3) for _ in range(4)]
    assert {labels(node)["cloud.google.com/gke-tpu-topology"] for node in nodes} == {"2x2x4"}
    assert {labels(node)["cloud.google.com/gke-tpu-accelerator"] for node in nodes} == {"tpu-v5p-slice"}
    assert len(load_fleet({"machine": "ct5p-hightpu-4t", "topology": "4x4x4"})) == 16


@pytest.mark.parametrize(
    "name,topology,hosts",
    [
        ("ct5lp-hightpu-1t", "1x1", 1),
        ("ct5lp-hightpu-8t", "2x4", 1),
        ("ct5lp-hightpu-4t", "2x4", 2),
        ("ct5lp-hightpu-4t", "16x16", 64),
        ("ct6e-standard-4t", "4x8", 8),
        ("ct3p-hightpu-4t", "32x32", 256),
        ("ct4p-hightpu-4t", "8x16x16", 512),
        ("ct5p-hightpu-4t", "2x2x1", 1),
        ("ct5p-hightpu-4t", "4x8x8", 64),
        ("ct5p-hightpu-4t", "16x16x24", 1536),
        ("tpu7x-standard-4t", "8x8x12", 192),
    ],
)
def test_hosts_of_a_slice(name: str, topology: str, hosts: int) -> None:
    """A slice has as many hosts as its chips need of that machine."""
    assert hosts_of_slice(MACHINES[name], topology) == hosts


@pytest.mark.parametrize("topology", ["4x4", "8x4x4", "4x4x6", "2x4x8", "16x24x24", "0x0x0", "4x4x-4", "axbxc", ""])
def test_shapes_that_no_slice_has_are_refused(topology: str) -> None:
    """A v5p slice is a listed shape or whole cubes in ascending order, within its size."""
    with pytest.raises(ValueError, match="forms no slice of"):
        hosts_of_slice(MACHINES["ct5p-hightpu-4t"], topology)


# ----------------------------------------------------------------------------------------------- presets


def test_presets_have_the_sizes_that_their_names_say() -> None:
    """The nodes and devices of the presets."""
    sizes = {name: len(load_fleet(name)) for name in PRESETS}
    assert sizes == {
        "cpu": 4,
        "h100-2racks": 8,
        "h200-512": 64,
        "b200-256": 32,
        "gb200-nvl72": 36,
        "v5e-4x4": 8,
        "v5p-cube": 32,
        "v6e-16x16": 64,
        "tpu7x-4x4x4": 32,
        "eks-p5": 8,
        "eks-gb200-u72": 18,
        "aks-h100": 4,
    }


def test_units_repeat_a_preset_and_start_new_domains() -> None:
    """`NAME:N` has N units, each with topology domains and pools of its own."""
    nodes = load_fleet("h100-2racks:3")
    assert len(nodes) == 24
    assert len({labels(node)["cloud.google.com/gce-topology-block"] for node in nodes}) == 3
    assert len({labels(node)["cloud.google.com/gce-topology-subblock"] for node in nodes}) == 6
    assert load_fleet("v5e-4x4:0") == []
    assert len({labels(node)["cloud.google.com/gke-nodepool"] for node in load_fleet("v5e-4x4:5")}) == 5


def test_presets_can_be_joined_and_put_into_lists() -> None:
    """Presets are joined with + in a text, and stand for groups in a list."""
    joined = load_fleet("cpu:2 + v5e-4x4:1")
    assert joined == load_fleet(["cpu:2", "v5e-4x4:1"])
    assert names(joined) == ["cpu-0", "cpu-1", *(f"gke-tpu-v5e-0-{i}" for i in range(4))]


@pytest.mark.parametrize("source", [None, "none", [], {"nodes": []}, {"nodes": None}, {"count": 0}])
def test_a_fleet_may_be_empty(source: Any) -> None:
    """No nodes is a fleet too."""
    assert load_fleet(source) == []


def test_a_fleet_is_a_list_of_ones_own_of_shared_trees() -> None:
    """The list may be changed by its owner; capacity and spec are one object for all nodes of a group."""
    first, again = load_fleet("cpu"), load_fleet("cpu")
    first.clear()
    assert len(again) == 4
    assert again[0]["status"] is again[1]["status"]
    assert again[0]["spec"] is again[1]["spec"]


# ----------------------------------------------------------------------------------------------- files


def test_a_preset_written_to_a_file_is_the_same_fleet(tmp_path: Path) -> None:
    """Presets and files have one form: every preset survives a round trip through YAML."""
    yaml = pytest.importorskip("yaml")
    for name, preset in PRESETS.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"description": preset.description, "units": preset.units, "nodes": list(preset.nodes)}), "utf-8")
        assert load_fleet(str(path)) == load_fleet(path) == load_fleet(name)


def test_a_json_file_and_several_documents_work(tmp_path: Path) -> None:
    """A file may be JSON, or hold several fleets that are put together."""
    (tmp_path / "a.json").write_text('[{"count": 2}]', "utf-8")
    (tmp_path / "b.yml").write_text("name: a-\n---\n---\nnodes: {name: b-, count: 2}\n", "utf-8")
    assert names(load_fleet(tmp_path / "a.json")) == ["n-0", "n-1"]
    assert names(load_fleet(tmp_path / "b.yml")) == ["a-0", "b-0", "b-1"]


RECORDED = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: gke-a-1
    uid: 3b2e
    resourceVersion: "4711"
    creationTimestamp: "2026-01-01T00:00:00Z"
    labels: {cloud.google.com/gke-nodepool: a, kubernetes.io/arch: arm64}
    annotations: {node.alpha.kubernetes.io/ttl: "0", csi.volume.kubernetes.io/nodeid: "{}"}
  spec:
    podCIDR: 10.0.0.0/24
    providerID: gce://p/z/gke-a-1
    unschedulable: true
    taints:
    - {key: node.kubernetes.io/not-ready, effect: NoExecute}
    - {key: node.kubernetes.io/unschedulable, effect: NoSchedule}
    - {key: google.com/tpu, value: present, effect: NoSchedule}
  status:
    capacity: {cpu: "8", memory: 32Gi, pods: "110", google.com/tpu: "4"}
    allocatable: {cpu: 7910m, memory: 30Gi, pods: "110", google.com/tpu: "4"}
    conditions: [{type: Ready, status: "False"}]
    nodeInfo: {kubeletVersion: v1.36.0}
"""


def test_the_nodes_of_a_real_cluster_are_a_fleet(tmp_path: Path) -> None:
    """Of recorded nodes that is kept which places pods; ids, conditions and taints of the moment are left out."""
    path = tmp_path / "mine.yaml"
    path.write_text(RECORDED, "utf-8")
    assert load_fleet(path) == [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "gke-a-1",
                "labels": {"kubernetes.io/hostname": "gke-a-1", "cloud.google.com/gke-nodepool": "a", "kubernetes.io/arch": "arm64"},
                "annotations": {"csi.volume.kubernetes.io/nodeid": "{}"},
            },
            "spec": {
                "providerID": "gce://p/z/gke-a-1",
                "unschedulable": True,
                "taints": [
                    {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
                    {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"},
                ],
            },
            "status": {
                "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", "google.com/tpu": "4"},
                "allocatable": {"cpu": "7910m", "memory": "30Gi", "pods": "110", "google.com/tpu": "4"},
            },
        }
    ]


def test_node_objects_may_stand_among_groups() -> None:
    """A Node object, a NodeList and node groups can be mixed; without allocatable all capacity is."""
    node = {"kind": "Node", "metadata": {"name": "one"}, "status": {"capacity": {"cpu": 4}}}
    listed = {"kind": "NodeList", "items": [{"metadata": {"name": "two"}, "status": {"capacity": {"cpu": "4"}}}]}
    nodes = load_fleet([node, {"count": 1}, listed])
    assert names(nodes) == ["one", "n1-0", "two"]
    assert nodes[0]["status"] == {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}


# ----------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    "source,message",
    [
        ("h100", r"^fleet: no fleet is called 'h100'; write none, the path of a \.yaml file, or a preset \(cpu, h100-2racks, "),
        ("cpu:many", r"no fleet is called 'cpu:many'"),
        ("cpu+", r"no fleet is called ''"),
        ("cpu+cpu", r"^fleet cpu\+cpu: two nodes are called cpu-0; give the groups different names"),
        (["cpu", "gpu"], r"^fleet: nodes\[1\]: no fleet is called 'gpu'"),
        ({"nodes": 3}, r"^fleet: nodes: expected a list of node groups, found 3"),
        ({"nodes": "cpu"}, r"^fleet: nodes: expected a list of node groups, found 'cpu'"),
        ({"nodes": [], "unit": 1}, r"^fleet: unit: no such field; a fleet has nodes, units and description"),
        ({"nodes": [], "units": True}, r"^fleet: units: True is no number of units"),
        ([3], r"^fleet: nodes\[0\]: a node group is a mapping such as .*, not 3"),
        ([{}, {"cpus": 4}], r"^fleet: nodes\[1\]\.cpus: no such field; a node group has name, count, first, machine, "),
        ({"count": -1}, r"^fleet\.count: Input should be greater than or equal to 0"),
        ({"count": "x"}, r"^fleet\.count: Input should be a valid integer"),
        ({"cpu": "many"}, r"^fleet\.cpu: 'many' is no quantity; write for example 64, 500m or 256Gi"),
        ({"cpu": True}, r"^fleet\.cpu: True is no quantity"),
        ({"resources": {"a/b": -1}}, r"^fleet\.resources\['a/b'\]: -1 is negative"),
        ({"resources": {"a b": 1}}, r"^fleet\.resources: 'a b' cannot name a resource: "),
        ({"labels": {"tas": True}}, r"^fleet\.labels\.tas: True is no text; put it in quotes"),
        ({"labels": {"a b": "c"}}, r"^fleet\.labels: 'a b' cannot be a label: "),
        ({"labels": {"a": "x{j}"}}, r"^fleet\.labels\['a'\]: 'x\{j\}' cannot be the value of a label: "),
        ({"labels": {"a": "{i//0}"}}, r"^fleet\.labels\['a'\]: \{i//0\} divides by zero"),
        ({"name": "Node_{i}"}, r"^fleet\.name: 'Node_0' cannot name a node: "),
        ({"name": "n{i//2}", "count": 2}, r"^fleet: two nodes are called n0"),
        ({"taints": [{"key": "a", "effect": "Never"}]}, r"^fleet\.taints\[0\]\.effect: Input should be 'NoSchedule', "),
        ({"machine": "a3"}, r"^fleet\.machine: no such machine type: 'a3'; there are a2-highgpu-8g, "),
        ({"pool": "p"}, r"^fleet\.pool: which label names a pool depends on the provider; give a machine"),
        ({"slices": 2}, r"^fleet\.slices: slices need a topology and a machine with TPU chips"),
        ({"topology": "4x4"}, r"^fleet\.topology: a TPU slice needs a machine"),
        ({"machine": "a3-megagpu-8g", "topology": "4x4"}, r"^fleet\.topology: a3-megagpu-8g has no TPU chips, so it forms no slice"),
        ({"machine": "ct5lp-hightpu-4t", "count": 4}, r"^fleet\.topology: nodes with TPU chips belong to slices; ct5lp-hightpu-4t forms 2x2, "),
        ({"machine": "ct5lp-hightpu-4t", "topology": "4x4", "count": 4}, r"^fleet\.count: a topology says how many nodes a slice has; write slices"),
        ({"machine": "ct5lp-hightpu-4t", "topology": "4x4", "first": 2}, r"^fleet\.first: slices of 4 nodes start at a multiple of 4, not at 2"),
        ({"machine": "ct5lp-hightpu-4t", "topology": "4x4", "slices": 2, "pool": "p"}, r"^fleet\.pool: each TPU slice is a node pool of its own"),
        ({"machine": "ct5lp-hightpu-4t", "topology": "4x4", "pool": "p{i}"}, r"^fleet\.pool: each TPU slice is a node pool of its own"),
        ({"kind": "Pod"}, r"^fleet: a fleet is made of node groups or of Node objects, not of kind 'Pod'"),
        ({"kind": "Node", "metadata": {}}, r"^fleet: metadata\.name: a node needs a name"),
        ({"kind": "Node", "metadata": {"name": "a"}}, r"^fleet: status\.capacity: a node needs a capacity"),
        ({"kind": "List", "items": [3]}, r"^fleet: items\[0\]: expected a Node, found 3"),
        ({"kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"cpu": "x"}}}, r"^fleet: status\.capacity\.cpu: 'x' is no quantity"),
        ("missing.yaml", r"^fleet missing\.yaml: the file cannot be read: "),
        (Path("folder/missing"), r"^fleet folder/missing: the file cannot be read: "),
    ],
    ids=str,
)
def test_a_mistake_is_told_with_its_field(source: Any, message: str) -> None:
    """What is wrong is refused with the path of the field, what was found and what would be right."""
    with pytest.raises(ConfigError, match=message):
        load_fleet(source)


def test_all_mistakes_of_a_group_are_told_at_once() -> None:
    """A group with several wrong fields is refused with one line for each."""
    with pytest.raises(ConfigError) as raised:
        load_fleet({"cpu": "x", "memory": "y", "labels": {"a": None}})
    assert sorted(line.partition(": ")[0] for line in str(raised.value).splitlines()) == ["fleet.cpu", "fleet.labels.a", "fleet.memory"]


@pytest.mark.parametrize("text", ["nodes: [", "a: b: c", "\x00"])
def test_a_file_that_is_no_yaml_is_told_with_its_name(tmp_path: Path, text: str) -> None:
    """A broken file is named, with what the parser says."""
    path = tmp_path / "broken.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"^fleet .*broken\.yaml: the file is no YAML: "):
        load_fleet(path)


def test_a_mistake_in_a_file_is_told_with_its_place(tmp_path: Path) -> None:
    """The message starts with the file, then the field."""
    path = tmp_path / "mine.yaml"
    path.write_text("nodes:\n- {count: 1}\n- {cpu: x}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"^fleet .*mine\.yaml: nodes\[1\]\.cpu: 'x' is no quantity"):
        load_fleet(path)
