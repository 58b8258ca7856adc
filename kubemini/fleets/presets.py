"""The fleets that have a name, in the very form of a fleet file.

A preset is made of units that repeat: ``gb200-nvl72`` is two racks, ``gb200-nvl72:8`` is eight. Values of topology labels are readable
(``block-0``, ``rack-3``) where the providers' are opaque; their nesting is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """A named fleet: `units` of the groups in `nodes`, where `NAME:N` does not say how many."""

    description: str
    unit: str
    units: int
    nodes: tuple[dict[str, Any], ...]


_BLOCK, _SUBBLOCK, _HOST = (f"cloud.google.com/gce-topology-{level}" for level in ("block", "subblock", "host"))
_CLIQUE = "nvidia.com/gpu.clique"
_NVLINK_DOMAIN = "c0ffee00-0000-4000-8000-000000000000"


def _dense(machine: str, name: str, count: int, per_subblock: int, per_block: int, **more: str) -> dict[str, Any]:
    """Return GKE nodes of dense capacity, with the three levels of topology that their hosts report."""
    labels = {_BLOCK: f"block-{{i//{per_block}}}", _SUBBLOCK: f"subblock-{{i//{per_subblock}}}", _HOST: "host-{i}", **more}
    return {"machine": machine, "count": count, "name": f"{name}-{{i//{per_subblock}}}-{{i%{per_subblock}}}", "pool": name, "labels": labels}


def _slice(machine: str, topology: str, hosts: int, name: str) -> dict[str, Any]:
    """Return one TPU slice: a node pool of its own."""
    return {
        "machine": machine,
        "topology": topology,
        "slices": 1,
        "name": f"gke-tpu-{name}-{{i//{hosts}}}-{{i%{hosts}}}",
        "pool": f"{name}-{topology}-{{i//{hosts}}}",
    }


PRESETS: dict[str, Preset] = {
    "cpu": Preset("plain nodes of 64 CPUs and 256 GiB", "node", 4, ({"count": 1, "cpu": 64, "memory": "256Gi", "name": "cpu-{i}"},)),
    "h100-2racks": Preset("a block of two racks (subblocks) of four H100 nodes on GKE", "block", 1, (_dense("a3-megagpu-8g", "h100", 8, 4, 8),)),
    "h200-512": Preset("512 H200 GPUs on GKE: a block of four subblocks of 16 nodes", "block", 1, (_dense("a3-ultragpu-8g", "h200", 64, 16, 64),)),
    "b200-256": Preset("256 B200 GPUs on GKE: a block of two subblocks of 16 nodes", "block", 1, (_dense("a4-highgpu-8g", "b200", 32, 16, 32),)),
    "gb200-nvl72": Preset(
        "NVL72 racks on GKE: 18 arm64 nodes of 4 GB200 each in one NVLink domain, four racks to a block",
        "rack",
        2,
        (_dense("a4x-highgpu-4g", "gb200", 18, 18, 72, **{_CLIQUE: f"{_NVLINK_DOMAIN}.{{i//18}}"}),),
    ),
    "v5e-4x4": Preset("TPU v5e slices of 16 chips: pools of four hosts", "slice", 2, (_slice("ct5lp-hightpu-4t", "4x4", 4, "v5e"),)),
    "v5p-cube": Preset("TPU v5p cubes of 64 chips: pools of 16 hosts", "slice", 2, (_slice("ct5p-hightpu-4t", "4x4x4", 16, "v5p"),)),
    "v6e-16x16": Preset("a whole TPU v6e pod of 256 chips: a pool of 64 hosts", "slice", 1, (_slice("ct6e-standard-4t", "16x16", 64, "v6e"),)),
    "tpu7x-4x4x4": Preset("TPU 7x cubes of 64 chips: pools of 16 hosts", "slice", 2, (_slice("tpu7x-standard-4t", "4x4x4", 16, "tpu7x"),)),
    "eks-p5": Preset(
        "H100 nodes with EFA on EKS: four under each of two narrowest network nodes",
        "network node of layer 2",
        1,
        (
            {
                "machine": "p5.48xlarge",
                "count": 8,
                "name": "p5-{i//4}-{i%4}",
                "labels": {
                    "topology.k8s.aws/network-node-layer-1": "nn-1",
                    "topology.k8s.aws/network-node-layer-2": "nn-2-{i//8}",
                    "topology.k8s.aws/network-node-layer-3": "nn-3-{i//4}",
                },
            },
        ),
    ),
    "eks-gb200-u72": Preset(
        "GB200 UltraServers on EKS: 18 arm64 nodes of 4 GPUs each in one NVLink domain",
        "UltraServer",
        1,
        (
            {
                "machine": "p6e-gb200.36xlarge",
                "count": 18,
                "name": "p6e-{i//18}-{i%18}",
                "labels": {"topology.k8s.aws/ultraserver-id": "us-{i//18}", _CLIQUE: f"{_NVLINK_DOMAIN}.{{i//18}}"},
            },
        ),
    ),
    "aks-h100": Preset(
        "H100 nodes on AKS", "node", 4, ({"machine": "Standard_ND96isr_H100_v5", "count": 1, "name": "aks-h100-{i}", "pool": "h100"},)
    ),
}
"""Every named fleet."""
